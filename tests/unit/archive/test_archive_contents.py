"""What goes into an archive comes out of it: by type, time and column, by query and partition, whatever the names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.archive.samples import QUERY, archive_of_seconds, events, rows

from trendloom.archive import (
    ArchivedQuery,
    create_archive,
    dimensions_of_events,
    open_archive,
    save_monitor,
    save_query,
    write_events,
    write_results,
)
from trendloom.errors import DataError, OptionError

SECOND = 1_000_000


def test_a_type_has_its_own_columns_and_no_others(tmp_path: Path) -> None:
    archive = open_archive(archive_of_seconds(tmp_path / "a"))
    types = archive.types()
    assert list(types) == ["Load", "Task Start/ä"]
    assert types["Load"].columns == {"node": pa.string(), "idle": pa.float64()}
    assert types["Task Start/ä"].columns == {"node": pa.string(), "job": pa.int64()}
    assert [(one.rows, one.low, one.high) for one in types.values()] == [(50, 0, 98), (50, 1, 99)]
    assert archive.span == (0, 99)


def test_events_of_a_stretch_in_the_order_of_time(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a")
    write_events(root, "second", events(20, 40).slice(3))  # the same times once more, in part
    table = open_archive(root).events("Load", 18, 26, ["idle"])
    assert table.to_pydict() == {"time": [18, 20, 22, 24, 24], "idle": [9, 10, 11, 12, 12]}


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.timestamp("ms", "Asia/Tokyo")])
def test_timestamps_are_moments_and_ticks_are_microseconds(tmp_path: Path, kind: pa.DataType) -> None:
    root = tmp_path / "a"
    create_archive(root, chunk="10 s")
    write_events(root, "first", events(-30, 30, kind))
    archive = open_archive(root)
    assert (archive.unit, archive.chunk, archive.span) == (None, 10 * SECOND, (-30 * SECOND, 29 * SECOND))
    table = archive.events("Load", -5 * SECOND, 5 * SECOND)
    assert table.schema.field("time").type == pa.timestamp("us", "UTC")
    assert pc.divide(table["time"].cast(pa.int64()), SECOND).to_pylist() == [-4, -2, 0, 2, 4]
    assert {file.chunk for file in archive.files} == {-3, -2, -1, 0, 1, 2}


def test_a_stream_of_all_types_for_queries(tmp_path: Path) -> None:
    archive = open_archive(archive_of_seconds(tmp_path / "a"))
    table = archive.stream(10, 14)
    assert table["type"].to_pylist() == ["Load", "Task Start/ä", "Load", "Task Start/ä"]
    assert table["job"].to_pylist() == [None, 11, None, 13]
    assert archive.stream(10, 14, types=["Load"], columns=["job", "idle"]).column_names == ["time", "type", "idle"]
    assert archive.stream(500, 600).num_rows == 0


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../up", "chunk=1", "%2F", "Ünï\n", " ", "x" * 400, "a\\b", "~"]
)
def test_any_name_is_kept_apart_inside_the_folder(tmp_path: Path, name: str) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s")
    save_query(root, ArchivedQuery(name, "RETURN ...", (name,)))
    save_monitor(root, name, {"formula": 1})
    table = pa.table({"time": [1, 2], "type": [name, name + "'"], name: [1, 2]})
    write_events(root, name or "commit", table)
    write_results(root, f"of {name}", ArchivedQuery(name, "RETURN ...", (name,)), pa.table({name: [7], "at": [3]}))
    archive = open_archive(root)
    assert list(archive.types()) == sorted([name, name + "'"])
    assert archive.events(name).to_pydict() == {"time": [1], name: [1]}
    assert archive.results(name, {name: 7}).num_rows == 1
    assert list(archive.monitors()) == [name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_rows_of_a_query_by_partition_and_time(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a")
    write_results(root, "r1", QUERY, rows([30, 10, 20, 10], ["n1", "n1", "n2", "n2"]))
    write_results(root, "r2", QUERY, rows([5], ["n1"]))
    archive = open_archive(root)
    assert archive.results("load")["at"].to_pylist() == [5, 10, 10, 20, 30]
    assert archive.results("load", {"node": "n1"})["at"].to_pylist() == [5, 10, 30]
    assert archive.results("load", {"node": "n1"}, 10, 30)["mean"].to_pylist() == [5.0]
    assert archive.results("load", {"node": None}).num_rows == 0
    assert archive.results("load", {"node": 3.5}).num_rows == 0


def test_partitions_have_a_span_points_and_what_never_changes_in_them(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a")
    seen = pa.table({"node": ["n1", "n1", "n2", None], "rack": ["r1", "r1", "r2", "r9"], "user": ["u", "v", "u", "w"]})
    write_results(
        root,
        "r1",
        QUERY,
        rows([30, 10, 20], ["n1", "n1", "n2"]),
        dimensions_of_events(seen, ["node"], ["rack", "user"]),
    )
    table = open_archive(root).partitions("load")
    assert table.to_pylist() == [
        {"node": "n1", "rack": "r1", "first": 10, "last": 30, "points": 2},
        {"node": "n2", "rack": "r2", "first": 20, "last": 20, "points": 1},
    ]


def test_a_dimension_that_has_two_values_in_two_commits_is_none(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a")
    for number, rack in enumerate(["r1", "r2"]):
        seen = pa.table({"node": ["n1"], "rack": [rack], "site": ["s"]})
        parts = dimensions_of_events(seen, ["node"], ["rack", "site"])
        write_results(root, f"r{number}", QUERY, rows([10 + number], ["n1"]), parts)
    assert open_archive(root).partitions("load").to_pylist() == [
        {"node": "n1", "site": "s", "first": 10, "last": 11, "points": 2}
    ]


def test_values_of_other_types_in_later_commits_are_widened(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s")
    for number, x in enumerate([pa.array([1], pa.int32()), pa.array([2.5]), pa.array([None], pa.float64())]):
        write_events(root, str(number), pa.table({"time": [number], "type": ["A"], "x": x}))
    assert open_archive(root).events("A")["x"].to_pylist() == [1.0, 2.5, None]


def test_nan_is_null_and_dictionaries_are_texts(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s")
    text = pa.array(["p", "q"]).dictionary_encode()
    write_events(root, "c", pa.table({"time": [1, 2], "type": text, "x": [float("nan"), 1.0], "t": text}))
    assert open_archive(root).events("p").to_pylist() == [{"time": 1, "t": "p"}]  # x is NULL in all events of type p
    assert open_archive(root).events("q").to_pylist() == [{"time": 2, "x": 1.0, "t": "q"}]


# ------------------------------------------------------------------------------------------------- what is not there


def test_an_archive_without_anything(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s")
    write_events(root, "c", events(0, 0))
    save_query(root, QUERY)
    archive = open_archive(root)
    assert (archive.types(), archive.monitors()) == ({}, {})
    assert archive.results("load").to_pydict() == {"at": [], "node": [], "mean": []}
    assert archive.partitions("load").column_names == ["first", "last", "node", "points"]
    with pytest.raises(DataError, match="has no events"):
        _ = archive.span
    with pytest.raises(DataError, match="has no type 'Load'"):
        archive.events("Load")


def test_what_is_missing_is_named_with_what_there_is(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a")
    save_query(root, QUERY)
    archive = open_archive(root)
    with pytest.raises(DataError, match="no type 'Laod'\nhint: did you mean 'Load'"):
        archive.events("Laod")
    with pytest.raises(DataError, match="no column 'idel'\nhint: did you mean 'idle'"):
        archive.events("Load", columns=["idel"])
    with pytest.raises(DataError, match="no query 'lode'\nhint: did you mean 'load'"):
        archive.results("lode")
    with pytest.raises(OptionError, match="no partition attribute 'nodes'\nhint: did you mean 'node'"):
        archive.results("load", {"nodes": "n1"})


def test_what_is_not_an_archive_is_not_opened_and_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        open_archive(tmp_path / "nowhere")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("you")
    with pytest.raises(DataError, match=r"it has no archive\.json"):
        open_archive(tmp_path / "letters")
    with pytest.raises(OptionError, match="is not an archive"):
        create_archive(tmp_path / "letters")
    with pytest.raises(DataError, match="it is not a folder"):
        open_archive(tmp_path / "letters" / "dear.txt")


def test_an_archive_keeps_to_what_it_was_made_for(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a")
    with pytest.raises(OptionError, match="chunks of so many ticks: 10, not 3600"):
        create_archive(root, unit="s")
    with pytest.raises(OptionError, match="times that count 's', not timestamps"):
        create_archive(root, chunk="10 s")
    with pytest.raises(DataError, match="times of this archive are int64"):
        write_events(root, "c", events(0, 4, pa.timestamp("us")))
    save_query(root, QUERY)
    with pytest.raises(OptionError, match="another query 'load' already"):
        save_query(root, ArchivedQuery("load", "RETURN something else"))
    assert create_archive(root, unit="s", chunk=10, retention="1 min").settings.retention == 60


@pytest.mark.parametrize(
    ("chunk", "message"),
    [("soon", "is not a duration"), ("-1 h", "is not a duration"), ("10", "a plain number is not a duration"),
     ("0 s", "at least 1"), ("0.1 us", "at least 1")],
)  # fmt: skip
def test_a_chunk_is_a_duration(tmp_path: Path, chunk: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        create_archive(tmp_path / "a", chunk=chunk)
    assert not (tmp_path / "a").exists()
