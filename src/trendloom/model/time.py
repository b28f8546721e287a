"""Time axes and durations: every time inside Trendloom is a whole number of ticks.

An integer time column has ticks of its own unit (seconds unless said otherwise); a timestamp column has microseconds.
A duration in a query becomes ticks exactly, or is refused: rounding a window would change answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

MICROSECONDS: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""Length of each unit of the language, by its short name."""

UNIT_WORDS: dict[str, str] = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
}
"""Full words (singular) to short names."""


@dataclass(frozen=True)
class TimeAxis:
    """What one tick is. `tick` is its length in microseconds; `timestamp` says whether times are dates."""

    tick: Fraction
    timestamp: bool

    @staticmethod
    def integer(unit: str = "s") -> TimeAxis:
        """An integer column that counts `unit`s."""
        return TimeAxis(Fraction(MICROSECONDS[unit]), False)

    @staticmethod
    def timestamps() -> TimeAxis:
        return TimeAxis(Fraction(1), True)

    def ticks(self, amount: Fraction, unit: str | None) -> int | None:
        """A duration in whole ticks; None where it is not a whole number of them.

        `unit` None means the axis' own unit, which only an integer axis has.
        """
        length = amount if unit is None else amount * MICROSECONDS[unit] / self.tick
        return int(length) if length.denominator == 1 else None


# Windows in ticks: none, a bound on the length of a match, or windows that slide over the stream.
#
# A sliding window is `[k·slide, k·slide + within)` for every integer k, aligned to time 0.


@dataclass(frozen=True)
class Window:
    """`within` None: the whole stream. `slide` None: a match spans less than `within`. Else: sliding windows."""

    within: int | None = None
    slide: int | None = None

    @property
    def sliding(self) -> bool:
        return self.slide is not None

    @property
    def spanning(self) -> bool:
        """A bare WITHIN for rows per match: last time − first time < within."""
        return self.within is not None and self.slide is None
