"""What people see of a live stream: rows, a line per batch, the table on a terminal, the file of metrics."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from rich.console import Console

from trendloom.cli.live import _totals as totals
from trendloom.cli.watch import Rows, Screen, console_of, duration, line, size, status, watching
from trendloom.engines.spark.streaming.metrics import Metrics
from trendloom.errors import RunError
from trendloom.options import Options
from trendloom.runtime.reading import schema_of_columns

SCHEMA = schema_of_columns(pa.schema([("time", pa.int64()), ("type", pa.string())]), Options())
NOON = 1_700_000_000.0
BUSY = Metrics(
    batch=7, batches=3, events=12_000, late=2, untimed=1, results=40, batch_events=5_000, batch_results=9,
    batch_seconds=2.5, events_per_second=2_000.0, watermark=NOON, state_rows=16, state_bytes=1_500_000,
)  # fmt: skip
EVENT = {"time": 1, "type": "A", "var": "a"}


def test_a_batch_in_one_line() -> None:
    assert line(BUSY, NOON + 30) == (
        "batch 7 · 5,000 events in 2.5 s (2,000/s) · 9 rows · watermark 2023-11-14 22:13:20 (30 s behind)"
        " · state 16 rows, 1.5 MB · late 2 · without a time 1"
    )


def test_before_the_first_watermark_there_is_no_lag() -> None:
    assert "watermark none yet · " in line(Metrics(batch=0, batches=1), NOON)


def test_times_that_do_not_count_from_1970_have_no_lag() -> None:
    assert "behind" not in line(Metrics(watermark=40.0), NOON)


def test_the_table_on_a_terminal() -> None:
    screen = Screen(wanted=True, metrics=None, name="rate:5 → console", last=BUSY, trouble="database is locked")
    paper = Console(file=io.StringIO(), width=100)
    paper.print(status(screen, NOON + 600))
    shown = paper.file.getvalue()  # type: ignore[attr-defined]
    for part in (
        "rate:5",
        "7 in 2.5 s",
        "12,000, 2,000 a second",
        "40, 9 in the last",
        "10 min behind",
        "2, 1 without",
    ):
        assert part in shown
    assert "database is locked" in shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e13, "25.0 TB")])
def test_sizes(count: float, shown: str) -> None:
    assert size(int(count)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-3, "0 s"), (90, "90 s"), (600, "10 min"), (7200, "2 h"), (1e6, "11 d")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_the_last_line() -> None:
    assert totals(BUSY, stopped=True) == "stopped after 3 batches: 12,000 events, 40 rows, 2 late, 1 without a time"
    assert (
        totals(Metrics(batches=1, events=1, results=1), stopped=False) == "ended after 1 batch: 1 event, 1 row, 0 late"
    )


def test_metrics_are_written_after_every_batch(tmp_path: Path) -> None:
    file = tmp_path / "m.prom"
    with watching(Screen(wanted=False, metrics=str(file), name="")) as watch:
        watch.batch(BUSY)
        assert "trendloom_events_total 12000\n" in file.read_text()
        watch.batch(Metrics(events=12_001))
        assert "trendloom_events_total 12001\n" in file.read_text()
    assert list(tmp_path.iterdir()) == [file]


def test_metrics_that_cannot_be_written_do_not_stop_the_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watching(Screen(wanted=True, metrics=str(tmp_path / "gone" / "m.prom"), name="")) as watch:
        watch.batch(BUSY)
    said = capsys.readouterr().err
    assert "cannot be written: No such file" in said
    assert "batch 7" in said


def test_a_failure_that_is_tried_again_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(Screen(wanted=True, metrics=None, name="")) as watch:
        watch.failed(RunError("database is locked", hint="wait"), 2.0)
    assert capsys.readouterr().err == "warning: database is locked; tried again in 2 s\n"


# ----------------------------------------------------------------------------------------------------- rows


def test_rows_are_json_lines_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    rows = console_of(None, SCHEMA, Event())
    rows(pa.table({"k": [1, 2], "COUNT(*)": [5, 6]}), 0)
    assert [json.loads(one) for one in capsys.readouterr().out.splitlines()] == [
        {"k": 1, "COUNT(*)": 5},
        {"k": 2, "COUNT(*)": 6},
    ]


def test_rows_of_a_workload_as_tables_without_columns_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows("table", SCHEMA, Event())
    rows(pa.table({"query": ["m", "c"], "events": [[EVENT], None], "COUNT(*)": [None, 12345]}), 0)
    first, second = capsys.readouterr().out.split("\n\n")[:2]
    assert "a:@1" in first or "a:A@1" in first
    assert "COUNT(*)" not in first
    assert "12345" in second
    assert "events" not in second


def test_a_batch_without_rows_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Rows("table", SCHEMA, Event())(pa.table({"k": pa.array([], pa.int64())}), 0)
    assert capsys.readouterr().out == ""


def test_a_reader_that_has_seen_enough_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    stop = Event()
    rows = Rows("jsonl", SCHEMA, stop)
    rows(pa.table({"k": [1]}), 0)
    assert (rows.broken, stop.is_set()) == (True, True)
