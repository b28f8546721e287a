"""Times written as text in conditions: of their own offset, of the zone that was named, of the column's, or of UTC."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.errors import BindError
from trendloom.expr.nodes import Constant, walk
from trendloom.frontend.tql.parser import parse
from trendloom.io.events import prepare
from trendloom.logical.bind import bind

NEW_YORK, PARIS = "America/New_York", "Europe/Paris"
EMPTY = pa.schema(
    {
        "type": pa.string(),
        "time": pa.timestamp("us"),
        "utc": pa.timestamp("us", "UTC"),
        "there": pa.timestamp("us", NEW_YORK),
        "day": pa.date32(),
    }
).empty_table()


def meant(condition: str, zone: str | None = None) -> dt.datetime:
    """The moment that the text of a condition stands for."""
    (query,) = parse(f"PATTERN SEQ(A+ a[], A b) WHERE {condition}")
    plan = bind(query, prepare(EMPTY, time_zone=zone).schema)
    (value,) = (node.value for node in walk(plan.conditions[0].expr) if isinstance(node, Constant))
    assert isinstance(value, int)
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=value)


def local(zone: str) -> dt.datetime:
    return dt.datetime(2018, 4, 2, tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("condition", "own", "named"),
    [
        ("a.time >= '2018-04-02'", "UTC", PARIS),
        ("'2018-04-02' = b.utc", "UTC", PARIS),
        ("b.there != '2018-04-02 00:00:00'", NEW_YORK, PARIS),
        ("max(a[].there) < '2018-04-02'", NEW_YORK, PARIS),
        ("a[first].there < '2018-04-02'", NEW_YORK, PARIS),
        ("coalesce(b.there, b.time) = '2018-04-02'", NEW_YORK, PARIS),
        ("b.day = '2018-04-02'", "UTC", "UTC"),
    ],
)
def test_the_zone_that_was_named_comes_before_the_columns_own(condition: str, own: str, named: str) -> None:
    assert meant(condition) == local(own)
    assert meant(condition, PARIS) == local(named)


@pytest.mark.parametrize("zone", [None, PARIS])
@pytest.mark.parametrize("text", ["2018-04-02T00:00-04:00", "2018-04-02T04:00Z", "2018-04-02 06:00:00+02:00"])
def test_an_offset_says_it_all(text: str, zone: str | None) -> None:
    assert meant(f"b.there = '{text}'", zone) == local(NEW_YORK)


def test_hours_that_clocks_repeat_or_skip() -> None:
    assert meant("b.time = '2024-10-27 02:30'", PARIS) == dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)
    assert meant("b.time = '2024-03-31 02:30'", PARIS) == dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)


def test_text_that_is_not_a_time() -> None:
    with pytest.raises(BindError, match="'soon' is not a time"):
        meant("b.time = 'soon'")


def test_without_events_the_zone_is_known_too() -> None:
    assert tl.check("PATTERN A a WHERE a.time > '2018-04-02'", time_zone=PARIS) == []


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_windows_are_aligned_in_utc_and_shown_in_the_zone(engine: str) -> None:
    times = pa.array([dt.datetime(2018, 4, 2, 1)], pa.timestamp("us"))
    table = pa.table({"time": times, "type": ["A"]})
    rows = tl.run("RETURN COUNT(*) PATTERN A WITHIN 1 d", table, engine=engine, time_zone=PARIS)
    assert rows.schema.field("window_start").type == pa.timestamp("us", PARIS)
    assert [str(start) for start in rows["window_start"].to_pylist()] == ["2018-04-01 02:00:00+02:00"]
