"""Rows of queries as series: when they are, whose, what they measure; and which queries cannot be drawn over time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.archive import compact, open_archive
from trendloom.archive.requests import ArchiveRequest, commit_name
from trendloom.archive.result_series import ArchivedSeries, series_of
from trendloom.engines.local.archive import archive_locally
from trendloom.errors import BindError, OptionError
from trendloom.options import Options
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import for_queries, load, queries_of

EVENTS = pa.table(
    {
        "time": [1, 2, 3, 4, 5, 6],
        "type": ["A", "B", "A", "B", "C", "A"],
        "k": [1, 1, 2, 2, 1, 2],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "at": [7, 7, 7, 7, 7, 7],
        "first": ["f"] * 6,
        "site": ["s1", "s1", "s2", "s2", "s1", "s2"],
    }
)


def series(text: str, table: pa.Table = EVENTS, dimensions: tuple[str, ...] = ()) -> ArchivedSeries:
    queries = queries_of(text)
    options = for_queries(Options(), queries)
    events = load(table, options)
    (physical,) = planned(queries, events.schema).queries
    return series_of(physical, events.table.schema, "exact", None, dimensions)


@pytest.mark.parametrize(
    ("text", "at", "keys", "values", "measured"),
    [
        ("RETURN k, COUNT(*), SUM(B.x) AS s PATTERN SEQ(A+, B) WHERE [k] GROUP BY k WITHIN 4 SLIDE 2",
         "window_end", ("k",), ("COUNT(*)", "s"), (("A", None), ("B", None), ("B", "x"))),
        ("RETURN COUNT(A) PATTERN SEQ(A+, B) WHERE [k] WITHIN 4 SLIDE 2", "window_end", (), ("COUNT(A)",),
         (("A", None),)),
        ("RETURN a.x, b.time, a.time PATTERN SEQ(A a, B b) WHERE [k]", "b.time", ("k",), ("a.x",),
         (("A", "x"),)),
        ("RETURN sum(b[].x) + a.x AS all, max(b[].time) AS last PATTERN SEQ(A a, B+ b[])", "last", (), ("all",),
         (("B", "x"), ("A", "x"))),
        ("PATTERN SEQ(A a, B b) WHERE [k]", "events", ("k",), (), ()),
        ("RETURN a.time AS at PATTERN SEQ(A a, B b)", "at", (), (), ()),
    ],
)  # fmt: skip
def test_when_rows_are_whose_and_what_they_measure(
    text: str, at: str, keys: tuple[str, ...], values: tuple[str, ...], measured: tuple[tuple[str, str | None], ...]
) -> None:
    found = series(text)
    assert (found.at, found.query.keys, found.query.values, found.query.measured) == (at, keys, values, measured)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RETURN a.x PATTERN SEQ(A a, B b)", "hint: add a time to RETURN"),
        ("RETURN COUNT(*) PATTERN SEQ(A, B)", "hint: give it windows"),
        ("QUERY q: RETURN a.x AS at, a.time PATTERN A a", "query q: it gives out a column 'at'"),
        ("PATTERN SEQ(A a, B b) WHERE [first]", "'first' is a column of the table of partitions"),
    ],
)
def test_a_query_that_is_no_series_is_refused_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(BindError, match="it") as told:
        series(text)
    assert message in str(told.value)


def test_columns_of_text_may_be_dimensions_and_others_that_are_named() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE [k]"
    assert series(text).candidates == ("site",)
    assert series(text, dimensions=("at",)).candidates == ("at", "site")
    assert series("PATTERN SEQ(A a, B b)").candidates == ()  # one partition: there is none to tell it from


def test_a_row_of_all_events_is_at_its_last_one() -> None:
    text = "PATTERN SEQ(A a, B b) SEMANTICS skip-till-next-match WHERE [k]"
    placed = series(text).placed(tl.run(text, EVENTS))
    assert dict(zip(placed["k"].to_pylist(), placed["at"].to_pylist(), strict=True)) == {1: 2, 2: 4}


def test_counts_of_spark_are_whole_numbers_where_they_fit() -> None:
    found = series("RETURN COUNT(*) PATTERN A WITHIN 4 SLIDE 2")
    rows = pa.table({"window_end": [4], "COUNT(*)": pa.array([3], pa.decimal128(38, 0))})
    assert found.placed(rows).schema.field("COUNT(*)").type == pa.int64()
    huge = rows.set_column(1, "COUNT(*)", pa.array([10**30], pa.decimal128(38, 0)))
    assert found.placed(huge)["COUNT(*)"].to_pylist() == [10**30]


# ----------------------------------------------------------------------------------------------- in this process

WORKLOAD = """
QUERY pairs: PATTERN SEQ(A a, B b) SEMANTICS skip-till-next-match WHERE [k]
QUERY sums: RETURN k, SUM(B.x) PATTERN SEQ(A, B) WHERE [k] GROUP BY k WITHIN 4 SLIDE 4
"""


def archived(root: Path, text: str = WORKLOAD, table: pa.Table = EVENTS, **more: object) -> object:
    request = ArchiveRequest(root, text, "c", chunk=3, **more)  # type: ignore[arg-type]
    return archive_locally(request, table.drop_columns(["first", "at"]), Options())


def test_events_and_rows_of_queries_are_archived_at_once(tmp_path: Path) -> None:
    archived(tmp_path / "a")
    archive = open_archive(tmp_path / "a")
    assert {name: one.rows for name, one in archive.types().items()} == {"A": 3, "B": 2, "C": 1}
    assert archive.results("pairs", {"k": 1})["at"].to_pylist() == [2]
    rows = archive.results("sums")
    assert rows.select(["at", "k", "SUM(B.x)"]).to_pylist() == [{"at": 4, "k": 1, "SUM(B.x)": 2.0}]
    assert archive.partitions("pairs").to_pylist() == [
        {"k": 1, "site": "s1", "first": 2, "last": 2, "points": 1},
        {"k": 2, "site": "s2", "first": 4, "last": 4, "points": 1},
    ]


def test_the_same_events_archived_again_replace_themselves_and_keep_other_queries(tmp_path: Path) -> None:
    archived(tmp_path / "a")
    archived(tmp_path / "a", "RETURN a.time PATTERN A a", name="alone")
    archive = open_archive(tmp_path / "a")
    assert list(archive.queries()) == ["alone", "pairs", "sums"]
    assert (archive.types()["A"].rows, archive.results("pairs").num_rows, archive.results("alone").num_rows) == (
        3,
        2,
        3,
    )


def test_what_was_compacted_is_there_for_good(tmp_path: Path) -> None:
    root = tmp_path / "a"
    archived(root)
    request = ArchiveRequest(root, "", "other", chunk=3)
    archive_locally(request, EVENTS.drop_columns(["first", "at"]), Options())
    compact(root)
    found = archived(root)
    assert found.there == ["events", "rows of query pairs", "rows of query sums"]  # type: ignore[attr-defined]
    assert open_archive(root).types()["A"].rows == 6


def test_old_events_are_dropped_when_others_come(tmp_path: Path) -> None:
    archived(tmp_path / "a", "", keep=2)
    assert open_archive(tmp_path / "a").span == (4, 6)


def test_dimensions_that_are_no_columns(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no column 'sight' for a dimension"):
        archived(tmp_path / "a", dimensions=("sight",))
    assert not (tmp_path / "a").exists()


def test_names_of_commits_go_by_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert commit_name(["a.csv", "b.csv"]) == commit_name([str(tmp_path / "b.csv"), "./a.csv"])
    assert commit_name(["a.csv"]) != commit_name(["b.csv"])
    assert commit_name(["s3://a/b.csv"]) == commit_name(["s3://a/b.csv"])
