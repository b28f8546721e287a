"""What Parquet footers tell equals what reading the rows tells, and nothing is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough

from trendloom.engines.introspection import schema_of
from trendloom.io.parquet import ParquetFiles
from trendloom.logical.statistics import Origin, Statistics
from trendloom.options import Options
from trendloom.runtime.reading import opened
from trendloom.runtime.statistics import statistics_of_footers

ROWS = st.lists(
    st.tuples(st.sampled_from("AB"), st.integers(-5, 50), st.one_of(st.none(), st.integers(0, 3))), max_size=30
)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = {"type": pa.string(), "time": pa.int64(), "x": pa.int64()}
    return pa.table({name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(kinds.items())})


def statistics(path: Path) -> Statistics:
    files = opened(path, Options())
    assert isinstance(files, ParquetFiles)
    return statistics_of_footers(files, schema_of(path, Options())[1])


def test_they_are_those_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"

    @thorough(amount(50))
    @given(ROWS, st.integers(1, 10))
    def compare(rows: list[tuple[Any, ...]], size: int) -> None:
        pq.write_table(table_of(rows), path, row_group_size=size)
        found = statistics(path)
        assert found.origin is Origin.FOOTERS
        assert found.events == len(rows)
        times = [row[1] for row in rows]
        assert (found.first, found.last) == ((min(times), max(times)) if times else (None, None))
        groups = [{row[0] for row in rows[at : at + size]} for at in range(0, len(rows), size)]
        told = {kind: sum(row[0] == kind for row in rows) for kind in sorted({row[0] for row in rows})}
        assert found.types == (told if all(len(group) == 1 for group in groups) else {})
        assert not found.fitting
        assert not found.keys

    compare()


def test_timestamps_are_ticks(tmp_path: Path) -> None:
    times = pa.array([5_000_000, 1_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"type": ["A", "A"], "time": times}), tmp_path / "events.parquet")
    found = statistics(tmp_path / "events.parquet")
    assert (found.first, found.last, found.types) == (1_000_000, 5_000_000, {"A": 2})


def test_files_without_statistics_tell_rows_only(tmp_path: Path) -> None:
    pq.write_table(table_of([("A", 1, None)]), tmp_path / "events.parquet", write_statistics=False)
    found = statistics(tmp_path / "events.parquet")
    assert (found.events, found.first, found.last, found.types) == (1, None, None, {})


def test_folders_tell_types(tmp_path: Path) -> None:
    for kind, rows in (("A", 3), ("B", 2)):
        folder = tmp_path / f"type={kind}"
        folder.mkdir()
        pq.write_table(pa.table({"time": list(range(rows))}), folder / "part.parquet")
    assert statistics(tmp_path).types == {"A": 3, "B": 2}
