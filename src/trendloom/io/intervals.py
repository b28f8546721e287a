"""When each event may have happened: bounds, errors and probabilities become intervals of points.

A point is a multiple of the grain, and times are floored to it: with an error d, an event at t has the points from
floor((t - d) / g) · g to floor((t + d) / g) · g. As t and g are whole, floor((t - d) / g) = floor((t - ceil(d)) / g):
all of it is arithmetic of integers, and no double decides on which side of a point a time lies. A double in a column of
errors means the shortest decimal that denotes it: 0.1 is a tenth. What is wrong is counted, and the first shown.
Cost: a few vectorised passes, and exact arithmetic for every distinct error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import DataError, did_you_mean, option
from trendloom.expr.arrays import Array
from trendloom.expr.vectors import from_arrow, kind_of
from trendloom.io.timestamps import ticks
from trendloom.model.imprecision import Imprecision, Intervals, Masses
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import MICROSECONDS, TimeAxis

FARTHEST = 2**62
"""Times this far from zero, in ticks, are refused: differences of two of them shall be 64-bit integers."""

OFF_ONE = 1e-9
"""How far from 1 the probabilities of an event may add up to: they were rounded when they were written."""


def intervals_of(table: pa.Table, schema: Schema, *, numbered: bool = True) -> Intervals:
    """The intervals of the events of a prepared table, or an error that counts and shows what is wrong with them.

    The table has the columns of `Imprecision.columns`, those of types, and of times if there are no bounds.
    `numbered`: its rows are those of the input, so errors name them.
    """
    assert schema.imprecision is not None
    return _IntervalReading(table, schema, schema.imprecision, numbered).intervals()


@dataclass(frozen=True, eq=False)
class _IntervalReading:
    """One table being read."""

    table: pa.Table
    schema: Schema
    how: Imprecision
    numbered: bool

    def intervals(self) -> Intervals:
        low, high = self.around() if self.schema.bounds is None else self.between(*self.schema.bounds)
        low, high = low // self.how.grain, high // self.how.grain
        self.refuse_long(low, high)
        masses: Masses | None = None
        if self.how.probability is not None:
            low, high, masses = self.weighed(low, high, self.how.probability)
        return Intervals(low * self.how.grain, high * self.how.grain, masses)

    # ---------------------------------------------------------------------------------------------- bounds

    def between(self, low: str, high: str) -> tuple[Array, Array]:
        first, last = self.times(low), self.times(high)
        self.refuse_far(first, last)
        wrong = np.flatnonzero(first > last)
        if len(wrong):
            at = int(wrong[0])
            first_of_them = f"row {at + 1:,} ends" if self.numbered else "an event ends"
            more = f", and {len(wrong) - 1:,} more of {len(first):,} events" if len(wrong) > 1 else ""
            raise DataError(
                f"{first_of_them} before it begins: '{low}' is {self.shown(low, at)}, '{high}' is "
                f"{self.shown(high, at)}{more}",
                hint="low must not be above high",
            )
        return first, last

    def around(self) -> tuple[Array, Array]:
        """Times with their errors on both sides; as times are whole, an error counts up or down to a whole number."""
        times = self.times(self.schema.time)
        if self.how.error_column is not None:
            earlier, later = self.column_of_errors(self.how.error_column)
        elif self.how.by_type:
            names = pa.array([name for name, _ in self.how.by_type], pa.string())
            errors = [error for _, error in self.how.by_type] + [self.how.error]
            kinds = self.table.column(self.schema.type)
            plain = kinds.cast(pa.string()) if not types.is_string(kinds.type) else kinds
            found = pc.fill_null(pc.index_in(plain, value_set=names), len(names)).to_numpy()
            earlier, later = (_whole(side)[found] for side in _sides(errors))
        else:
            earlier, later = (_whole(side) for side in _sides([self.how.error]))
        reaching_back, reaching_on = int(earlier.max(initial=0)), int(later.max(initial=0))
        self.refuse_reach(int(times.min(initial=0)) - reaching_back, int(times.max(initial=0)) + reaching_on)
        return times - earlier, times + later

    def times(self, name: str) -> Array:
        column = self.table.column(name)
        self.refuse_nulls(name, "no time")
        found: Array = ticks(column, self.schema.axis)
        return found

    def column_of_errors(self, name: str) -> tuple[Array, Array]:
        """How far each event reaches back and forward, in whole ticks."""
        column = self.table.column(name)
        kind = kind_of(column.type)
        self.refuse_nulls(name, "no error of their time")
        vector = from_arrow(column, kind)
        if vector.valid is not None and not vector.valid.all():  # NaN
            self.refuse(np.flatnonzero(~vector.valid), f"no error of their time: '{name}' is not a number")
        self.refuse(np.flatnonzero(vector.values < 0), f"a negative error of their time in column '{name}'", name)
        if kind is Kind.FLOAT:
            self.refuse(np.flatnonzero(np.isinf(vector.values)), f"an infinite error in column '{name}'", name)
        distinct, places = np.unique(vector.values, return_inverse=True)
        scale = 10**vector.scale
        exact = [Fraction(repr(v)) if isinstance(v, float) else Fraction(v, scale) for v in distinct.tolist()]
        tick = self.schema.axis.tick
        if kind is Kind.DURATION:
            exact = [error / tick for error in exact]
        elif self.schema.axis.timestamp:
            exact = [error * MICROSECONDS["s"] / tick for error in exact]
        earlier, later = _sides(exact)
        return _whole(earlier)[places], _whole(later)[places]

    # ----------------------------------------------------------------------------------------- probabilities

    def weighed(self, low: Array, high: Array, name: str) -> tuple[Array, Array, Masses | None]:
        """Bounds in points, without ends of probability zero, and the probabilities in between."""
        column = self.table.column(name)
        given = np.asarray(column.is_valid())
        if not given.any():
            return low, high, None
        sizes = np.zeros(len(column), np.int64)
        sizes[given] = pc.list_value_length(column).drop_null().to_numpy()
        points = high - low + 1
        wrong = np.flatnonzero(given & (sizes != points))
        if len(wrong):
            at = int(wrong[0])
            self.refuse(
                wrong,
                f"a number of probabilities in column '{name}' that is not that of the points of their time "
                f"({sizes[at]:,} for {points[at]:,} points)",
                hint=f"one number per point: every {self.length(self.how.grain)}, both ends included",
            )
        flat = _numbers(column)
        offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        owner = np.repeat(np.arange(len(column)), sizes)
        self.refuse(np.unique(owner[~(flat >= 0)]), f"a NULL or negative probability in column '{name}'", name)
        sums = np.bincount(owner, flat, minlength=len(column))
        self.refuse(
            np.flatnonzero(given & ~(np.abs(sums - 1) <= OFF_ONE)),
            f"probabilities in column '{name}' that do not sum to 1",
            name,
        )
        return _trimmed(low, high, Masses(offsets, flat))

    # ---------------------------------------------------------------------------------------------- refusals

    def of_all(self, count: int) -> str:
        """So many of all events have."""
        total = self.table.num_rows
        return f"{count:,} of {total:,} event{'s' if total > 1 else ''} {'has' if count == 1 else 'have'}"

    def shown(self, name: str, at: int) -> str:
        return str(self.table.column(name)[at].as_py())

    def refuse(self, wrong: Array, what: str, name: str | None = None, hint: str | None = None) -> None:
        """Refuse these rows, if any: how many, the first, and what it holds."""
        if not len(wrong):
            return
        at = int(wrong[0])
        value = "" if name is None else f" has {self.shown(name, at)}"
        first = f"row {at + 1:,}{value}" if self.numbered else f"one of them{value}"
        raise DataError(
            f"{self.of_all(len(wrong))} {what}; {'the first, ' if self.numbered else ''}{first}",
            hint=hint or "correct these rows or leave them out",
        )

    def refuse_nulls(self, name: str, what: str) -> None:
        column = self.table.column(name)
        if column.null_count:
            at = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            first = f", first in row {at + 1:,}" if self.numbered else ""
            raise DataError(
                f"{self.of_all(column.null_count)} {what}: column '{name}' is NULL{first}",
                hint="drop these rows or fill in the column first",
            )

    def refuse_far(self, low: Array, high: Array) -> None:
        self.refuse_reach(int(low.min(initial=0)), int(high.max(initial=0)))

    def refuse_reach(self, least: int, greatest: int) -> None:
        if least < -FARTHEST or greatest > FARTHEST:
            raise DataError(
                "imprecise times reach beyond 62 bits in units of the time column", hint="give times in a coarser unit"
            )

    def refuse_long(self, low: Array, high: Array) -> None:
        """Refuse intervals of more points than the limit: the confidence of a match costs a multiple of them."""
        points, most = high - low + 1, self.how.most_points
        long = np.flatnonzero(points > most)
        if not len(long):
            return
        at, grain = int(points.argmax()), self.how.grain
        row = f"that of row {at + 1:,}" if self.numbered else "the longest"
        coarser = self.length(_coarser(int(points[at] - 1) * grain, most, self.schema.axis))
        raise DataError(
            f"{self.of_all(len(long))} a time of more than {most:,} points; {row} has {int(points[at]):,}, one every "
            f"{self.length(grain)}",
            hint=f"count time more coarsely: {option('time_grain', coarser)}; or allow more points, which takes "
            f"longer: {option('time_points', int(points[at]))}",
        )

    def length(self, count: int) -> str:
        """Ticks as a duration in the greatest unit that goes into them."""
        lengths = count * self.schema.axis.tick
        for unit, size in reversed(MICROSECONDS.items()):
            if lengths % size == 0:
                return f"{lengths / size}{unit}"
        return str(count)


def _sides(errors: list[Fraction]) -> tuple[list[int], list[int]]:
    """How far errors reach back and forward from a whole time, in whole ticks."""
    return [math.ceil(error) for error in errors], [math.floor(error) for error in errors]


def _whole(numbers: list[int]) -> Array:
    """Beyond what any time can be moved by, the number does not matter: it will be refused."""
    return np.array([min(number, FARTHEST + 1) for number in numbers], np.int64)


def _coarser(length: int, most: int, axis: TimeAxis) -> int:
    """A round number of ticks by which an interval of so many has no more than the most points."""
    least = Fraction(length, max(most - 2, 1)) * axis.tick
    steps = [unit * factor for unit in MICROSECONDS.values() for factor in (1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500)]
    fitting = [step for step in sorted(steps) if step >= least and (step / axis.tick).denominator == 1]
    return int(fitting[0] / axis.tick) if fitting else math.ceil(least / axis.tick)


def _numbers(column: pa.ChunkedArray) -> Array:
    """The numbers of all lists, one after the other; NULL is NaN."""
    flat = pc.list_flatten(column)
    if types.is_null(flat.type):
        return np.full(len(flat), np.nan)
    return np.asarray(flat.cast(pa.float64()).to_numpy(), np.float64)


def _trimmed(low: Array, high: Array, masses: Masses) -> tuple[Array, Array, Masses | None]:
    """Without points of probability zero at the ends, and without numbers where all that is left are alike."""
    sizes = np.diff(masses.offsets)
    owner = np.repeat(np.arange(len(low)), sizes)
    place = np.arange(len(owner)) - np.repeat(masses.offsets[:-1], sizes)
    possible = masses.values > 0
    first, last = np.full(len(low), np.iinfo(np.int64).max), np.full(len(low), -1)
    np.minimum.at(first, owner[possible], place[possible])
    np.maximum.at(last, owner[possible], place[possible])
    weighed = sizes > 0
    high = np.where(weighed, low + last, high)
    low = np.where(weighed, low + np.where(weighed, first, 0), low)
    inside = (place >= first[owner]) & (place <= last[owner])
    least, most = np.full(len(low), np.inf), np.full(len(low), -np.inf)
    np.minimum.at(least, owner[inside], masses.values[inside])
    np.maximum.at(most, owner[inside], masses.values[inside])
    kept = inside & (least < most)[owner]
    offsets = np.r_[0, np.cumsum(np.bincount(owner[kept], minlength=len(low)))].astype(np.int64)
    return low, high, Masses(offsets, masses.values[kept]) if kept.any() else None


# --------------------------------------------------------------------------------------------- the columns


def check_columns(columns: pa.Schema, how: Imprecision) -> None:
    """Refuse columns of errors and probabilities that are not there or cannot be such."""
    if how.error_column is not None:
        kind = _type_of(columns, how.error_column, "time_error", "the error of times")
        if kind_of(kind) not in (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.DURATION, Kind.NULL):
            raise DataError(
                f"column '{how.error_column}' holds errors of times, so it must be numbers or durations, not {kind}",
                hint=f"name another column with {option('time_error')}, or write a duration: "
                f"{option('time_error', '7.5s')}",
            )
    if how.probability is not None:
        kind = _type_of(columns, how.probability, "time_probability", "the probabilities of times")
        if not _is_list_of_numbers(kind):
            raise DataError(
                f"column '{how.probability}' holds probabilities of times, so it must be lists of numbers, not {kind}",
                hint="a list has one number for every point of an event's time, NULL: all are equally likely; JSON "
                "lines and Parquet hold lists, CSV does not",
            )


def _type_of(columns: pa.Schema, name: str, role: str, what: str) -> pa.DataType:
    if name not in columns.names:
        close = did_you_mean(name, columns.names) or "the input has no columns"
        raise DataError(f"there is no column '{name}' for {what}", hint=f"{close} ({option(role)} names it)")
    return columns.field(name).type


def _is_list_of_numbers(kind: pa.DataType) -> bool:
    if types.is_null(kind):
        return True
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(kind) for test in lists) and kind_of(kind.value_type).numeric
