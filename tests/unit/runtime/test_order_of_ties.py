"""`order=`: columns of every kind order events of equal time; it is shown, read, kept by live streams, and refused."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.streaming.live_streams import ARROW, SCHEMA, events

import trendloom as tl
from trendloom.errors import DataError, OptionError, RunError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.runtime.planning import plan_query
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of

DAY = datetime.datetime(2024, 1, 1)
LINES = pa.table({"time": [1] * 4, "type": list("BABA"), "id": [0, 1, 2, 3], "seq": [4, 2, 3, None]})
PAIRS = "PATTERN SEQ(A a, B b)"


def ids(rows: pa.Table) -> list[list[int]]:
    return [[event["id"] for event in events] for events in rows["events"].to_pylist()]


# ------------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, 1, 2, None]),
        pa.array([30, 10, 20, None], pa.uint8()),
        pa.array([2**64 - 1, 5, 2**63, None], pa.uint64()),
        pa.array([0.5, -1.5, -0.0, None]),
        pa.array(["é", "B", "a", None]),
        pa.array(["é", "B", "a", None]).dictionary_encode(),
        pa.array([DAY, DAY.replace(year=1950), DAY.replace(year=2000), None], pa.timestamp("us")),
        pa.array([DAY.date(), datetime.date(1950, 1, 1), datetime.date(2000, 1, 1), None]),
        pa.array([datetime.timedelta(days) for days in (3, 1, 2)] + [None]),
        pa.array([Decimal("1234567890123456789.02"), Decimal("-1.75"), Decimal("1234567890123456789.01"), None]),
        pa.array([Decimal(10**30 + 1), Decimal(-1), Decimal(10**30), None], pa.decimal128(38, 0)),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_every_kind_have_an_order(engine: str, column: pa.Array) -> None:
    table = LINES.set_column(3, "seq", column)
    assert ids(tl.run(PAIRS, table, engine=engine, order="seq")) == [[3, 2], [3, 0], [1, 2], [1, 0]]


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_booleans_and_a_column_without_values(engine: str) -> None:
    table = LINES.append_column("last", pa.array([True, False, None, False])).append_column("none", pa.nulls(4))
    assert sorted(ids(tl.run(PAIRS, table, engine=engine, order="last"))) == [[1, 0], [3, 0]]
    assert ids(tl.run(PAIRS, table, engine=engine, order="none")) == []
    assert ids(tl.run(PAIRS, table, engine=engine, order=("none", "last", "seq"))) == [[3, 0], [1, 0]]


@pytest.mark.parametrize("order", ["seq", ("seq",), ["seq,id"], "seq, id", ("time", "type", "seq")])
def test_ways_to_name_columns(order: Any) -> None:
    found = ids(tl.run("PATTERN SEQ(A a, B b)", LINES, order=order))
    assert found == ids(tl.run(PAIRS, LINES, order=order, engine="reference"))
    assert len(found) == 4


def test_no_order_changes_nothing() -> None:
    assert tl.run("PATTERN A a+", LINES, order=()).equals(tl.run("PATTERN A a+", LINES))


def test_a_file_is_read_with_its_order(tmp_path: Any) -> None:
    pq.write_table(LINES, tmp_path / "lines.parquet")
    query = f"RETURN COUNT(*) AS n {PAIRS}"
    assert tl.run(query, tmp_path / "lines.parquet", order="seq").to_pylist() == [{"n": 4}]
    shown = tl.explain(query, tmp_path / "lines.parquet", order="seq", engine="local")
    assert "├─ order      events of equal time and partition by seq\n" in shown
    assert "read 3 of 4 columns" in shown
    assert "sort by time and seq\n" in shown


def test_plans_without_events_show_the_order() -> None:
    assert "events of equal time and partition by seq, id\n" in tl.explain(PAIRS, order="seq,id")


# ---------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_column_that_is_not_there(engine: str) -> None:
    with pytest.raises(DataError, match="there is no column 'sec' to order events of equal time by") as caught:
        tl.run(PAIRS, LINES, engine=engine, order="sec")
    assert "did you mean 'seq'" in str(caught.value.hint)
    with pytest.raises(DataError, match="there is no column 'sec'"):
        tl.check(PAIRS, LINES, order="sec")


def test_values_without_an_order() -> None:
    table = LINES.append_column("path", pa.array([[1], [2], [], None]))
    with pytest.raises(DataError, match="column 'path' holds values that have no order: list"):
        tl.run(PAIRS, table, order="path")


def test_imprecise_time_has_no_order() -> None:
    table = pa.table({"lo": [1], "hi": [2], "type": ["A"], "seq": [1]})
    with pytest.raises(OptionError, match="events of imprecise time cannot be ordered by a column"):
        tl.run("PATTERN A", table, engine="reference", time_low="lo", time_high="hi", order="seq")
    with pytest.raises(OptionError, match="events of imprecise time cannot be ordered by a column"):
        tl.check("PATTERN A CONFIDENCE >= 0.5", order="seq")


# ------------------------------------------------------------------------------------------ collapsed rows


def test_expanded_rows_have_the_order() -> None:
    query = "RETURN COLLAPSED TRENDS PATTERN SEQ(A+ a[], NOT C, B b)"
    table = pa.table({"time": [1] * 5, "type": list("AACBB"), "id": range(5), "seq": [1, 2, 3, 2, 4]})
    (row,) = tl.run(query, table, order="seq").to_pylist()
    assert [event["id"] for event in row["events"]] == [0, 3]
    (batch,) = tl.expand(query, row, table, order="seq")
    assert ids(pa.table(batch)) == [[0, 3]]


# -------------------------------------------------------------------------------------------- live streams


def streaming_query(query: str, order: tuple[str, ...]) -> StreamingQuery:
    return streaming_query_of(plan_query(bind(parse_query(query), replace(SCHEMA, order=order))), ARROW, "exact")


@pytest.mark.parametrize("semantics", ["skip-till-any-match", "skip-till-next-match", "contiguous"])
def test_runs_under_way_keep_their_order(semantics: str) -> None:
    """Events of one time come in three batches, in reverse, and the run that they begin goes on much later."""
    query = f"RETURN a.x, b.x AS y, c.x AS z PATTERN SEQ(A a, B b, C c) SEMANTICS {semantics} WHERE [k] WITHIN 100"
    live = Replay(streaming_query(query, ("x",)), delay=5, buckets=2)
    found = [live.batch(events(rows)) for rows in ([("C", 1, 1, 3)], [("B", 1, 1, 2)], [("A", 1, 1, 1)])]
    found += [live.batch(events([("A", 20, 1, 0), ("B", 20, 1, 1)])), live.batch(events([("C", 40, 1, 0)]))]
    found += [live.batch(events([("B", 90, 2, 0)])), live.flush()]
    rows = [row for table in found for row in table.to_pylist()]
    assert {"k": 1, "a.x": 1, "y": 2, "z": 3} in rows
    assert {"k": 1, "a.x": 0, "y": 1, "z": 0} in rows
    assert len(rows) == {"skip-till-any-match": 4}.get(semantics, 2)


def test_state_made_with_another_order_is_refused() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 10"
    assert (
        streaming_query(query, ()).fingerprint
        != streaming_query(query, ("x",)).fingerprint
        != streaming_query(query, ("k",)).fingerprint
    )
    live = Replay(streaming_query(query, ("x",)), delay=0, buckets=1)
    live.batch(events([("A", 1, 1, 1)]))
    live.streaming_query = streaming_query(query, ("k",))
    with pytest.raises(RunError, match="has changed"):
        live.batch(events([("B", 2, 1, 1)]))
