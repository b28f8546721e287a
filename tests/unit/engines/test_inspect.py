"""CHECK and EXPLAIN need a schema only: whatever tells one will do."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.engines.introspection import schema_of
from trendloom.errors import BindError, DataError, ParseError
from trendloom.model.schema import Column, Kind, Schema
from trendloom.options import Options

TABLE = pa.table({"time": [1, 2], "type": ["A", "B"], "x": [1.5, None], "empty": pa.array([None, None], pa.string())})


def test_a_text_alone_is_parsed_and_its_variables_looked_up() -> None:
    assert tl.check("PATTERN A a WHERE a.anything > 1") == []
    with pytest.raises(ParseError):
        tl.check("PATTERN SEQ(A")
    with pytest.raises(BindError, match="unknown variable 'b'"):
        tl.check("PATTERN A a WHERE b.x > 1")


def test_ambiguity_is_seen_without_events() -> None:
    (warning,) = tl.check("PATTERN SEQ(A+, A+)")
    assert "ambiguous" in warning.message


def test_without_events_nothing_is_said_of_absent_types() -> None:
    assert tl.check("PATTERN SEQ(A, B)") == []
    assert tl.check("PATTERN SEQ(A, B)", TABLE.schema) == []


def test_a_schema_of_ours_that_lists_types() -> None:
    schema = Schema((Column("time", Kind.INT), Column("type", Kind.STRING)), types=frozenset({"A"}))
    with pytest.raises(BindError, match="unknown event type 'B'"):
        tl.check("PATTERN B", schema)


def test_an_arrow_schema() -> None:
    assert tl.check("PATTERN A a WHERE a.x > 1", TABLE.schema) == []
    with pytest.raises(BindError, match="no attribute 'z'"):
        tl.check("PATTERN A a WHERE a.z > 1", TABLE.schema)
    with pytest.raises(DataError, match="there is no column 'time'"):
        tl.check("PATTERN A", TABLE.drop_columns("time").schema)


@pytest.mark.parametrize("source", [TABLE, TABLE.to_pandas(), TABLE.to_batches()[0]], ids=["arrow", "pandas", "batch"])
def test_events_in_memory_also_tell_their_types(source: object) -> None:
    (warning,) = tl.check("PATTERN SEQ(A, C)", source)
    assert warning.message == "the events have no type 'C'"


def test_events_in_memory_of_pandas_timestamps() -> None:
    frame = pd.DataFrame({"time": [datetime.datetime(2024, 1, 1)], "type": ["A"]})
    with pytest.raises(BindError, match="plain number is not a duration"):
        tl.check("PATTERN A WITHIN 5", frame)


@pytest.mark.parametrize("folder", [False, True])
def test_parquet_tells_the_same_as_its_events(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / ("events" if folder else "events.parquet")
    if folder:
        path.mkdir()
        pq.write_table(TABLE.slice(0, 1), path / "1.parquet")
        pq.write_table(TABLE.slice(1, 1), path / "2.parquet")
    else:
        pq.write_table(TABLE, path)
    assert schema_of(path, Options()) == schema_of(TABLE, Options())
    _, schema = schema_of(path, Options())
    assert schema.kind("empty") is Kind.NULL


def test_parquet_is_not_read_beyond_footer_and_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(TABLE, tmp_path / "events.parquet")
    asked: list[object] = []
    read = pq.ParquetFile.read

    def watched(self: pq.ParquetFile, columns: object = None, **more: object) -> pa.Table:
        asked.append(columns)
        return read(self, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read", watched)
    tl.check("PATTERN A", tmp_path / "events.parquet")
    assert asked == [["time", "type"]]
    tl.check("PATTERN A", tmp_path / "events.parquet", time_unit="s")  # nothing is left to look for in the times
    assert asked[1:] == [["type"]]


def test_parquet_without_a_type_column_is_refused(tmp_path: Path) -> None:
    pq.write_table(TABLE.drop_columns("type"), tmp_path / "events.parquet")
    with pytest.raises(DataError, match="there is no column 'type'"):
        tl.check("PATTERN SEQ(A, B)", tmp_path / "events.parquet")


def test_a_dictionary_of_types_in_parquet(tmp_path: Path) -> None:
    table = TABLE.set_column(1, "type", TABLE["type"].dictionary_encode())
    pq.write_table(table, tmp_path / "events.parquet")
    _, schema = schema_of(tmp_path / "events.parquet", Options())
    assert schema.present == {"A", "B"}


def test_missing_files_are_data_errors() -> None:
    with pytest.raises(DataError, match="does not exist"):
        tl.check("PATTERN A", "missing.parquet")


def test_explain_has_the_query_and_three_plans_for_each_query() -> None:
    text = tl.explain("QUERY p: PATTERN A\nQUERY q: PATTERN B b WHERE b.x > 1", TABLE)
    assert [text.count(part) for part in ("QUERY ", "Logical plan", "Optimized plan", "Physical plan")] == [2, 2, 2, 2]
    assert text.startswith("QUERY p:\n  PATTERN A\n\nLogical plan\n")


@pytest.mark.parametrize(
    ("text", "window"),
    [("PATTERN A WITHIN 5 min", "< 5 min"), ("PATTERN A WITHIN 5", "< 5 s"), ("PATTERN A WITHIN 90", "< 90 s")],
)
def test_explain_without_events_guesses_the_time_column_from_the_window(text: str, window: str) -> None:
    shown = tl.explain(text)
    assert shown.startswith("-- no events given")
    assert window in shown


def test_explain_without_events_does_not_invent_kinds() -> None:
    shown = tl.explain("RETURN MAX(a.x), COUNT(*) PATTERN A a")
    assert "MAX(a.x)  kind not known without events" in shown
    assert "COUNT(*)  integer" in shown


def test_an_assumed_schema_has_the_time_axis_that_fits() -> None:
    assert tl.check("PATTERN SEQ(A a, B b) WHERE b.time - a.time < 5 WITHIN 10") == []
    assert tl.check("PATTERN SEQ(A a, B b) WHERE b.time - a.time < 5 s WITHIN 10 s") == []
    with pytest.raises(BindError, match="cannot compare"):
        tl.check("PATTERN SEQ(A a, B b) WHERE b.time - a.time < 'x'")


@pytest.mark.parametrize("keys", [2, 1000])
def test_a_workload_is_explained_alike_over_a_file_and_over_a_table(keys: int, tmp_path: Path) -> None:
    """How many keys there are is part of what is weighed."""
    rows = range(5000)
    types, numbers = ["ABC"[row % 3] for row in rows], [row % keys for row in rows]
    table = pa.table({"time": list(rows), "type": types, "key": numbers})
    pq.write_table(table, tmp_path / "events.parquet")
    text = "\n".join(
        f"QUERY {name}: RETURN COUNT(*) PATTERN SEQ(A, {last}) WHERE [key] WITHIN 5"
        for name, last in (("p", "B"), ("q", "C"))
    )
    of_table, of_file = (
        tl.explain(text, source).partition("\nWorkload")[2].partition("sharing ")[1:]
        for source in (table, tmp_path / "events.parquet")
    )
    assert of_table == of_file
    assert of_table[0]
