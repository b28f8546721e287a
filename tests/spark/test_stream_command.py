"""`trendloom stream` from end to end: as a process that is stopped and started again, and with sinks that fail."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from tests.conftest import QUICK_SPARK
from tests.spark.processes import environment
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.engines.spark.streaming.service import Service, StreamWatch, serve
from trendloom.engines.spark.streaming.sources import open_source, parse_source
from trendloom.spark import detect, to_jsonl, to_parquet, to_sqlite
from trendloom.streaming.statistics import figures_at

QUERY = """
QUERY pairs: PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10
QUERY totals: RETURN k, COUNT(*), SUM(B.x) PATTERN SEQ(A, B+) WHERE [k] GROUP BY k WITHIN 10 SLIDE 5
"""
WORDS = ["--source", "days", "--sink", "sqlite:rows.db/found", "--checkpoint", "state", "--watermark", "2 seconds",
         "--buckets", "2", "--metrics", "stream.prom", "--late-to", "late"]  # fmt: skip
PATIENCE = 120
"""Seconds after which a process that does not do what is awaited has failed."""


def events(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "time": [number // 2 for number in numbers],
            "type": ["ABBA"[number % 4] for number in numbers],
            "k": [number % 3 for number in numbers],
            "x": [number * 7 % 11 for number in numbers],
        }
    )


END = pa.table({"time": [100_000], "type": ["Z"], "k": [0], "x": [0]})
"""Moves the watermark past all there is."""


def put(folder: Path, name: str, table: pa.Table) -> None:
    """A file that appears whole."""
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f".{name}")
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def wanted_rows(table: pa.Table) -> list[str]:
    found = [
        {"query": name, **row} for name in ("pairs", "totals") for row in tl.run(QUERY, table, query=name).to_pylist()
    ]
    return sorted(as_text(row) for row in found)


def as_text(row: dict[str, Any]) -> str:
    """A row without what only other queries have, whatever a sink made of its types."""
    read = {
        key: json.loads(value) if key == "events" and isinstance(value, str) else value for key, value in row.items()
    }
    return json.dumps({key: value for key, value in read.items() if value is not None}, sort_keys=True, default=int)


def sqlite_rows(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return sorted(as_text(dict(row)) for row in connection.execute("SELECT * FROM found"))
    except sqlite3.OperationalError:  # no row yet, so no table
        return []
    finally:
        connection.close()


# ------------------------------------------------------------------------------------- a process of its own


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start the command over the folder `days`; in a group of its own, as a terminal would."""
    (tmp_path / "q.tql").write_text(QUERY)
    own = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
    own += [word for name, value in QUICK_SPARK.items() for word in ("--conf", f"{name}={value}")]
    started: list[subprocess.Popen[str]] = []

    def call() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trendloom", "stream", "q.tql", *WORDS, *own]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(), start_new_session=True, **pipes)  # type: ignore[call-overload]
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def await_that(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.1)


