"""Every way to call the command wrongly: one message, the right exit status, nothing on standard output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

Command = Callable[..., Result]

BAD_DATA, BAD_QUERY = 1, 2


def refused(result: Result, status: int, *parts: str) -> None:
    assert result.exit_code == status, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert sum(line.startswith("error: ") for line in result.stderr.splitlines()) == 1
    for part in parts:
        assert part in result.stderr


# -------------------------------------------------------------------------------------------- bad queries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good morning", "This is not a query"),
        ("", "no query"),
        ("PATTERN A WITHIN 0 s", "Durations are positive"),
        ("PATTERN A WITHIN -5 s", "Durations are positive"),
        ("PATTERN A WITHIN 5 s SLIDE 0 s", "Durations are positive"),
        ("PATTERN A a WHERE a.valu > 1", "did you mean 'value'?"),
        ("PATTERN A a WHERE b.value > 1", "unknown variable 'b'"),
        ("PATTERN A a WHERE a.user > 1", "cannot compare"),
        ("PATTERN NOT A", "NOT stands outside a SEQ"),
        ("PATTERN A CONFIDENCE >= 0.5", "imprecise time"),
    ],
)
def test_a_bad_query_exits_with_2(run: Command, text: str, message: str) -> None:
    refused(run(text), BAD_QUERY, message)


def test_a_bad_query_is_shown_with_line_column_caret_and_hint(run: Command) -> None:
    result = run("PATTERN SEQ(A a, B b)\n  WHERE a.valeu > 10")
    refused(result, BAD_QUERY)
    assert result.stderr.splitlines() == [
        "error: A has no attribute 'valeu'  (line 2, column 11)",
        "  WHERE a.valeu > 10",
        "          ^^^^^",
        "hint: did you mean 'value'?",
    ]


def test_a_missing_query_file_exits_with_2_and_names_a_similar_one(trendloom: Command, folder: Path) -> None:
    (folder / "kites.tql").write_text("PATTERN A")
    result = trendloom("run", "kite.tql", "--events", "events.csv", "--engine", "local")
    refused(result, BAD_QUERY, "there is no query file kite.tql", "did you mean 'kites.tql'?")


def test_a_folder_or_binary_file_is_no_query_file(trendloom: Command, folder: Path) -> None:
    refused(trendloom("check", "."), BAD_QUERY, "is a folder")
    (folder / "binary.tql").write_bytes(b"\xff\xfe\x00")
    refused(trendloom("check", "binary.tql"), BAD_QUERY, "not text in UTF-8")


# ------------------------------------------------------------------------------------------- bad options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "0"], "limit must be at least 1"),
        (["--time-unit", "fortnight"], "unknown time unit 'fortnight'"),
        (["--time-low", "time"], "--time-high"),
        (["--query", "kites"], "there is no query 'kites'"),
        (["--format", "parquet"], "--output"),
        (["--output", "rows.txt"], "--format"),
        (["--output", "rows"], "--format"),
        (["--output", "missing/rows.csv"], "there is no folder missing"),
        (["--output", "."], "is a folder"),
        (["--output", "events.csv"], "would replace the events"),
        (["--output", "rows.csv", "--format", "table"], "--format jsonl"),
    ],
)
def test_a_bad_option_exits_with_2(run: Command, options: list[str], message: str) -> None:
    refused(run("PATTERN A", *options), BAD_QUERY, message)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-"],
        ["run", "-", "--events", "events.csv", "--engine", "flink"],
        ["run", "-", "--events", "events.csv", "--format", "xml"],
        ["run", "-", "--events", "events.csv", "--limit", "many"],
        ["run", "-", "--evnts", "events.csv"],
        ["explode"],
    ],
)
def test_wrong_usage_exits_with_2(trendloom: Command, words: list[str]) -> None:
    result = trendloom(*words, text="PATTERN A")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


def test_the_reference_engine_has_exact_numbers_only(run: Command) -> None:
    refused(run("PATTERN A", "--numeric", "log", engine="reference"), BAD_QUERY, "exact numbers only")


# ---------------------------------------------------------------------------------------------- bad data


def test_missing_events_exit_with_1(run: Command) -> None:
    refused(run("PATTERN A", events="evnts.csv"), BAD_DATA, "evnts.csv does not exist")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("time,type\nnoon,A\n2,B\n", [], "'noon' in row 1"),
        ("time,type\n1,A\n,B\n,B\n", [], "2 of 3 events have no time"),
        ("time,kind\n1,A\n", [], "there is no column 'type'"),
        ("at,type\n1,A\n", [], "there is no column 'time'"),
        ("time,type\n1,A\n", ["--time", "when"], "there is no column 'when'"),
        ("time,type\n1,2\n", [], "must be text"),
        ("time,type\n1.5,A\n", [], "--time-unit"),
        ("time,type,score\n1,A,2\n", [], "'score', which results use as their own"),
        ("time,type,window_start,var\n1,A,2,3\n", [], "'window_start', 'var'"),
        ("time,type\n1,A,7\n", [], "events.csv: row 1 has 3 fields, but the header has 2"),
        ("", [], "is empty"),
    ],
)
def test_bad_data_exit_with_1(run: Command, folder: Path, content: str, options: list[str], message: str) -> None:
    (folder / "events.csv").write_text(content)
    refused(run("PATTERN A", *options), BAD_DATA, message)


def test_a_folder_of_mixed_schemas_exits_with_1(run: Command, folder: Path) -> None:
    (folder / "days").mkdir()
    pq.write_table(pa.table({"time": [1], "type": ["A"], "v": [1]}), folder / "days" / "1.parquet")
    pq.write_table(pa.table({"time": [2], "type": ["B"], "v": ["x"]}), folder / "days" / "2.parquet")
    refused(run("PATTERN A", events="days"), BAD_DATA, "column 'v' is int64 in days/1.parquet", "string in days/2")


def test_a_type_without_events_is_a_warning(run: Command) -> None:
    result = run("PATTERN SEQ(A a, D d)", "--format", "jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "warning: the events have no type 'D'" in result.stderr


def test_two_bounds_that_are_crossed_exit_with_1(run: Command, folder: Path) -> None:
    (folder / "events.csv").write_text("lo,hi,type\n5,3,A\n")
    result = run("PATTERN A", "--time-low", "lo", "--time-high", "hi", engine="reference")
    refused(result, BAD_DATA, "row 1 ends before it begins")
