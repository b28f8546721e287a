"""Type-grained aggregation: one running aggregate per position, however many matches it stands for.

Without predicates on adjacent events every event is a small matrix on the aggregates (`Program`), so a stretch of
events is a matrix too. Windows that do not overlap carry one vector through their events; windows that overlap share
the matrices of their panes (`panes`), whichever costs less. The same algebra serves skip-till-next-match and
contiguous, where one number per position counts the runs that wait there (pattern-grained).

Cost: O(events · terms) for windows that do not overlap; O(events · terms · columns / SIMD width + panes · slots³)
otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import ABSENT, EMPTY, Addends, Spans, SpanTotals, grown, no_totals, not_before
from trendloom.kernels.aggregate.program import Program
from trendloom.kernels.aggregate.type_grained.matrices import (
    LONGEST_WORD,
    InstantKinds,
    Kinds,
    Matrices,
    flat,
    instant_kinds_of,
    kinds_of,
    one_per_instant,
    terms_of,
    words_of,
)
from trendloom.kernels.aggregate.type_grained.panes import (
    MatrixLayout,
    StretchMatrices,
    accepted_least,
    any_spilled,
    give_out,
    no_matrices,
    slide,
)
from trendloom.kernels.aggregate.type_grained.sweep import Steps, TimedInstantKinds, advance, advance_least
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.numbers import LEAN, Limbs, Numbers, add_unit, clear, copy, zeros_like
from trendloom.kernels.jit.compiled import njit
from trendloom.model.time import Window

MANY_POINTS = 64
"""Of one in so many points in time and more the numbers are looked up in a table of all, not searched for."""
WORTH_WORDS = 200_000
"""Events from which on the matrices of words pay for themselves."""


FEW_STEPS = 1 << 21
"""Events of all windows, up to which windows are walked one by one: that takes milliseconds, and less to compile."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """The events and tables of a block to be added up, ready to be run in any number system."""

    addends: Addends

    @cached_property
    def program(self) -> Program:
        return Program(self.addends.automaton)

    @cached_property
    def kinds(self) -> Kinds:
        return kinds_of(one_per_instant(self.addends.block, self.addends.spec.pattern_spec.hidden))

    @cached_property
    def matrices(self) -> Matrices:
        return Matrices(self.program, self.addends, self.kinds.positions)

    @cached_property
    def instant_kinds(self) -> InstantKinds | None:
        """Points in time as letters, where there are ties and no event has a weight of its own."""
        if len(self.kinds.own) == 0 or len(self.addends.weights):
            return None
        return instant_kinds_of(self.addends.block, self.kinds)

    @cached_property
    def by_event(self) -> tuple[TimedInstantKinds, Steps]:
        """For what goes from event to event: weights and least values."""
        kinds, matrices = self.kinds, self.matrices
        start, offset = np.zeros(0, np.int64), np.zeros(2, np.int64)
        events = TimedInstantKinds(
            kinds.code, kinds.tied, start, kinds.own, kinds.union, self.addends.block.instant, self.addends.weights
        )
        order = np.array(self.program.order, np.int64)
        kept, entered, instant_kinds = matrices.kept(), matrices.entered(), len(kinds.positions)
        steps = Steps(matrices.single(), None, None, offset, instant_kinds, kept, entered, order, matrices.size)
        return events, steps

    @cached_property
    def by_time(self) -> tuple[TimedInstantKinds, Steps]:
        """For numbers: letters, and words of them where the stream is long enough."""
        events, steps = self.by_event
        matrices, instant_kinds = self.matrices, self.instant_kinds
        if len(self.addends.weights):
            return _without_ties(events), steps
        counts = [{kind: 1} for kind in range(len(matrices.kinds))] if instant_kinds is None else instant_kinds.counts
        alphabet = [matrices.letter(each) for each in counts]
        steps = steps._replace(single=flat([terms_of(matrix) for matrix in alphabet], matrices.size))
        if len(self.addends.block) >= WORTH_WORDS:
            words, offset = words_of(alphabet, matrices.size, longest=LONGEST_WORD)
            if len(words):
                steps = steps._replace(
                    words=words, words_of_doubles=words.astype(np.float64), offset=offset, instant_kinds=len(counts)
                )
        if instant_kinds is not None:
            events = events._replace(code=instant_kinds.code, tied=instant_kinds.tied, start=instant_kinds.start)
        return _without_ties(events), steps

    def points(self, events: Array) -> Array:
        """Indices of events, each the first of its time, as points in time."""
        if self.instant_kinds is None:
            return events
        start = self.instant_kinds.start
        if len(events) < len(start) // MANY_POINTS:
            return np.searchsorted(start, events)
        before = np.zeros(int(start[-1]) + 1, np.int32 if len(start) < 2**31 else np.int64)
        before[start[1:]] = 1
        found: Array = np.cumsum(before, out=before)[events]
        return found.astype(np.int64)

    @cached_property
    def shape(self) -> MatrixLayout:
        program, slots = self.program, len(self.program.slots)
        grows = np.ones(slots, np.bool_)
        grows[list(program.sources)] = False
        begin = program.sources.index(program.begin)
        columns, accepts = np.array(program.sources, np.int64), np.array(program.accepts, np.int64)
        return MatrixLayout(slots, self.addends.linear, columns, grows, begin, accepts)

    @cached_property
    def valued(self) -> Array:
        """[extreme, slot]: whether events that enter a slot bring a value along."""
        found = np.zeros((self.addends.extremes, len(self.program.slots)), np.bool_)
        for slot, position in enumerate(self.program.position_of):
            if position >= 0:
                found[:, slot] = self.addends.valued[:, position]
        return found


def _without_ties(events: TimedInstantKinds) -> TimedInstantKinds:
    """The same events; without what ties need where each has a letter."""
    return events if (events.code == events.tied).any() else events._replace(own=None, union=None)


def add_up(addends: Addends, spans: Spans, numbers: Numbers) -> SpanTotals:
    """Add up all matches of every span, in the number system of `numbers`."""
    return run(Prepared(addends), spans, numbers)


def run(prepared: Prepared, spans: Spans, numbers: Numbers, *, panes: bool | None = None) -> SpanTotals:
    """As `add_up`; `panes` forces windows as products of panes, or one by one."""
    addends, shape = prepared.addends, prepared.shape
    found = no_totals(addends, spans, numbers)
    if len(spans) == 0:
        return found
    if panes is None:
        panes = _worth_panes(prepared, spans)
    if not panes:
        size = shape.slots * (addends.linear + 1)
        each = _roomy_each if isinstance(numbers, Limbs) else _lean_each
        low, high = prepared.points(spans.low), prepared.points(spans.high)
        rows, spare = zeros_like(numbers, size, 1), zeros_like(numbers, 2 * size, 1)
        each(found, low, high, shape, *prepared.by_time, rows, spare)
        if addends.extremes:
            _each_least(found.least, spans.low, spans.high, shape, *prepared.by_event, addends.values, prepared.valued)
        return found
    pane = pane_of(addends.spec.pattern_spec.window)
    assert pane is not None
    pieces = pieces_of(addends.block, pane)
    needed = np.unique(spans.key)
    if len(needed) < addends.block.keys:
        pieces = pieces[np.isin(np.searchsorted(addends.block.key_starts, pieces[:, 0], side="right") - 1, needed)]
    begin, end = pieces[:, 0], pieces[:, 1]
    matrices = reduce_numbers(prepared, begin, end, numbers)._replace(least=reduce_least(prepared, begin, end))
    first, last = np.searchsorted(begin, spans.low), np.searchsorted(begin, spans.high)
    slide(found, first, last, matrices, shape)
    return found


def reduce_numbers(prepared: Prepared, begin: Array, end: Array, numbers: Numbers) -> StretchMatrices:
    """The matrix of every stretch of events, in the number system of `numbers`, without least values."""
    shape = prepared.shape
    lanes, size = len(shape.columns), shape.slots * (shape.measures + 1)
    found = no_matrices(numbers, len(begin), 0, shape, lanes)
    reducing = _roomy_reduce if isinstance(numbers, Limbs) else _lean_reduce
    first, last = prepared.points(begin), prepared.points(end)
    rows, spare = zeros_like(numbers, size, lanes), zeros_like(numbers, 2 * size, lanes)
    reducing(found, first, last, shape, *prepared.by_time, rows, spare)
    return found


def reduce_least(prepared: Prepared, begin: Array, end: Array) -> Array:
    """The least values of the matrices of stretches, [stretch, extreme, slot, lane]."""
    shape, addends = prepared.shape, prepared.addends
    least = np.empty((len(begin), addends.extremes, shape.slots, len(shape.columns)), np.int64)
    if addends.extremes:
        _reduce_least(least, begin, end, shape, *prepared.by_event, addends.values, prepared.valued)
    return least


def _worth_panes(prepared: Prepared, spans: Spans) -> bool:
    """Whether matrices of panes cost less than walking through every window."""
    window = prepared.addends.spec.pattern_spec.window
    if window.slide is None or window.within is None or window.within <= window.slide or len(spans) == 0:
        return False
    columns, slots = len(prepared.shape.columns), prepared.shape.slots
    walked = int((spans.high - spans.low).sum())
    if walked <= FEW_STEPS:
        return False
    events, pane = len(prepared.addends.block), math.gcd(window.within, window.slide)
    steps = (int(spans.start.max()) - int(spans.start.min())) // pane
    panes = min(events, (steps + 1) * len(np.unique(spans.key)))
    return events * (1 + columns / 8) + (panes + len(spans)) * slots * columns * columns < walked


def pane_of(window: Window) -> int | None:
    """The length of a pane; None: the whole stream is one."""
    if window.within is None or window.slide is None:
        return None
    return math.gcd(window.within, window.slide)


def pieces_of(block: Block, pane: int) -> Array:
    """The stretches of events that lie in one pane, [begin, end] each."""
    found: Array = _pieces(block.key_starts, block.time, pane)
    return found


@njit(nogil=True)
def _pieces(key_starts: Array, time: Array, pane: int) -> Array:
    found = np.empty((16, 2), np.int64)
    count = 0
    for key in range(len(key_starts) - 1):
        at, end = key_starts[key], key_starts[key + 1]
        while at < end:
            high = not_before(time, at, end, (time[at] // pane + 1) * pane)
            found = grown(found, count)
            found[count, 0], found[count, 1] = at, high
            count += 1
            at = high
    return found[:count]


def _each(
    found: SpanTotals, low: Array, high: Array, shape: MatrixLayout, events: TimedInstantKinds, steps: Steps,
    rows: Numbers, spare: Numbers,
) -> None:  # fmt: skip
    """One vector through the points in time of every span."""
    for span in range(len(low)):
        for row in range(steps.size):
            clear(rows, row)
        add_unit(rows, shape.columns[shape.begin], 0, 1)
        advance(rows, spare, low[span], high[span], steps, events)
        give_out(found.numbers, span, rows, 0, shape)
        found.spilled[span] = any_spilled(rows) | any_spilled(spare) | any_spilled(found.numbers)


@njit(nogil=True)
def _each_least(
    out: Array, low: Array, high: Array, shape: MatrixLayout, events: TimedInstantKinds, steps: Steps,
    values: Array, valued: Array,
) -> None:  # fmt: skip
    least, spare = np.empty((shape.slots, 1), np.int64), np.empty((2 * shape.slots, 1), np.int64)
    for span in range(len(low)):
        for x in range(len(values)):
            least[:] = ABSENT
            least[shape.columns[shape.begin], 0] = EMPTY
            advance_least(least, spare, low[span], high[span], steps, events, values[x], valued[x])
            out[span, x] = accepted_least(least, shape)


def _reduce(
    found: StretchMatrices, begin: Array, end: Array, shape: MatrixLayout, events: TimedInstantKinds, steps: Steps,
    rows: Numbers, spare: Numbers,
) -> None:  # fmt: skip
    """One matrix for the events of every stretch: lane k begins with one in slot `columns[k]`."""
    for piece in range(len(begin)):
        for row in range(steps.size):
            clear(rows, row)
        for lane in range(len(shape.columns)):
            add_unit(rows, shape.columns[lane], lane, 1)
        advance(rows, spare, begin[piece], end[piece], steps, events)
        for row in range(steps.size):
            copy(found.numbers, piece * steps.size + row, rows, row)
        found.spilled[piece] = any_spilled(rows) | any_spilled(spare)


_lean_each, _roomy_each = njit(**LEAN)(_each), njit(nogil=True)(_each)
_lean_reduce, _roomy_reduce = njit(**LEAN)(_reduce), njit(nogil=True)(_reduce)


@njit(nogil=True)
def _reduce_least(
    least: Array, begin: Array, end: Array, shape: MatrixLayout, events: TimedInstantKinds, steps: Steps,
    values: Array, valued: Array,
) -> None:  # fmt: skip
    spare = np.empty((2 * shape.slots, len(shape.columns)), np.int64)
    for piece in range(len(begin)):
        for x in range(len(values)):
            mine = least[piece, x]
            mine[:] = ABSENT
            for lane in range(len(shape.columns)):
                mine[shape.columns[lane], lane] = EMPTY
            advance_least(mine, spare, begin[piece], end[piece], steps, events, values[x], valued[x])
