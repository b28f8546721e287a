"""Expected aggregates of a block: sweep in doubles, repeat exactly what doubles cannot hold, collect the results.

Cost: that of `sweep` and of `at_least_one`. A window is repeated with fractions only where a probability or a product
of probabilities is beyond the range of doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.results import weights_of
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.columns.segments import first_at_least
from trendloom.kernels.contract.measures import Measure
from trendloom.kernels.contract.totals import Amounts, Totals, doubles_as_amounts
from trendloom.kernels.jit.interpreted import interpret
from trendloom.kernels.uncertain.expected.at_least_one import MOST_STEPS, StretchesOfPoints, at_least_one
from trendloom.kernels.uncertain.expected.masses import LikelyPoints, likely_points
from trendloom.kernels.uncertain.expected.sweep import (
    NO_WINDOWS,
    TINY,
    SlidingPoints,
    WeighedEvents,
    expect,
    sweep_room,
)
from trendloom.model.time import Window

EVERY_WINDOW = 2**62
PROBABILITY = "probability"
"""The measure that is the probability of at least one match."""


@dataclass(frozen=True)
class ExpectedOfSequence:
    """What to expect of a sequence: the positions of the pattern that it is made of, in order, and the measures.

    No event fits two of the positions, and nothing but the order of their points relates the events.
    """

    sequence: tuple[int, ...]
    measures: tuple[Measure, ...]
    window: Window

    @property
    def summed(self) -> tuple[Measure, ...]:
        """The measures that are sums over the events of matches."""
        return tuple(measure for measure in self.measures if measure.function in ("count", "sum"))

    @property
    def asks_for_probability(self) -> bool:
        return any(measure.function == PROBABILITY for measure in self.measures)


def expected_totals(
    expectation: ExpectedOfSequence, block: IntervalBlock, starts: tuple[int, int] | None = None
) -> Totals:
    """The results of all keys and windows that have a match in some world.

    `starts`: only windows that start from the one time on and before the other.
    """
    expected = _BlockExpectation(expectation, block)
    key, start, numbers = expected.windows(_numbered(expectation.window, starts))
    values: dict[str, Amounts | Vector] = {m.name: numbers[lane] for lane, m in enumerate(expectation.summed, 1)}
    values |= {m.name: numbers[0] for m in expectation.measures if m.function == "matches"}
    if expectation.asks_for_probability:
        chances = expected.probabilities(key, start)
        values |= {m.name: chances for m in expectation.measures if m.function == PROBABILITY}
    return Totals(key, start, values)


def exact_numbers(expectation: ExpectedOfSequence, block: IntervalBlock) -> dict[tuple[int, int], list[Fraction]]:
    """By key and start of the window, as fractions: the matches, the sums, and the probability if it is asked for.

    Much slower: this says what the doubles should be.
    """
    expected = _BlockExpectation(expectation, block)
    found, totals = expected.sweep(block, _numbered(expectation.window, None), exact=True)
    numbers = [[Fraction(number) for number in row] for row in totals]
    if expectation.asks_for_probability:
        for row, chance in zip(numbers, expected.exact_probabilities(found[:, 0], found[:, 1]), strict=True):
            row.append(Fraction(chance))
    return {(int(place[0]), int(place[1])): row for place, row in zip(found, numbers, strict=True)}


def _numbered(window: Window, starts: tuple[int, int] | None) -> tuple[int, int]:
    """The first and the last window asked for."""
    if starts is None or window.slide is None:
        return -EVERY_WINDOW, EVERY_WINDOW
    return -(-starts[0] // window.slide), (starts[1] - 1) // window.slide


@dataclass(frozen=True, eq=False)
class _BlockExpectation:
    """The events of a block, in doubles, or as fractions where doubles do not do."""

    expectation: ExpectedOfSequence
    block: IntervalBlock

    def windows(self, asked: tuple[int, int]) -> tuple[Array, Array, list[Amounts]]:
        """Keys and starts of the windows with a match, and their numbers: matches, then one per sum."""
        found, totals = self.sweep(self.block, asked, exact=False)
        numbers = [doubles_as_amounts(lane) for lane in totals.T]
        for row in np.flatnonzero((found[:, 2] > 0) | ~np.isfinite(totals).all(axis=1)).tolist():
            again = self._exactly(int(found[row, 0]), int(found[row, 1]))
            for lane, number in zip(numbers, again, strict=False):
                _put(lane, row, number)
        return found[:, 0], found[:, 1], numbers

    def sweep(self, block: IntervalBlock, asked: tuple[int, int], *, exact: bool) -> tuple[Array, Array]:
        """See `expect`."""
        events, weighed, sliding = self._inputs(block, asked, exact=exact)
        room = sweep_room(events, weighed, sliding, len(self.expectation.sequence))
        asked_for = (events, weighed, sliding, room)
        found: tuple[Array, Array] = interpret(expect, *asked_for) if exact else expect(*asked_for)
        return found

    def _exactly(self, key: int, start: int) -> list[Any]:
        """The numbers of one window as fractions; none where infinite values are added up."""
        slide = self.expectation.window.slide
        number = 0 if slide is None else start // slide
        try:
            _, totals = self.sweep(self.block.of_keys(key, key + 1), (number, number), exact=True)
        except OverflowError:  # infinity is no fraction
            return []
        return list(totals[0])

    def _inputs(
        self, block: IntervalBlock, asked: tuple[int, int], *, exact: bool
    ) -> tuple[LikelyPoints, WeighedEvents, SlidingPoints]:
        sequence, window = self.expectation.sequence, self.expectation.window
        events, chosen = likely_points(block, sequence, exact=exact)
        rows: list[Array] = []
        weight_of, weighs = [], []
        for measure in self.expectation.summed:
            (weight,) = weights_of(measure, block, doubles=True)
            weight_of.append(-1 if weight is None else len(rows))
            rows += [] if weight is None else [_numbers(weight[chosen], exact)]
            weighs.append([position in (measure.positions or ()) for position in sequence])
        weights = np.stack(rows) if rows else np.zeros((0, 0), events.even.dtype)
        sliding = SlidingPoints(block.grain, window.within or NO_WINDOWS, window.slide or 1, *asked)
        if window.slide is None:
            sliding = sliding._replace(within=NO_WINDOWS)
        flags = np.array(weighs, np.bool_).reshape(len(weighs), len(sequence))
        return events, WeighedEvents(weights, np.array(weight_of, np.int64), flags), sliding

    def probabilities(self, key: Array, start: Array) -> Amounts:
        """Of at least one match, in each of some windows."""
        events, _ = likely_points(self.block, self.expectation.sequence)
        stretches = self._stretches(events, key, start)
        found, refused = at_least_one(events, stretches, len(self.expectation.sequence), MOST_STEPS)
        if refused.any():
            raise _too_many_steps()
        numbers = doubles_as_amounts(np.minimum(found, 1.0))
        again = np.flatnonzero(found < TINY)
        if len(again):
            for row, number in zip(again.tolist(), self.exact_probabilities(key[again], start[again]), strict=True):
                _put(numbers, row, number)
        return numbers

    def exact_probabilities(self, key: Array, start: Array) -> Array:
        """The same as fractions."""
        events, _ = likely_points(self.block, self.expectation.sequence, exact=True)
        stretches = self._stretches(events, key, start)
        found: Array = interpret(at_least_one, events, stretches, len(self.expectation.sequence), MOST_STEPS)[0]
        return found

    def _stretches(self, events: LikelyPoints, key: Array, start: Array) -> StretchesOfPoints:
        """The events that may lie in each window; the longest interval says how much earlier they can begin."""
        window, grain = self.expectation.window, self.block.grain
        begin, end = events.key_starts[key], events.key_starts[key + 1]
        if window.slide is None or window.within is None:
            first = np.minimum.reduceat(events.first, begin) if len(key) else start
            return StretchesOfPoints(begin, end, first, np.full(len(key), events.last.max(initial=0)))
        first, last = -(-start // grain), -(-(start + window.within) // grain) - 1
        most = int((events.last - events.first).max(initial=0))
        return StretchesOfPoints(
            first_at_least(begin, end, events.first, first - most),
            first_at_least(begin, end, events.first, last + 1),
            first,
            last,
        )


def _numbers(weight: Array, exact: bool) -> Array:
    if not exact:
        return weight.astype(np.float64)
    found = np.empty(len(weight), object)
    found[:] = [Fraction(value) for value in weight.tolist()]
    return found


def _too_many_steps() -> RunError:
    return RunError(
        f"PROBABILITY(*) of one group and window takes more than {MOST_STEPS:,} steps: it compares every two points "
        "at which neighbours of a match may be",
        hint=f"use a smaller WITHIN, or a coarser {option('time_grain')}",
    )


# ---------------------------------------------------------------------------------------------------- amounts


def _put(amounts: Amounts, row: int, number: Fraction) -> None:
    assert amounts.exponent is not None
    number = Fraction(number)
    size = number.numerator.bit_length() - number.denominator.bit_length()
    mantissa, more = math.frexp(float(number / Fraction(2) ** size))
    amounts.values[row], amounts.exponent[row] = mantissa, size + more if mantissa else 0
