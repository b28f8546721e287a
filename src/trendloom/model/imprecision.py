"""Imprecise time: the options of a call, what they come to in ticks, and the intervals in which events happened.

Times have bounds in two columns, or an error around one time. An event happened at one of the *points* of its interval,
which are whole multiples of the grain; `io.intervals` turns bounds into points, all other code works with `Intervals`.

Durations are exact: `7.5s` is a fraction of ticks, never a double. What they come to in ticks depends on what the time
column counts, so options are first checked by themselves, before anything is read, and then measured by the time axis.
The help of a command imports this module, so NumPy is loaded only where intervals are taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trendloom.errors import OptionError, option
from trendloom.model.time import MICROSECONDS, UNIT_WORDS, TimeAxis

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_POINTS = 1_000
"""Points of an interval, unless the caller allows more: each match costs a multiple of them."""

DURATION = re.compile(r"(-?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([^\W\d_]*)")
"""A number with a unit behind it, or with none; what looks otherwise is the name of a column."""

USUAL_TIME = "time"
"""The column of times where the caller names none."""


@dataclass(frozen=True)
class Imprecision:
    """Bounds are in two columns (`low`, `high`), or the time column is right up to an error.

    The error, in ticks, is that of the event's type (`by_type`), else `error`, or in a column of its own
    (`error_column`). `probability`: a column of lists, one number per point; None, or NULL: all points are equally
    likely. `grain`: ticks from one point to the next.
    """

    low: str | None = None
    high: str | None = None
    error: Fraction = Fraction(0)
    by_type: tuple[tuple[str, Fraction], ...] = ()
    error_column: str | None = None
    probability: str | None = None
    grain: int = 1
    most_points: int = MOST_POINTS

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, besides time and type."""
        return tuple(n for n in (self.low, self.high, self.error_column, self.probability) if n is not None)

    @property
    def longest(self) -> int:
        """The most ticks from the first point of an interval to its last."""
        return (self.most_points - 1) * self.grain


@dataclass(frozen=True, eq=False)
class Masses:
    """Probabilities of points: those of event i are `values[offsets[i]:offsets[i + 1]]`, none where all are alike.

    They are as given; divided by their sum they are the probabilities.
    """

    offsets: NDArray[Any]
    values: NDArray[Any]

    def take(self, rows: NDArray[Any]) -> Masses:
        """Those of some events."""
        import numpy as np

        sizes = np.diff(self.offsets)[rows]
        offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], sizes)
        return Masses(offsets, self.values[places])


@dataclass(frozen=True, eq=False)
class Intervals:
    """When events may have happened: from `low` to `high`, both included, in ticks that are multiples of the grain.

    The ends have a probability above zero. `masses`: None where the points of every event are equally likely.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    masses: Masses | None = None

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: NDArray[Any]) -> Intervals:
        """Those of some events."""
        return Intervals(self.low[rows], self.high[rows], None if self.masses is None else self.masses.take(rows))


# ------------------------------------------------------------------------------------------------- options


@dataclass(frozen=True)
class ImpreciseOptions:
    """The options of imprecise time, as the caller wrote them; None: not given. `time`: the column of one time."""

    low: str | None = None
    high: str | None = None
    error: str | None = None
    probability: str | None = None
    grain: str | None = None
    points: int | None = None
    time: str = USUAL_TIME

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            missing = option("time_high" if self.high is None else "time_low")
            raise OptionError("imprecise time needs both bounds", hint=f"give {missing} too")
        if self.low is not None and self.error is not None:
            raise OptionError(
                "times have bounds of their own or an error, not both",
                hint=f"leave out {option('time_error')}, or {option('time_low')} and {option('time_high')}",
            )
        if self.low is not None and self.time != USUAL_TIME:
            raise OptionError(
                "times have bounds of their own or are in one column, not both",
                hint=f"leave out {option('time')}, or {option('time_low')} and {option('time_high')}",
            )
        _refuse_alone(self)
        if self.points is not None and self.points < 1:
            raise OptionError(
                f"{option('time_points')} must be at least 1", hint=f"leave it out: {MOST_POINTS:,} points are allowed"
            )
        if self.grain is not None:
            _duration(self.grain, "time_grain")
        if self.error is not None:
            _errors(self.error)

    @property
    def bounds(self) -> tuple[str, str] | None:
        """The columns of bounds, if the times are given so."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def imprecise(self) -> bool:
        return self.low is not None or self.error is not None

    def measured(self, axis: TimeAxis) -> Imprecision | None:
        """The same in ticks of this axis; None where time is precise."""
        if not self.imprecise:
            return None
        grain = 1 if self.grain is None else _grain(self.grain, axis)
        column, others, by_type = (None, None, {}) if self.error is None else _errors(self.error)
        return Imprecision(
            self.low,
            self.high,
            Fraction(0) if others is None else _ticks(others, axis, "time_error"),
            tuple((name, _ticks(length, axis, "time_error")) for name, length in by_type.items()),
            column,
            self.probability,
            grain,
            self.points or MOST_POINTS,
        )


