"""Monitors over live events: each alert once, across restarts and failures, and those that the archive would show."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.streams import write_batch
from tests.unit.engines.archived_runs import archive_of_runs, events_of_runs, in_dates
from typer.testing import CliRunner

from trendloom.cli.main import app
from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.formula import Formula, Predicate
from trendloom.diagnosis.monitors import Grade, Monitor, keep_monitor, run_monitor
from trendloom.engines.spark.monitors import NOTE, live_alerts
from trendloom.engines.spark.streaming.service import AVAILABLE_NOW, Service, serve
from trendloom.engines.spark.streaming.sources import open_source, parse_source
from trendloom.errors import DataError, OptionError, StateError
from trendloom.model.time import TimeAxis
from trendloom.options import Options
from trendloom.spark import to_parquet

SECONDS = TimeAxis.integer("s")
LOW = Feature("Memory", "free", "mean", None, 30, "30 s")
STOPPED = Feature("Load", None, "count", ("node", "n1"), 60, "60 s")
FORMULA = Formula(((Predicate(LOW, "<=", 50.0),), (Predicate(STOPPED, ">=", 1.0),)))
MONITOR = Monitor("memory low", FORMULA, "", Grade(0, 0, 0), {})


def rows_of(
    spark: Any, folder: Path, checkpoint: Path, monitors: tuple[Monitor, ...] = (MONITOR,), axis: TimeAxis = SECONDS
) -> Any:
    events = open_source(spark, parse_source(f"parquet:{folder}"))
    options = Options(engine="spark")
    rows, _ = live_alerts(events, monitors, axis, options, watermark="20 seconds", checkpoint=str(checkpoint))
    return rows


def given_out(folder: Path) -> list[dict[str, Any]]:
    found = [pq.read_table(path, partitioning=None) for path in sorted(folder.glob("batch=*/*.parquet"))]
    return sorted(pa.concat_tables(found).to_pylist(), key=lambda row: row["window_start"])


@dataclass
class FailingOnce:
    """A sink that has written a batch when it fails, so that Spark does the batch again."""

    sink: Callable[[Any, int], None]
    at: int
    calls: list[int] = field(default_factory=list)

    def __call__(self, rows: Any, batch: int) -> None:
        self.sink(rows, batch)
        self.calls.append(batch)
        if batch == self.at and self.calls.count(batch) == 1:
            raise OSError("no space left")


def test_alerts_come_once_across_failures_and_restarts(spark: Any, tmp_path: Path) -> None:
    events = events_of_runs()
    days, sink, checkpoint = tmp_path / "days", tmp_path / "alerts", tmp_path / "state"
    service = Service(str(checkpoint), AVAILABLE_NOW, retries=2, pause=0.01)
    end = pa.Table.from_pylist([{"type": "Step", "time": 100_000}], events.schema)
    cuts = [0, 700, 1100, 1500, len(events)]
    parts = [events.slice(low, high - low) for low, high in pairwise(cuts)]
    for number, part in enumerate(parts[:2]):
        write_batch(days, number, part)
    serve(rows_of(spark, days, checkpoint), to_parquet(str(sink)), service, Event())
    before = len(given_out(sink))
    for number, part in enumerate([*parts[2:], end], start=2):
        write_batch(days, number, part)
    failing = FailingOnce(to_parquet(str(sink)), 3)
    serve(rows_of(spark, days, checkpoint), failing, service, Event())
    assert failing.calls.count(3) == 2
    wanted = run_monitor(archive_of_runs(tmp_path / "archive", events), MONITOR).to_pylist()
    found = given_out(sink)
    assert 0 < before < len(found)
    assert [row["window_start"] for row in found] == [row["window_start"] for row in wanted]
    for row, other in zip(found, wanted, strict=True):
        assert row == pytest.approx(other)

    changed = Monitor("memory low", Formula(FORMULA.clauses[:1]), "", Grade(0, 0, 0), {})
    with pytest.raises(StateError, match="of monitors with other formulas"):
        rows_of(spark, days, checkpoint, (changed,))


def test_the_command_watches_several_monitors_over_dates_where_the_archive_has_seconds(
    spark: Any, tmp_path: Path
) -> None:
    events = events_of_runs(3)
    end = pa.Table.from_pylist([{"type": "Step", "time": 100_000}], events.schema)
    for number, part in enumerate((events, end)):
        write_batch(tmp_path / "days", number, in_dates(part))
    archive = archive_of_runs(tmp_path / "archive", events)
    busy = Monitor("always", Formula(((Predicate(STOPPED, ">=", 1.0),),)), "", Grade(0, 0, 0), {})
    for one in (MONITOR, busy):
        keep_monitor(archive, one)
    done = CliRunner().invoke(
        app,
        [
            "stream", "--monitor", MONITOR.name, "--monitor", busy.name, "--archive", str(archive.root),
            "--source", f"parquet:{tmp_path / 'days'}", "--sink", f"jsonl:{tmp_path / 'alerts'}",
            "--checkpoint", str(tmp_path / "state"), "--trigger", "available-now",
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "memory low: Memory.free mean over 30 s <= 50" in done.stderr
    rows = [json.loads(line) for path in (tmp_path / "alerts").glob("*.jsonl") for line in path.open()]
    for one in (MONITOR, busy):
        wanted = in_dates(run_monitor(archive, one).rename_columns({"window_start": "time"}))["time"].to_pylist()
        found = sorted(datetime.fromisoformat(row["window_start"]) for row in rows if row["monitor"] == one.name)
        assert found == wanted


def test_what_cannot_be_watched_is_refused(spark: Any, tmp_path: Path) -> None:
    write_batch(tmp_path / "days", 0, events_of_runs(1).drop_columns(["free"]))
    with pytest.raises(OptionError, match="needs a column 'free'"):
        rows_of(spark, tmp_path / "days", tmp_path / "state")
    write_batch(tmp_path / "whole", 0, events_of_runs(1))
    (tmp_path / "other" / "offsets").mkdir(parents=True)
    with pytest.raises(StateError, match="is of another stream"):
        rows_of(spark, tmp_path / "whole", tmp_path / "other")
    with pytest.raises(DataError, match="not a whole number of the live events' time units"):
        rows_of(spark, tmp_path / "whole", tmp_path / "state", axis=TimeAxis.integer("ms"))
    assert not (tmp_path / "state" / NOTE).exists()
    rows_of(spark, tmp_path / "whole", tmp_path / "state")
    assert list(json.loads((tmp_path / "state" / NOTE).read_text())) == ["memory low"]
