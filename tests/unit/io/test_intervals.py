"""Bounds, errors and probabilities become intervals of points; what is wrong is counted and shown."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendloom.errors import DataError, OptionError
from trendloom.io.events import Events, prepare
from trendloom.reference.worlds import points_of

NOON = datetime.datetime(2024, 1, 31, 12)


def seconds(*numbers: float) -> list[datetime.datetime]:
    return [NOON + datetime.timedelta(seconds=number) for number in numbers]


def read(columns: dict[str, Any], **options: Any) -> Events:
    table = pa.table(columns)
    if "type" not in columns:
        table = table.append_column("type", pa.array(["A"] * len(table)))
    return prepare(table, **options)


def spans(events: Events) -> list[tuple[int, int]]:
    assert events.intervals is not None
    assert events.ticks is None
    return list(zip(events.intervals.low.tolist(), events.intervals.high.tolist(), strict=True))


def masses(events: Events) -> list[list[float]] | None:
    assert events.intervals is not None
    given = events.intervals.masses
    if given is None:
        return None
    return [part.tolist() for part in np.split(given.values, given.offsets[1:-1])]


class TestBounds:
    def test_both_ends_are_possible_times(self) -> None:
        events = read({"lo": [1, 5], "hi": [3, 5]}, time_low="lo", time_high="hi")
        assert spans(events) == [(1, 3), (5, 5)]
        assert masses(events) is None
        assert events.schema.imprecision is not None
        assert events.schema.imprecision.columns == ("lo", "hi")

    def test_times_are_floored_to_the_grain_below_zero_too(self) -> None:
        events = read({"lo": [-7, 9], "hi": [-1, 14]}, time_low="lo", time_high="hi", time_grain="5")
        assert spans(events) == [(-10, -5), (5, 10)]

    def test_timestamps_have_microseconds(self) -> None:
        columns = {"lo": seconds(0.25), "hi": seconds(2.5)}
        start = int(NOON.replace(tzinfo=datetime.UTC).timestamp()) * 10**6
        assert spans(read(columns, time_low="lo", time_high="hi", time_points=10**7)) == [
            (start + 250_000, start + 2_500_000)
        ]
        assert spans(read(columns, time_low="lo", time_high="hi", time_grain="1s")) == [(start, start + 2 * 10**6)]

    def test_inverted_bounds(self) -> None:
        with pytest.raises(DataError, match=r"row 2 ends before it begins: 'lo' is 4, 'hi' is 3, and 1 more of 3"):
            read({"lo": [1, 4, 9], "hi": [3, 3, 8]}, time_low="lo", time_high="hi")

    def test_missing_bounds(self) -> None:
        with pytest.raises(DataError, match=r"2 of 3 events have no time: column 'hi' is NULL, first in row 2"):
            read({"lo": [1, 4, 9], "hi": [3, None, None]}, time_low="lo", time_high="hi")

    def test_times_so_far_away_that_differences_would_wrap(self) -> None:
        with pytest.raises(DataError, match="beyond 62 bits"):
            read({"lo": [-(2**63)], "hi": [2**63 - 1]}, time_low="lo", time_high="hi")
        with pytest.raises(DataError, match="beyond 62 bits"):
            read({"time": [2**63 - 2]}, time_error="5")


class TestErrors:
    def test_one_for_all(self) -> None:
        assert spans(read({"time": [10, 20]}, time_error="3")) == [(7, 13), (17, 23)]
        assert spans(read({"time": [10, 20]}, time_error="3 s")) == [(7, 13), (17, 23)]
        assert spans(read({"time": [10, 20]}, time_error="2 minutes", time_unit="min")) == [(8, 12), (18, 22)]

    def test_an_error_of_half_a_unit_reaches_back_into_the_unit_before(self) -> None:
        assert spans(read({"time": [10]}, time_error="0.5")) == [(9, 10)]
        assert spans(read({"time": [10]}, time_error="7.5")) == [(2, 17)]

    def test_flooring_comes_after_the_error(self) -> None:
        assert spans(read({"time": [14]}, time_error="5", time_grain="5")) == [(5, 15)]
        assert spans(read({"time": [15]}, time_error="5", time_grain="5")) == [(10, 20)]

    def test_by_type_others_are_exact(self) -> None:
        columns = {"time": [10, 10, 10, 10], "type": ["Load", "Task", "Other", None]}
        assert spans(read(columns, time_error="Load=3,Task=1")) == [(7, 13), (9, 11), (10, 10), (10, 10)]
        assert spans(read(columns, time_error="2, Load = 3")) == [(7, 13), (8, 12), (8, 12), (8, 12)]

    def test_by_type_in_a_dictionary(self) -> None:
        columns = {"time": [10, 10], "type": pa.array(["Load", "Task"]).dictionary_encode()}
        assert spans(read(columns, time_error="Task=1")) == [(10, 10), (9, 11)]

    def test_a_type_that_no_event_has_is_told(self) -> None:
        (warning,) = read({"time": [10], "type": ["Load"]}, time_error="Laod=3").warnings
        assert "names a type that no event has: 'Laod'" in warning.message
        assert warning.hint == "did you mean 'Load'?"

    @pytest.mark.parametrize(
        "errors",
        [
            pa.array([3, 0]),
            pa.array([3.0, 0.0]),
            pa.array([Decimal("3.0"), Decimal("0.0")]),
            pa.array([3, 0], pa.uint8()),
            pa.array([3, 0], pa.float32()),
            pa.array([3_000, 0], pa.duration("ms")),
        ],
    )
    def test_in_a_column(self, errors: pa.Array) -> None:
        assert spans(read({"time": [10, 20], "off": errors}, time_error="off")) == [(7, 13), (20, 20)]

    def test_a_column_counts_seconds_for_timestamps(self) -> None:
        start = int(NOON.replace(tzinfo=datetime.UTC).timestamp()) * 10**6
        found = read({"time": seconds(0), "off": [0.1]}, time_error="off", time_grain="100ms")
        assert spans(found) == [(start - 100_000, start + 100_000)]  # 0.1 is a tenth, not the double above it

    def test_errors_that_are_not_whole_ticks(self) -> None:
        found = read({"time": [10, 10], "off": [Decimal("1.5"), Decimal("0.1")]}, time_error="off")
        assert spans(found) == [(8, 11), (9, 10)]

    @pytest.mark.parametrize(
        ("errors", "message"),
        [
            ([1, -2, -3], r"2 of 3 events have a negative error .* 'off'; the first, row 2 has -2"),
            ([1, None, 3], r"1 of 3 events has no error of their time: column 'off' is NULL, first in row 2"),
            ([1.0, 2.0, float("inf")], r"1 of 3 events has an infinite error .*row 3 has inf"),
            ([1.0, float("nan"), 2.0], r"1 of 3 events has no error of their time"),
            (["1", "2", "3"], "must be numbers or durations, not string"),
        ],
    )
    def test_wrong_ones(self, errors: list[Any], message: str) -> None:
        with pytest.raises(DataError, match=message):
            read({"time": [1, 2, 3], "off": errors}, time_error="off")

    def test_a_column_that_is_not_there(self) -> None:
        with pytest.raises(DataError, match="no column 'of' for the error of times") as caught:
            read({"time": [1], "off": [2]}, time_error="of")
        assert "did you mean 'off'" in str(caught.value.hint)


class TestProbabilities:
    COLUMNS = {"lo": [1, 4], "hi": [3, 5]}  # noqa: RUF012

    def test_one_number_per_point_and_null_for_equally_likely(self) -> None:
        found = read(
            {**self.COLUMNS, "p": [[0.25, 0.5, 0.25], None]}, time_low="lo", time_high="hi", time_probability="p"
        )
        assert masses(found) == [[0.25, 0.5, 0.25], []]

    def test_ends_without_probability_are_no_points_and_holes_stay(self) -> None:
        columns = {"lo": [1, 1], "hi": [5, 3], "p": [[0, 0.25, 0, 0.75, 0], [0, 0, 1]]}
        found = read(columns, time_low="lo", time_high="hi", time_probability="p")
        assert spans(found) == [(2, 4), (3, 3)]
        assert masses(found) == [[0.25, 0, 0.75], []]

    def test_numbers_that_are_all_alike_are_none(self) -> None:
        found = read({**self.COLUMNS, "p": [None, [0.5, 0.5]]}, time_low="lo", time_high="hi", time_probability="p")
        assert masses(found) is None

    def test_points_are_counted_by_the_grain(self) -> None:
        found = read({"time": [10], "p": [[0.1, 0.2, 0.7]]}, time_error="5", time_grain="5", time_probability="p")
        assert spans(found) == [(5, 15)]
        assert masses(found) == [[0.1, 0.2, 0.7]]

    @pytest.mark.parametrize(
        "kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.decimal128(3, 2))]
    )
    def test_lists_of_all_kinds(self, kind: pa.DataType) -> None:
        values = [[Decimal("0.25"), Decimal("0.75")], None] if "decimal" in str(kind) else [[0.25, 0.75], None]
        found = read(
            {"lo": [1, 4], "hi": [2, 5], "p": pa.array(values, kind)},
            time_low="lo",
            time_high="hi",
            time_probability="p",
        )
        assert masses(found) == [[0.25, 0.75], []]

    def test_lists_of_a_fixed_size(self) -> None:
        values = pa.array([None, [0.25, 0.75]], pa.list_(pa.float64(), 2))
        found = read({"lo": [1, 4], "hi": [2, 5], "p": values}, time_low="lo", time_high="hi", time_probability="p")
        assert masses(found) == [[], [0.25, 0.75]]

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (
                [[0.5, 0.5], None],
                r"1 of 2 events has a number of probabilities .* \(2 for 3 points\); the first, row 1",
            ),
            ([None, [1.5, -0.5]], r"1 of 2 events has a NULL or negative probability .*row 2 has \[1.5, -0.5\]"),
            ([None, [1.0, None]], r"1 of 2 events has a NULL or negative probability"),
            ([None, [float("nan"), 1.0]], r"1 of 2 events has a NULL or negative probability"),
            ([[0.2, 0.2, 0.2], [0.5, 0.6]], r"2 of 2 events have probabilities .*sum to 1; the first, row 1 has \[0.2"),
            ([None, [0.0, 0.0]], "do not sum to 1"),
        ],
    )
    def test_wrong_ones(self, values: list[Any], message: str) -> None:
        with pytest.raises(DataError, match=message):
            read({**self.COLUMNS, "p": values}, time_low="lo", time_high="hi", time_probability="p")

    def test_sums_may_be_rounded(self) -> None:
        found = read(
            {"lo": [1], "hi": [3], "p": [[1 / 3 + 1e-10, 1 / 3, 1 / 3]]},
            time_low="lo",
            time_high="hi",
            time_probability="p",
        )
        assert masses(found) == [[1 / 3 + 1e-10, 1 / 3, 1 / 3]]

    def test_only_lists_of_numbers(self) -> None:
        with pytest.raises(DataError, match="must be lists of numbers, not string"):
            read({**self.COLUMNS, "p": ["a", "b"]}, time_low="lo", time_high="hi", time_probability="p")


class TestPoints:
    def test_too_many_points(self) -> None:
        with pytest.raises(DataError) as caught:
            read({"time": seconds(0, 1), "off": [7.5, 0]}, time_error="off")
        assert "1 of 2 events has a time of more than 1,000 points; that of row 1 has 15,000,001, one every 1us" in str(
            caught.value
        )
        assert 'time_grain="20ms"' in str(caught.value.hint)

    def test_the_hint_is_enough(self) -> None:
        found = read({"time": seconds(0, 1)}, time_error="7.5s", time_grain="20ms")
        assert all(high - low <= 999 * 20_000 for low, high in spans(found))

    def test_the_limit_can_be_moved(self) -> None:
        assert spans(read({"time": [0]}, time_error="2", time_points=5)) == [(-2, 2)]
        with pytest.raises(DataError, match="more than 4 points"):
            read({"time": [0]}, time_error="2", time_points=4)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"time_low": "lo"}, "both bounds"),
            ({"time_low": "lo", "time_high": "hi", "time_error": "1s"}, "bounds of their own or an error"),
            ({"time": "id", "time_low": "lo", "time_high": "hi"}, "bounds of their own or are in one column"),
            ({"time_grain": "1s"}, "time_grain= is for imprecise time"),
            ({"time_points": 7}, "time_points= is for imprecise time"),
            ({"time_probability": "p"}, "time_probability= is for imprecise time"),
            ({"time_error": "1 fortnight"}, "unknown unit 'fortnight'"),
            ({"time_error": "-1s"}, "cannot be negative"),
            ({"time_error": ""}, "is empty"),
            ({"time_error": "A=1s,A=2s"}, "twice"),
            ({"time_error": "A=x"}, "'x' is not a duration"),
            ({"time_error": "1s", "time_grain": "x"}, "'x' is not a duration"),
            ({"time_error": "1s", "time_grain": "0"}, "at least 1"),
            ({"time_error": "1s", "time_grain": "0.5"}, "a whole number of units"),
            ({"time_error": "1s", "time_points": 0}, "time_points= must be at least 1"),
        ],
    )
    def test_what_contradicts_itself(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(OptionError, match=message):
            read({"time": [1], "lo": [1], "hi": [2], "p": [[1.0]]}, **options)

    @pytest.mark.parametrize(
        "options", [{"time_error": "5"}, {"time_error": "A=5"}, {"time_error": "5s", "time_grain": "1"}]
    )
    def test_timestamps_need_units(self, options: dict[str, Any]) -> None:
        with pytest.raises(OptionError, match="a plain number is not a duration where times are timestamps"):
            read({"time": seconds(0)}, **options)

    def test_no_order(self) -> None:
        with pytest.raises(OptionError, match="cannot be ordered by a column"):
            read({"time": [1], "seq": [1]}, time_error="1", order=("seq",))

    def test_no_events(self) -> None:
        assert spans(read({"time": pa.array([], pa.int64())}, time_error="1")) == []


@given(st.integers(-(10**6), 10**6), st.fractions(0, 50, max_denominator=12), st.integers(1, 9), st.integers(0, 3))
def test_points_are_those_of_exact_arithmetic(time: int, error: Any, grain: int, digits: int) -> None:
    written = Decimal(error.numerator * 10**digits // error.denominator).scaleb(-digits)
    table = {"time": [time], "off": pa.array([written], pa.decimal128(9, 3))}
    ((low, high),) = spans(read(table, time_error="off", time_grain=str(grain)))
    points = [point for point in range(low - 2 * grain, high + 2 * grain + 1) if point % grain == 0]
    times = [time - written, time + written]
    assert low == max(point for point in points if point <= times[0])
    assert high == max(point for point in points if point <= times[1])


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rows and options; probabilities are eighths, so that they sum to 1, and are there where the points allow it."""
    grain = draw(st.integers(1, 4))
    options = draw(
        st.sampled_from([{"time_low": "lo", "time_high": "hi"}, {"time_error": "off"}, {"time_error": "A=2.5,1"}])
    )
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        time, kind = draw(st.integers(-20, 20)), draw(st.sampled_from(["A", "B"]))
        off = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.7, 6.0]))
        lo, hi = sorted((time, draw(st.integers(-20, 20))))
        reach = Fraction(repr(off)) if options.get("time_error") == "off" else Fraction(5, 2) if kind == "A" else 1
        ends = (lo, hi) if "time_low" in options else (time - reach, time + reach)
        points = ends[1] // grain - ends[0] // grain + 1
        eighths = draw(st.lists(st.integers(0, points - 1), min_size=8, max_size=8))
        shares = [eighths.count(point) / 8 for point in range(points)]
        rows.append(
            {"time": time, "type": kind, "lo": lo, "hi": hi, "off": off, "p": draw(st.none() | st.just(shares))}
        )
    return rows, {**options, "time_grain": str(grain), "time_probability": "p"}


@given(streams())
def test_intervals_are_those_of_the_definition(stream: tuple[list[dict[str, Any]], dict[str, str]]) -> None:
    rows, options = stream
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    events = read({**columns, "p": pa.array(columns["p"], pa.list_(pa.float64()))}, **options)
    assert events.schema.imprecision is not None
    grain = events.schema.imprecision.grain
    for number, (low, high) in enumerate(spans(events)):
        given_ones = (masses(events) or [[]] * len(rows))[number]
        count = (high - low) // grain + 1
        weights = [Fraction(mass) for mass in given_ones] or [Fraction(1)] * count
        found = {low + at * grain: weight / sum(weights) for at, weight in enumerate(weights) if weight}
        assert found == points_of(number, rows[number], events.schema)
