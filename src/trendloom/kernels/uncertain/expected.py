"""Aggregates over matches of imprecise times: their expectation over all worlds, and the probability of a match.

Both are computed without finding a match, by `densities` and `at_least_one`, whose cost they have. A window is computed
in doubles; it is repeated with fractions only where a probability or a product of probabilities is beyond their range.

It is given out when the watermark, which bounds the earliest times of events still to come, has passed its end. Events
of open windows are needed again, so there is nothing to dump.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import weights_of
from trendloom.kernels.columns.block import Block, IntervalBlock
from trendloom.kernels.columns.segments import first_at_least
from trendloom.kernels.contract import ADDED_UP, Asked, Built, Divisible, Expected, OnProgress
from trendloom.kernels.contract.aggregates import Amounts, Measure, Totals, doubles_as_amounts
from trendloom.kernels.contract.emission import Certain, EmissionPolicy
from trendloom.kernels.contract.matches import ResultColumn
from trendloom.kernels.jit.interpreted import interpret
from trendloom.kernels.match.search import SearchState
from trendloom.kernels.uncertain.at_least_one import MOST_STEPS, StretchesOfPoints, at_least_one
from trendloom.kernels.uncertain.densities import (
    NO_WINDOWS,
    TINY,
    LikelyPoints,
    SlidingPoints,
    WeighedEvents,
    as_fractions,
    expect,
    likely_points,
    sweep_workspace,
)
from trendloom.kernels.uncertain.kernel import ImpreciseKernel
from trendloom.model.time import Window

FAR = 2**62
PROBABILITY = "probability"
"""The measure that is the probability of at least one match."""


@dataclass(frozen=True)
class ExpectedOfSequence:
    """A sequence and its measures: the positions of the pattern that it consists of, in order.

    No event fits two of the positions, and nothing but the order of their points relates the events.
    """

    sequence: tuple[int, ...]
    measures: tuple[Measure, ...]
    window: Window

    @property
    def summed(self) -> tuple[Measure, ...]:
        """The measures that are sums over the events of matches."""
        return tuple(measure for measure in self.measures if measure.function in ("count", "sum"))


@dataclass(frozen=True)
class ExpectedKernel:
    """What to expect. `slack`: the most ticks from the earliest time of an event to its latest."""

    expectation: ExpectedOfSequence
    slack: int

    version: ClassVar[int] = 1
    family: ClassVar[str] = ADDED_UP
    adds_up: ClassVar[bool] = True
    aggregation: ClassVar[None] = None
    light: ClassVar[bool] = False
    summarising: ClassVar[None] = None
    columns: ClassVar[tuple[ResultColumn, ...]] = ()
    divisible: ClassVar[Divisible] = Divisible.EITHER_WAY

    def within(self, memory: int) -> Self:
        """The same: results are few."""
        return self

    def in_numbers(self, numeric: str) -> Self:
        """The same: expected values are doubles."""
        return self

    @property
    def reads(self) -> frozenset[str]:
        """The columns that are added up."""
        return frozenset(measure.column for measure in self.expectation.measures if measure.column)

    @property
    def keeps(self) -> str:
        return "the events of open windows"

    @property
    def emission(self) -> EmissionPolicy:
        return EmissionPolicy(self.expectation.window, Certain.WINDOW, slack=self.slack)

    def start(self) -> SearchState:
        return SearchState()

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Totals], SearchState]:
        """Take events; give out the windows that have ended."""
        assert isinstance(block, IntervalBlock)
        state = replace(state, block=block)
        if watermark is None:
            return iter(()), state
        found = list(self.ended(block, state.before, watermark))
        return iter(found), replace(state, before=watermark)

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """There is one result for a group and window: nothing to announce."""
        return None

    def finish(self, state: SearchState, on_progress: OnProgress | None = None) -> Iterator[Totals]:
        """All windows that are still open."""
        return iter(()) if state.block is None else self.ended(state.block, state.before, None)

    def kept(self, state: SearchState) -> Array | None:
        """The events that may lie in a window that has not ended."""
        if state.block is None or state.before is None or self.expectation.window.within is None:
            return None
        assert isinstance(state.block, IntervalBlock)
        kept: Array = state.block.high >= self.emission.first_open(state.before)
        return kept

    def dump(self, state: SearchState, *, whole: bool = False) -> pa.Table | None:
        """Nothing: all is made of the events."""
        return None

    def load(self, summaries: pa.Table | None, before: int | None) -> SearchState:
        return SearchState(before=before)

    def describe(self, state: SearchState) -> Built | None:
        """Nothing: a batch is added up when results are taken."""
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Totals] | None:
        """Totals do not contain their matches."""
        return None

    def ended(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Totals]:
        """Results of windows that have ended and were not out `before`; `watermark` None: of all that are left."""
        assert isinstance(block, IntervalBlock)
        if self.expectation.window.within is None:
            if watermark is None:
                yield expected_totals(self.expectation, block)
            return
        first = -FAR if before is None else self.emission.first_open(before)
        end = FAR if watermark is None else self.emission.first_open(watermark)
        yield expected_totals(self.expectation, block, (first, end))


@dataclass(frozen=True)
class LikelyMatchesKernel(ImpreciseKernel):
    """Matches one by one, to add up their confidences, and beside them the probability that there is any.

    Both are parts of the same results: totals with nothing but the probability are added to the sums over matches.
    `chance` gives the probability of each group and window; `summed` are added up over the matches.
    Cost: that of the search, and of `at_least_one`.
    """

    _: KW_ONLY
    chance: ExpectedKernel
    summed: tuple[Measure, ...]

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Any], SearchState]:
        """Take events; give out the matches of windows that have ended, and their probabilities."""
        found, after = super().step(state, block, watermark)
        if watermark is None:
            return found, after
        return chain(found, self._probabilities(block, state.before, watermark)), after

    def finish(self, state: SearchState, on_progress: OnProgress | None = None) -> Iterator[Any]:
        """Those of all windows that are still open."""
        if state.block is None:
            return iter(())
        return chain(super().finish(state, on_progress), self._probabilities(state.block, state.before, None))

    def _probabilities(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Totals]:
        """As totals in which all sums are zero."""
        for totals in self.chance.ended(block, before, watermark):
            nothing = doubles_as_amounts(np.zeros(len(totals)))
            values = dict(totals.values)
            values.update((measure.name, nothing) for measure in self.summed)
            yield replace(totals, values=values, whole=False)


# ------------------------------------------------------------------------------------------- results of a block


def expected_totals(
    expectation: ExpectedOfSequence, block: IntervalBlock, starts: tuple[int, int] | None = None
) -> Totals:
    """The results of all keys and windows that have a match in some world.

    `starts`: only windows that start from the one time on and before the other.
    """
    expected, slide = _BlockExpectation(expectation, block), expectation.window.slide
    numbered = -FAR, FAR
    if starts is not None and slide is not None:
        numbered = -(-starts[0] // slide), (starts[1] - 1) // slide
    key, start, numbers = expected.windows(numbered)
    values: dict[str, Amounts | Vector] = {m.name: numbers[lane] for lane, m in enumerate(expectation.summed, 1)}
    values |= {m.name: numbers[0] for m in expectation.measures if m.function == "matches"}
    chances = [measure.name for measure in expectation.measures if measure.function == PROBABILITY]
    if chances:
        values |= dict.fromkeys(chances, expected.probabilities(key, start))
    return Totals(key, start, values)


@dataclass(frozen=True, eq=False)
class _BlockExpectation:
    """The events of a block, in doubles, or as fractions where doubles do not do."""

    expectation: ExpectedOfSequence
    block: IntervalBlock

    def windows(self, numbered: tuple[int, int]) -> tuple[Array, Array, list[Amounts]]:
        """Keys and starts of the windows with a match, and their numbers: matches, then one per sum."""
        found, totals = self.sweep(self.block, numbered, exact=False)
        numbers = [doubles_as_amounts(lane) for lane in totals.T]
        for row in np.flatnonzero((found[:, 2] > 0) | ~np.isfinite(totals).all(axis=1)).tolist():
            again = self._exactly(int(found[row, 0]), int(found[row, 1]))
            for lane, number in zip(numbers, again, strict=False):
                _put(lane, row, number)
        return found[:, 0], found[:, 1], numbers

    def sweep(self, block: IntervalBlock, numbered: tuple[int, int], *, exact: bool) -> tuple[Array, Array]:
        """See `expect`."""
        events, weighed, sliding = self._inputs(block, numbered, exact=exact)
        space = sweep_workspace(events, weighed, sliding, len(self.expectation.sequence))
        arguments = (events, weighed, sliding, space)
        found: tuple[Array, Array] = interpret(expect, *arguments) if exact else expect(*arguments)
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
        self, block: IntervalBlock, numbered: tuple[int, int], *, exact: bool
    ) -> tuple[LikelyPoints, WeighedEvents, SlidingPoints]:
        sequence, window = self.expectation.sequence, self.expectation.window
        events, chosen = likely_points(block, sequence, exact=exact)
        rows: list[Array] = []
        weight_of, weighs = [], []
        for measure in self.expectation.summed:
            (weight,) = weights_of(measure, block, doubles=True)
            weight_of.append(-1 if weight is None else len(rows))
            if weight is not None:
                rows.append(as_fractions(weight[chosen]) if exact else weight[chosen].astype(np.float64))
            weighs.append([position in (measure.positions or ()) for position in sequence])
        weights = np.stack(rows) if rows else np.zeros((0, 0), events.even.dtype)
        sliding = SlidingPoints(block.grain, window.within or NO_WINDOWS, window.slide or 1, *numbered)
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
            raise RunError(
                f"PROBABILITY(*) of one group and window takes more than {MOST_STEPS:,} steps: it compares every two "
                "points at which neighbours of a match may be",
                hint=f"use a smaller WITHIN, or a coarser {option('time_grain')}",
            )
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


def _put(amounts: Amounts, row: int, number: Fraction) -> None:
    assert amounts.exponent is not None
    number = Fraction(number)
    size = number.numerator.bit_length() - number.denominator.bit_length()
    mantissa, more = math.frexp(float(number / Fraction(2) ** size))
    amounts.values[row], amounts.exponent[row] = mantissa, size + more if mantissa else 0
