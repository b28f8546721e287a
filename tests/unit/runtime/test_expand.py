"""`expand`: the matches of one collapsed row, found as they are read."""

from __future__ import annotations

import datetime
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.errors import DataError, OptionError

QUERY = "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], C c)"


def events(types: str, **columns: Any) -> pa.Table:
    return pa.table({"type": list(types), "time": list(range(len(types))), "id": list(range(len(types))), **columns})


def listed(batches: Any) -> list[tuple[int, ...]]:
    return sorted(tuple(event["id"] for event in row["events"]) for batch in batches for row in batch.to_pylist())


def rows(query: str, table: pa.Table) -> pa.Table:
    return tl.run(query, table)


def test_the_matches_of_a_row() -> None:
    found = rows(QUERY, events("ABBCC"))
    assert [listed(tl.expand(QUERY, row)) for row in found.to_pylist()] == [
        [(0, 1, 2, 3), (0, 1, 3), (0, 2, 3)],
        [(0, 1, 2, 4), (0, 1, 4), (0, 2, 4)],
    ]


@pytest.mark.parametrize("size", [60, 300])
def test_matches_come_as_they_are_read(size: int) -> None:
    (row,) = rows(QUERY, events("A" + "B" * size + "C")).to_pylist()
    assert int(row["matches"]) == 2**size - 1
    found = list(islice(tl.expand(QUERY, row), 20))
    assert len(found) == 20
    assert len({ids for batch in found for ids in listed([batch])}) == sum(batch.num_rows for batch in found)


@pytest.mark.parametrize("form", ["dict", "table", "batch"])
def test_forms_of_a_row(form: str) -> None:
    table = rows(QUERY, events("ABBC"))
    row: Any = {"dict": table.to_pylist()[0], "table": table.slice(0, 1), "batch": table.to_batches()[-1]}[form]
    assert len(listed(tl.expand(QUERY, row))) == 3


def test_windows_and_partitions_of_timestamps() -> None:
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    times = [start + datetime.timedelta(seconds=second) for second in (0, 1, 2, 3, 3, 12)]
    table = pa.table({"type": list("ABBCBB"), "time": times, "id": [0, 1, 2, 3, 4, 5], "k": ["u"] * 4 + ["v"] * 2})
    query = "RETURN COLLAPSED TRENDS PATTERN SEQ(A a?, B+ b[]) WHERE [k] WITHIN 10 s SLIDE 5 s"
    found = rows(query, table)
    batches = [batch for row in found.to_pylist() for batch in tl.expand(query, row)]
    expected = tl.run(query.replace("COLLAPSED ", ""), table)
    assert batches[0].schema.names == expected.schema.names
    assert sorted(str(row) for batch in batches for row in batch.to_pylist()) == sorted(map(str, expected.to_pylist()))


def test_an_event_of_two_variables_is_one_event() -> None:
    query = "RETURN COLLAPSED TRENDS PATTERN SEQ(B+ b[], B+ c[])"
    (row,) = rows(query, events("BBB")).to_pylist()
    assert len(row["events"]) == 4  # the middle one is in both
    assert listed(tl.expand(query, row)) == [(0, 1), (0, 1, 2), (0, 1, 2), (0, 2), (1, 2)]


def test_equal_events_are_two_events() -> None:
    table = pa.table({"type": ["A", "B", "B"], "time": [0, 1, 1], "id": [0, 7, 7]})
    query = "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[])"
    (row,) = rows(query, table).to_pylist()
    assert listed(tl.expand(query, row)) == [(0, 7), (0, 7)]


def test_a_part_that_is_left_out_stays_out() -> None:
    query = "RETURN COLLAPSED TRENDS PATTERN SEQ(A a?, B+ b[], C c?)"
    for row in rows(query, events("ABBC")).to_pylist():
        assert len(listed(tl.expand(query, row))) == 3


class TestNegation:
    QUERY = "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], NOT X, C c)"
    EVENTS = events("ABXBC")

    def test_needs_the_stream(self) -> None:
        (row,) = rows(self.QUERY, self.EVENTS).to_pylist()
        assert listed(tl.expand(self.QUERY, row, self.EVENTS)) == [(0, 1, 3, 4), (0, 3, 4)]
        with pytest.raises(OptionError, match="a NOT looks at events that are in no match"):
            tl.expand(self.QUERY, row)

    def test_needs_the_right_stream(self) -> None:
        (row,) = rows(self.QUERY, self.EVENTS).to_pylist()
        with pytest.raises(DataError, match="an event of the row is not in the stream"):
            tl.expand(self.QUERY, row, self.EVENTS.slice(1))


class TestExists:
    QUERY = "RETURN COLLAPSED TRENDS PATTERN EXISTS x (SEQ(A a, X x, B+ b[], C c))"
    EVENTS = events("ABXBXBC")

    def test_needs_the_stream_and_shows_no_hidden_events(self) -> None:
        (row,) = rows(self.QUERY, self.EVENTS).to_pylist()
        assert row["matches"] == 3
        assert listed(tl.expand(self.QUERY, row, self.EVENTS)) == [(0, 3, 5, 6), (0, 3, 6), (0, 5, 6)]
        with pytest.raises(OptionError, match="EXISTS needs events that are in no match"):
            tl.expand(self.QUERY, row)


class TestRefusals:
    def row(self) -> dict[str, Any]:
        (row,) = rows(QUERY, events("ABBC")).to_pylist()
        return row

    def test_other_queries(self) -> None:
        with pytest.raises(OptionError, match="only rows of RETURN COLLAPSED TRENDS"):
            tl.expand(QUERY.replace("COLLAPSED ", ""), self.row())

    def test_a_workload(self) -> None:
        with pytest.raises(OptionError, match="a row belongs to one query"):
            tl.expand(f"QUERY one: {QUERY} QUERY two: {QUERY}", self.row())
        assert len(listed(tl.expand(f"QUERY one: {QUERY} QUERY two: {QUERY}", self.row(), query="two"))) == 3

    def test_no_row(self) -> None:
        with pytest.raises(OptionError, match="takes one row"):
            tl.expand(QUERY, rows(QUERY, events("ABBCC")))

    def test_a_row_of_another_query(self) -> None:
        with pytest.raises(OptionError, match="the query has no variable 'a', which the row binds"):
            tl.expand(QUERY.replace("A a", "A s"), self.row())

    def test_a_row_that_was_changed(self) -> None:
        row = self.row()
        with pytest.raises(DataError, match="these events are no row of the query"):
            tl.expand(QUERY, {**row, "matches": 4})
        with pytest.raises(DataError, match="these events are no row of the query"):
            tl.expand(QUERY, {**row, "events": row["events"][1:]})
