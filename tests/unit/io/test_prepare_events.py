"""A table becomes a stream: times as ticks, kinds of columns, and errors that say where the data is wrong."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from trendloom.errors import DataError, OptionError
from trendloom.io.events import RESERVED, prepare
from trendloom.model.schema import Kind
from trendloom.model.time import TimeAxis

MOMENT = datetime.datetime(2013, 7, 4, 12, 30)
TICKS = 1_372_941_000_000_000


def stream(times: object, time_type: pa.DataType | None = None, **more: object) -> pa.Table:
    column = pa.array(times, time_type)
    return pa.table({"time": column, "type": pa.array(["A"] * len(column), pa.string()), **more})


@pytest.mark.parametrize("width", [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64()])
def test_integer_times_keep_their_unit(width: pa.DataType) -> None:
    events = prepare(stream([3, 1, 2], width), time_unit="minutes")
    assert events.schema.axis == TimeAxis.integer("min")
    assert events.ticks is not None
    assert events.ticks.dtype == np.int64
    assert events.ticks.tolist() == [3, 1, 2]
    assert events.table["time"].type == width


@pytest.mark.parametrize(
    "column_type",
    [
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms", "America/New_York"),
    ],
    ids=str,
)
def test_timestamps_of_any_unit_are_microseconds_utc(column_type: pa.DataType) -> None:
    values = pa.array([MOMENT], pa.timestamp("us")).cast(pa.timestamp(column_type.unit)).cast(pa.int64())
    events = prepare(stream(values.cast(column_type)))
    assert events.schema.axis == TimeAxis.timestamps()
    assert events.ticks is not None
    assert events.ticks.tolist() == [TICKS]
    assert events.table["time"].type.unit == "us"


def test_dates_are_midnight() -> None:
    events = prepare(stream([datetime.date(1970, 1, 2)]))
    assert events.ticks is not None
    assert events.ticks.tolist() == [86_400_000_000]


@pytest.mark.parametrize(
    "text",
    [
        "2013-07-04T12:30:00Z",
        "2013-07-04 12:30",
        "2013-07-04T12:30:00.000000000",
        "2013-07-04T14:30:00+02:00",
        "2013-07-04T07:30:00.0-0500",
    ],
)
def test_text_is_read_as_iso_8601(text: str) -> None:
    for column_type in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        events = prepare(stream(pa.array([text]).cast(column_type)))
        assert events.ticks is not None
        assert events.ticks.tolist() == [TICKS]
        assert events.schema.kind("time") is Kind.TIME


def test_text_with_and_without_zone_may_be_mixed() -> None:
    events = prepare(stream(["2013-07-04T14:30:00+02:00", "2013-07-04T12:30:00.000001"]))
    assert events.ticks is not None
    assert events.ticks.tolist() == [TICKS, TICKS + 1]
    assert events.table["time"].type == pa.timestamp("us")


def test_text_that_is_no_time_is_named_with_row_and_count() -> None:
    with pytest.raises(DataError) as caught:
        prepare(stream(["2013-07-04", "yesterday", "2013-02-30", "2013-07-05"]))
    assert "'yesterday' in row 2, and 1 more" in caught.value.message


def test_nanoseconds_that_are_no_microseconds_are_refused() -> None:
    with pytest.raises(DataError, match="not whole microseconds"):
        prepare(stream([1001], pa.timestamp("ns")))


@pytest.mark.parametrize("times", [[1, None, 3], [None, None, None]])
def test_missing_times_are_counted(times: list[int | None]) -> None:
    with pytest.raises(DataError) as caught:
        prepare(stream(times))
    assert f"{times.count(None)} of 3 events have no time" in caught.value.message
    assert caught.value.hint


def test_fractional_times_are_refused_with_a_way_out() -> None:
    with pytest.raises(DataError) as caught:
        prepare(stream([1.0, 2.0]))
    assert "double" in caught.value.message
    assert "cast" in str(caught.value.hint)


@pytest.mark.parametrize("times", [pa.array([True]), pa.array([[1]]), pa.array([1], pa.duration("s"))])
def test_what_is_no_time_is_refused(times: pa.Array) -> None:
    with pytest.raises(DataError, match="whole numbers or timestamps"):
        prepare(stream(times))


def test_times_beyond_64_bits_are_refused() -> None:
    with pytest.raises(DataError, match="64-bit"):
        prepare(stream([2**63], pa.uint64()))


@pytest.mark.parametrize(("option", "column"), [("time", "tome"), ("type", "typ")])
def test_a_missing_column_is_named_with_the_option_for_it(option: str, column: str) -> None:
    with pytest.raises(DataError) as caught:
        prepare(stream([1]).rename_columns({option: column}))
    assert f"no column '{option}'" in caught.value.message
    assert f"did you mean '{column}'? ({option}= names it)" in str(caught.value.hint)


def test_time_and_type_may_have_other_names() -> None:
    events = prepare(stream([7]).rename_columns({"time": "at", "type": "kind"}), time="at", type="kind")
    assert (events.schema.time, events.schema.type, events.schema.present) == ("at", "kind", frozenset({"A"}))


@pytest.mark.parametrize("name", RESERVED)
def test_names_of_result_columns_are_reserved(name: str) -> None:
    with pytest.raises(DataError) as caught:
        prepare(stream([1], **{name: [0]}))
    assert f"'{name}'" in caught.value.message
    assert "rename" in str(caught.value.hint)


def test_the_type_must_be_text() -> None:
    with pytest.raises(DataError, match="must be text, not int64"):
        prepare(pa.table({"time": [1], "type": [2]}))


def test_types_may_be_a_dictionary_or_missing() -> None:
    table = pa.table({"time": [1, 2, 3], "type": pa.array(["A", None, "B"]).dictionary_encode()})
    assert prepare(table).schema.present == {"A", "B"}
    assert prepare(pa.table({"time": [1], "type": pa.nulls(1)})).schema.present == frozenset()


def test_kinds_of_columns() -> None:
    table = stream(
        [1],
        i=pa.array([1], pa.int16()),
        f=[0.5],
        s=["x"],
        b=[True],
        t=pa.array([MOMENT]),
        d=pa.array([1], pa.duration("s")),
        n=pa.nulls(1),
        m=pa.array([None], pa.float64()),
        o=[[1]],
    )
    schema = prepare(table).schema
    kinds = {name: schema.kind(name) for name in "ifsbtdnmo"}
    assert kinds == {
        "i": Kind.INT,
        "f": Kind.FLOAT,
        "s": Kind.STRING,
        "b": Kind.BOOL,
        "t": Kind.TIME,
        "d": Kind.DURATION,
        "n": Kind.NULL,
        "m": Kind.NULL,
        "o": Kind.OTHER,
    }


def test_nan_is_read_as_null() -> None:
    assert prepare(stream([1, 2], x=[float("nan"), 1.0])).table["x"].to_pylist() == [None, 1.0]


@pytest.mark.parametrize("table", [pa.table({}), pa.table({"time": pa.nulls(0), "type": pa.nulls(0)}), stream([])])
def test_no_events_are_a_stream_too(table: pa.Table) -> None:
    events = prepare(table)
    assert events.ticks is not None
    assert len(events.ticks) == 0
    assert events.schema.present == frozenset()


@pytest.mark.parametrize("unit", ["fortnight", "", "secs"])
def test_the_time_unit_must_be_known(unit: str) -> None:
    with pytest.raises(OptionError, match="unknown time unit"):
        prepare(stream([1]), time_unit=unit)


@pytest.mark.parametrize(("unit", "short"), [("S", "s"), ("Milliseconds", "ms"), ("day", "d"), ("us", "us")])
def test_the_time_unit_may_be_a_word(unit: str, short: str) -> None:
    assert prepare(stream([1]), time_unit=unit).schema.axis == TimeAxis.integer(short)


def test_imprecise_times_have_bounds_and_no_ticks() -> None:
    table = pa.table({"lo": [1, 5], "hi": [3, 5], "type": ["A", "B"]})
    events = prepare(table, time_low="lo", time_high="hi")
    assert events.ticks is None
    assert events.schema.imprecise
    assert events.schema.bounds == ("lo", "hi")


def test_imprecise_bounds_come_together() -> None:
    with pytest.raises(OptionError) as caught:
        prepare(stream([1]), time_low="time")
    assert "time_high=" in str(caught.value.hint)


def test_imprecise_bounds_must_be_in_order() -> None:
    table = pa.table({"lo": [1, 9, 9], "hi": [3, 5, 5], "type": ["A", "B", "C"]})
    with pytest.raises(DataError) as caught:
        prepare(table, time_low="lo", time_high="hi")
    assert "row 2 ends before it begins: 'lo' is 9, 'hi' is 5, and 1 more" in caught.value.message


def test_imprecise_bounds_are_of_one_kind_and_never_missing() -> None:
    mixed = pa.table({"lo": [1], "hi": [MOMENT], "type": ["A"]})
    with pytest.raises(DataError, match="'lo' is int64, but 'hi' is timestamp"):
        prepare(mixed, time_low="lo", time_high="hi")
    missing = pa.table({"lo": [1, 2], "hi": [3, None], "type": ["A", "B"]})
    with pytest.raises(DataError, match="1 of 2 events have no time: column 'hi'"):
        prepare(missing, time_low="lo", time_high="hi")
