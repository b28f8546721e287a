"""Reading a stretch opens the files of that stretch and reads the row groups that may hold it: both are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.archive.samples import QUERY, archive_of_seconds, events

from trendloom.archive import create_archive, data_files, open_archive, write_events, write_results, writing


class Tally(pq.ParquetFile):  # type: ignore[misc]
    """Counts what is opened and read."""

    opened: list[str] = []  # noqa: RUF012
    groups: list[int] = []  # noqa: RUF012
    columns: list[list[str]] = []  # noqa: RUF012

    def __init__(self, path: Path, **options: Any) -> None:
        self.opened.append(path.name)
        super().__init__(path, **options)

    def read_row_groups(self, groups: list[int], columns: list[str]) -> pa.Table:
        self.groups.append(len(groups))
        self.columns.append(columns)
        return super().read_row_groups(groups, columns=columns)


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> type[Tally]:
    Tally.opened, Tally.groups, Tally.columns = [], [], []
    monkeypatch.setattr(data_files.pq, "ParquetFile", Tally)
    return Tally


def test_only_files_of_the_stretch_are_opened(tmp_path: Path, tally: type[Tally]) -> None:
    archive = open_archive(archive_of_seconds(tmp_path / "a", stop=1000, chunk=10))
    assert len(archive.files) == 200
    assert archive.events("Load", 95, 121).num_rows == 13
    assert len(tally.opened) == 4  # [90, 100) to [120, 130)
    tally.opened.clear()
    assert archive.events("Load", 2000, 3000).num_rows == 0
    assert tally.opened == []


def test_only_row_groups_of_the_stretch_are_read(
    tmp_path: Path, tally: type[Tally], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROWS_IN_GROUP", 50)
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=10_000)
    write_events(root, "first", events(0, 2000))
    archive = open_archive(root)
    assert archive.events("Load", 500, 620)["time"].to_pylist() == list(range(500, 620, 2))
    assert (len(tally.opened), tally.groups) == (1, [2])  # of twenty


def test_only_columns_that_are_asked_for_are_read(tmp_path: Path, tally: type[Tally]) -> None:
    archive = open_archive(archive_of_seconds(tmp_path / "a"))
    archive.events("Load", 0, 10, ["idle"])
    assert tally.columns == [["time", "idle"]]


def test_statistics_leave_out_other_partitions(
    tmp_path: Path, tally: type[Tally], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROWS_IN_GROUP", 10)
    root = archive_of_seconds(tmp_path / "a", chunk=1000)
    nodes = [f"n{number % 10}" for number in range(100)]
    write_results(root, "r", QUERY, pa.table({"node": nodes, "mean": [1.0] * 100, "at": list(range(100))}))
    found = open_archive(root).results("load", {"node": "n3"})
    assert found["at"].to_pylist() == list(range(3, 100, 10))
    assert tally.groups == [1]  # of ten: rows of a partition lie side by side


def test_footers_of_times_before_1970_are_compared_as_numbers(tmp_path: Path, tally: type[Tally]) -> None:
    root = tmp_path / "a"
    create_archive(root, chunk="1 d")
    write_events(root, "first", events(-50, 50, pa.timestamp("us")))
    archive = open_archive(root)
    assert archive.events("Load", -10_000_000, -6_000_000).num_rows == 2
    assert (len(archive.files), len(tally.opened)) == (4, 1)
