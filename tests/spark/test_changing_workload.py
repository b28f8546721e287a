"""A workload that changes while its stream runs on Spark: queries are added, refused, removed and put back.

The stream is driven by what it tells: a step is taken when the batch before it is done and its rows are given out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
from tests.spark.test_stream_command import END, as_text, events, put, sqlite_rows
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.cli.options import read_query
from trendloom.engines.spark.streaming.metrics import Metrics
from trendloom.engines.spark.streaming.service import Service, StreamWatch, serve
from trendloom.engines.spark.streaming.sources import open_source, parse_source
from trendloom.engines.spark.streaming.stream import StreamSettings
from trendloom.engines.spark.streaming.workload_changes import ChangingWorkload, WorkloadWatch
from trendloom.errors import QueryWarning, TrendloomError
from trendloom.options import Options
from trendloom.runtime.reading import queries_of
from trendloom.spark import to_sqlite
from trendloom.streaming.statistics import Figures

PAIRS = "QUERY pairs: PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10\n"
TOTALS = "QUERY totals: RETURN k, COUNT(*), SUM(B.x) PATTERN SEQ(A, B+) WHERE [k] GROUP BY k WITHIN 10 SLIDE 5\n"
SUMS = "QUERY sums: RETURN COUNT(*) AS n, MAX(B.x) AS top PATTERN SEQ(B, A) WHERE [k] WITHIN 12 SLIDE 4\n"
BROKEN = "QUERY broken: PATTERN SEQ(A, \n"
UNBOUND = "QUERY unbound: PATTERN SEQ(A a, B b) WHERE a.nothing > 1 WITHIN 10\n"
OTHER_PAIRS = "QUERY pairs: PATTERN SEQ(A a, B b) WHERE [k] WITHIN 99\n"
DELAY = 2


@dataclass
class Story:
    """Steps of a test, each taken when the stream has done what the one before asks for."""

    steps: Iterator[None]
    stop: Event
    workload: ChangingWorkload | None = None
    said: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    done: float = 0.0  # the watermark, in seconds
    awaited: Callable[[], bool] = lambda: True
    renewals: int = 0

    def go_on(self) -> None:
        if self.awaited() and next(self.steps, self) is self:
            self.stop.set()

    def on_batch(self, metrics: Metrics) -> None:
        self.done = metrics.watermark or 0.0
        self.go_on()

    def on_refusal(self, error: TrendloomError) -> None:
        self.refused.append(str(error))

    def on_warning(self, warning: QueryWarning, _: str | None) -> None:
        self.said.append(str(warning))

    def is_due(self, figures: Figures) -> bool:
        assert self.workload is not None
        due, heard = self.workload.is_due(figures), len(self.refused)
        if not due and heard:
            self.go_on()
        return due

    def rows_after_restart(self) -> Any:
        assert self.workload is not None
        found = self.workload.rows_after_restart()
        self.renewals += 1
        self.go_on()
        return found


def rows_of(text: str, name: str, table: pa.Table) -> list[dict[str, Any]]:
    return [{"query": name, **row} for row in tl.run(text, table, query=name).to_pylist()]


def test_queries_come_and_go_while_the_stream_runs(spark: Any, tmp_path: Path) -> None:
    days, file, state, stop = tmp_path / "days", tmp_path / "q.tql", str(tmp_path / "state"), Event()
    file.write_text(PAIRS + TOTALS)
    put(days, "1", events(0, 60))

    def steps() -> Iterator[None]:
        story.awaited = lambda: story.done >= 29 - DELAY
        yield
        file.write_text(OTHER_PAIRS + TOTALS + SUMS + BROKEN + UNBOUND)
        story.awaited = lambda: story.renewals == 1
        yield
        put(days, "2", events(60, 120))
        story.awaited = lambda: story.done >= 59 - DELAY
        yield
        file.unlink()
        story.awaited = lambda: len(story.refused) == 4
        yield
        file.write_text(TOTALS + SUMS)
        story.awaited = lambda: story.renewals == 2
        yield
        put(days, "3", events(120, 180))
        story.awaited = lambda: story.done >= 89 - DELAY
        yield
        file.write_text(TOTALS + SUMS + PAIRS)
        story.awaited = lambda: story.renewals == 3
        yield
        put(days, "4", pa.concat_tables([events(180, 240), END]))
        story.awaited = lambda: story.done >= 100_000 - DELAY
        yield

    story = Story(steps(), stop)
    story.go_on()
    story.workload = ChangingWorkload(
        open_source(spark, parse_source(str(days))), Options(engine="spark"),
        StreamSettings(f"{DELAY} seconds", 2), state,
        queries_of(file.read_text()), WorkloadWatch(story.on_warning, story.on_refusal),
        look=partial(read_query, str(file)), last_seen=file.read_text(),
    )  # fmt: skip
    rows = story.workload.first_rows()
    sink = to_sqlite(str(tmp_path / "rows.db"), "found")
    end = serve(rows, sink, Service(state, retries=0), stop, StreamWatch(story.on_batch), story)

    broken, changed, unbound, missing = story.refused
    assert "(line 4" in broken
    assert "QUERY broken" in broken
    assert changed.startswith("query 'pairs' has changed since the checkpoint was made")
    assert unbound.startswith("A has no attribute 'nothing'  (line 5, column ")
    assert missing.startswith(f"there is no query file {file}\nhint: ")
    assert story.said == [
        "query 'sums' is new: its answers are whole from 32 on",
        "query 'pairs' is removed: its open windows are not given out",
        "query 'pairs' is new: its answers are whole from 90 on",
    ]
    assert story.renewals == 3
    every, text = events(0, 240), PAIRS + TOTALS + SUMS
    wanted = rows_of(text, "totals", every)
    wanted += [row for row in rows_of(text, "sums", every) if row["window_start"] >= 32]
    for row in rows_of(text, "pairs", every):
        first, last = (row["events"][at]["time"] for at in (0, -1))
        if last < 59 - DELAY or first >= 90:
            wanted.append(row)
    assert sqlite_rows(tmp_path / "rows.db") == sorted(map(as_text, wanted))
    assert (end.events, end.late, end.results) == (241, 0, len(wanted))
    told = json.loads((tmp_path / "state" / "trendloom.json").read_text())["queries"]
    assert {name: (one["generation"], one["since"]) for name, one in told.items()} == {
        "pairs": (1, 90), "totals": (0, None), "sums": (0, 30),
    }  # fmt: skip


def test_the_command_says_from_when_a_query_is_whole(spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A watched file that was changed between two runs."""
    monkeypatch.chdir(tmp_path)
    words = ["stream", "--watch", "q.tql", "--source", "days", "--checkpoint", "state", "--trigger", "available-now"]
    words += ["--buckets", "2", "--watermark", "2 seconds", "--sink", "sqlite:rows.db/found"]
    put(tmp_path / "days", "1", events(0, 60))
    (tmp_path / "q.tql").write_text(TOTALS)
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.stderr
    assert "is new" not in first.stderr

    put(tmp_path / "days", "2", pa.concat_tables([events(60, 120), END]))
    (tmp_path / "q.tql").write_text(TOTALS + SUMS)
    second = CliRunner().invoke(app, words)
    assert second.exit_code == 0, second.stderr
    assert "note: query 'sums' is new: its answers are whole from 32 on\n" in second.stderr
    every, text = events(0, 120), TOTALS + SUMS
    wanted = rows_of(text, "totals", every)
    wanted += [row for row in rows_of(text, "sums", every) if row["window_start"] >= 32]
    assert sqlite_rows(tmp_path / "rows.db") == sorted(map(as_text, wanted))