def test_stopped_and_started_again_every_row_is_there_once(
    start: Callable[[], subprocess.Popen[str]], spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process is stopped, and another, which has Spark already, goes on where it was."""
    days, rows = tmp_path / "days", tmp_path / "rows.db"
    put(days, "1", events(0, 60))
    process = start()
    await_that(lambda: len(sqlite_rows(rows)) > 0, process)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
    out, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, ""), said
    assert said.splitlines()[0] == "note: starting Spark"
    assert said.splitlines()[-1].startswith("note: stopped after 2 batches: 60 events, ")
    assert "batch 1 · 0 events in " in said
    assert "trendloom_events_total 60\n" in (tmp_path / "stream.prom").read_text()

    put(days, "2", pa.concat_tables([events(60, 120), events(0, 2)]))  # two events that are too late
    put(days, "3", END)
    wanted = wanted_rows(events(0, 120))
    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(app, ["stream", "q.tql", *WORDS, "--trigger", "available-now"])
    assert again.exit_code == 0, again.stderr
    assert sqlite_rows(rows) == wanted
    late = pq.read_table(tmp_path / "late").to_pylist()
    assert sorted((row["query"], row["time"], row["type"]) for row in late) == [
        ("pairs", 0, "A"), ("pairs", 0, "B"), ("totals", 0, "A"), ("totals", 0, "B"),
    ]  # fmt: skip
    assert ", 4 late" in again.stderr.splitlines()[-1]


# --------------------------------------------------------------------------------------- in this process


def test_a_sink_that_fails_twice_loses_nothing_and_doubles_nothing(spark: Any, tmp_path: Path) -> None:
    """It fails once before it writes and once after, and is all kinds of sinks at once."""
    put(tmp_path / "days", "1", pa.concat_tables([events(0, 60), END]))
    sinks = [
        to_parquet(str(tmp_path / "parquet")),
        to_jsonl(str(tmp_path / "jsonl")),
        to_sqlite(str(tmp_path / "rows.db"), "found"),
    ]
    attempts: list[int] = []
    told: list[str] = []

    def sink(rows: Any, batch: int) -> None:
        attempts.append(batch)
        kept = rows.persist()  # three sinks ask for the rows
        if attempts.count(1) == 1 and batch == 1:
            raise OSError("the share is away")
        for one in sinks:
            one(kept, batch)
        kept.unpersist()
        if attempts.count(1) == 2 and batch == 1:
            raise OSError("the share is away again")

    state = str(tmp_path / "state")
    found = open_source(spark, parse_source(str(tmp_path / "days")))
    rows = detect(found, QUERY, watermark="2 seconds", buckets=2, checkpoint=state)
    service = Service(state, trigger="available-now", pause=0.01)
    end = serve(rows, sink, service, Event(), StreamWatch(failed=lambda error, _: told.append(error.message)))
    wanted = wanted_rows(events(0, 60))
    assert attempts == [0, 1, 1, 1]
    assert told == ["the stream failed: the share is away", "the stream failed: the share is away again"]
    assert end.results == len(wanted) > 20
    kept = figures_at(state)  # of every batch once, though one was done three times
    assert (kept.batch, kept.events, kept.first, kept.last) == (1, 61, 0, 100_000_000_000)
    assert (kept.types, kept.keys) == ({"A": 30, "B": 30}, {("k",): 3})
    assert sqlite_rows(tmp_path / "rows.db") == wanted
    lines = [line for path in (tmp_path / "jsonl").iterdir() for line in path.read_text().splitlines()]
    assert sorted(as_text(json.loads(line)) for line in lines) == wanted
    table = pq.read_table(tmp_path / "parquet")
    assert sorted(as_text(row) for row in table.drop_columns(["batch"]).to_pylist()) == wanted
    assert len(list((tmp_path / "parquet").iterdir())) == 1  # no folder for the batch without rows


@pytest.fixture
def stream(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command on the session of the tests: all there is in `days`, then the end."""
    monkeypatch.chdir(tmp_path)
    fixed = ["--source", "days", "--checkpoint", "state", "--trigger", "available-now", "--buckets", "2"]

    def call(*words: str, text: str = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3") -> Result:
        return CliRunner().invoke(app, ["stream", "-", *fixed, *words], input=text)

    return call


def test_rows_on_the_console_and_what_a_checkpoint_refuses(stream: Callable[..., Result], tmp_path: Path) -> None:
    put(tmp_path / "days", "1", pa.concat_tables([events(0, 12), END]))
    result = stream()
    assert result.exit_code == 0, result.stderr
    wanted = tl.run("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3", events(0, 12)).to_pylist()
    assert sorted(result.stdout.splitlines()) == sorted(json.dumps(row) for row in wanted)
    assert result.stderr.splitlines()[-1] == f"note: ended after 2 batches: 13 events, {len(wanted)} rows, 0 late"

    explained = CliRunner().invoke(
        app, ["explain", "-", "--checkpoint", "state"], input="PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3"
    )
    assert "13 events, about " in explained.stdout
    assert ", by earlier micro-batches" in explained.stdout

    changed = stream(text="PATTERN SEQ(A a, C b) WHERE [k] WITHIN 3")
    assert (changed.exit_code, changed.stdout) == (2, "")
    assert "has changed since the checkpoint was made" in changed.stderr

    (tmp_path / "state" / "offsets" / "1").write_text("")
    (tmp_path / "state" / "offsets" / ".1.crc").unlink()
    broken = stream()
    assert (broken.exit_code, broken.stdout) == (1, "")
    assert f"error: the checkpoint {tmp_path}/state cannot be read: " in broken.stderr
    assert "hint: put back a copy" in broken.stderr

    (tmp_path / "state" / "trendloom.json").write_text("{{")
    garbled = stream()
    assert (garbled.exit_code, garbled.stdout) == (1, "")
    assert "the checkpoint cannot be read: " in garbled.stderr
    assert "trendloom.json: " in garbled.stderr

    foreign = tmp_path / "foreign"
    (foreign / "offsets").mkdir(parents=True)
    other = stream("--checkpoint", "foreign")
    assert (other.exit_code, "not one of Trendloom's" in other.stderr) == (2, True)


def test_columns_order_events_of_one_time(stream: Callable[..., Result], tmp_path: Path) -> None:
    lines = pa.table({"time": [1, 1, 1, 2, 2], "type": list("BABAB"), "k": [0] * 5, "x": [3, 2, 1, 5, None]})
    put(tmp_path / "days", "1", pa.concat_tables([lines, END]))
    result = stream("--order", "x")
    assert result.exit_code == 0, result.stderr
    wanted = tl.run("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3", lines, order="x").to_pylist()
    assert [[event["x"] for event in row["events"]] for row in wanted] == [[2, 3], [2, None]]
    assert sorted(result.stdout.splitlines()) == sorted(json.dumps(row) for row in wanted)
    other = stream("--order", "k")
    assert (other.exit_code, "has changed since the checkpoint was made" in other.stderr) == (2, True)


def test_an_error_of_a_task_is_ours_and_is_not_tried_again(stream: Callable[..., Result], tmp_path: Path) -> None:
    untimed = pa.table({"time": pa.array([1, None], pa.int64()), "type": ["A", "B"], "k": [0, 0]})
    put(tmp_path / "days", "1", untimed)
    result = stream()
    assert result.exit_code == 1
    assert [line for line in result.stderr.splitlines() if not line.startswith("batch")] == [
        "note: starting Spark",
        "error: 1 events have no time",
        "hint: give --late-to FOLDER: they are put there, and counted",
    ]
