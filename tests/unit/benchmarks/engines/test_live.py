"""The benchmark of live streams notices wrong answers: rows that are missing, double or made up."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.cases.events import same_rows
from benchmarks.engines.live import RUNS, WITHIN, is_part, write_batches
from benchmarks.peers.flink.workload import events_for_flink, expected_rows

import trendloom as tl

EXPECTED = pa.table({"key": [1, 2, 3, 4], "n": [1, 1, 2, 2], "mean": [0.5, 0.5, 0.5, 0.5]})


def test_the_end_of_a_stream_may_be_missing() -> None:
    assert is_part(EXPECTED, EXPECTED)
    assert is_part(EXPECTED.slice(0, 3), EXPECTED)


def test_more_may_not_be_missing_and_nothing_may_be_double_or_wrong() -> None:
    assert not is_part(EXPECTED.slice(0, 2), EXPECTED)
    assert not is_part(pa.concat_tables([EXPECTED, EXPECTED.slice(0, 1)]), EXPECTED)
    assert not is_part(EXPECTED.set_column(1, "n", pa.array([1, 1, 2, 3])), EXPECTED)


def test_both_systems_are_asked_the_same() -> None:
    """What NumPy expects of Flink is what our query gives."""
    events = events_for_flink(20_000, 300)
    found = tl.run(RUNS.format(semantics="contiguous"), events, engine="local")
    assert same_rows(found, expected_rows(events, WITHIN))


def test_batches_are_files_in_order(tmp_path: Path) -> None:
    events = events_for_flink(1_000, 5)
    write_batches(tmp_path / "events", events, 4)
    files = sorted((tmp_path / "events").iterdir(), key=lambda path: (path.stat().st_mtime, path.name))
    assert len(files) == 8
    assert pa.concat_tables([pq.read_table(file) for file in files]).equals(events)
