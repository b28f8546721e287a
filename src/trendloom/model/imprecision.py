"""Imprecise time: where the bounds of each event's time come from, and how finely time is counted.

An event happened at one of the *points* of its interval, which are whole multiples of the grain. How the bounds become
points is said once, in `io.intervals`; everybody else works with `Intervals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trendloom.model.imprecise_options import MOST_POINTS


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