def _refuse_alone(options: ImpreciseOptions) -> None:
    """Refuse options for reading imprecise times where times are precise."""
    if options.imprecise:
        return
    given = {"time_probability": options.probability, "time_grain": options.grain, "time_points": options.points}
    for name, value in given.items():
        if value is not None:
            raise OptionError(
                f"{option(name)} is for imprecise time, and nothing says that times are imprecise",
                hint=f"give {option('time_error')}, or {option('time_low')} and {option('time_high')}",
            )


# ------------------------------------------------------------------------------------------------- durations


@dataclass(frozen=True)
class _WrittenDuration:
    """A duration as written; `unit` None: of the time column's own unit."""

    text: str
    amount: Fraction
    unit: str | None


def _duration(text: str, name: str) -> _WrittenDuration:
    found = DURATION.fullmatch(text.strip())
    if found is None:
        raise OptionError(f"'{text}' is not a duration", hint=f"write a number and a unit: {option(name, '1s')}")
    sign, amount, written = found.groups()
    word = written.lower()
    unit = UNIT_WORDS.get(word.removesuffix("s"), word) or None
    if unit is not None and unit not in MICROSECONDS:
        raise OptionError(f"unknown unit '{written}' in '{text}'", hint="a unit is one of " + ", ".join(MICROSECONDS))
    if sign:
        raise OptionError(f"{option(name)} cannot be negative: '{text}'", hint="an error reaches to both sides")
    return _WrittenDuration(text.strip(), Fraction(amount), unit)


def _ticks(length: _WrittenDuration, axis: TimeAxis, name: str) -> Fraction:
    if length.unit is not None:
        return length.amount * MICROSECONDS[length.unit] / axis.tick
    if axis.timestamp:
        raise OptionError(
            f"a plain number is not a duration where times are timestamps: '{length.text}'",
            hint=f"write a unit, e.g. {option(name, length.text + 's')}",
        )
    return length.amount


def _grain(text: str, axis: TimeAxis) -> int:
    ticks = _ticks(_duration(text, "time_grain"), axis, "time_grain")
    if ticks.denominator != 1 or ticks < 1:
        what = "microseconds" if axis.timestamp else "units of the time column"
        raise OptionError(
            f"{option('time_grain')} is a whole number of {what}, at least 1, and '{text}' is not",
            hint="choose a longer grain" + ("" if axis.timestamp else f", or another {option('time_unit')}"),
        )
    return int(ticks)


def _errors(text: str) -> tuple[str | None, _WrittenDuration | None, dict[str, _WrittenDuration]]:
    """The column of errors, or the error of types that are not named, and those of the types that are."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and "=" not in text and DURATION.fullmatch(parts[0]) is None:
        if not parts[0]:
            raise OptionError(f"{option('time_error')} is empty", hint=f"e.g. {option('time_error', '7.5s')}")
        return parts[0], None, {}
    others: _WrittenDuration | None = None
    by_type: dict[str, _WrittenDuration] = {}
    for part in parts:
        name, equals, length = (piece.strip() for piece in part.rpartition("="))
        if (others is not None) if not equals else (not name or name in by_type):
            what = f"type '{name}'" if equals else "all other types"
            raise OptionError(
                f"{option('time_error')} says twice, or not at all, of what '{part}' is the error: {what}",
                hint=f"write {option('time_error', 'Load=7.5s,Task=500ms')}",
            )
        if equals:
            by_type[name] = _duration(length, "time_error")
        else:
            others = _duration(length, "time_error")
    return None, others, by_type
