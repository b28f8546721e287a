"""Collapsed trends: one row for all matches with the same events outside Kleene variables, without enumerating them.

Idea: the events of a match outside Kleene variables are its *spine*. A spine has at most one event for each position
outside Kleene variables, so there are only polynomially many. Between two neighbours of a spine lies a *gap*: its
Kleene events depend on these neighbours and on each other, not on other gaps, so each gap is a small problem of its
own. The events of a row are its spine and what lies in its gaps; the number of its matches is the product of the ways
through them. A gap that several spines share is filled once. Where a gap depends on more, matches are merged instead
(`kernel`).

All gaps of one kind become the keys of one block: the event before the gap, the events between that may take part, the
event after it. Conditions with events of the spine drop events, `prune` drops those on no match, and the aggregation
kernel counts the ways through, in numbers as wide as needed. No Python loop over gaps or events.

Cost: O(events of all rows), independent of the number of matches, times the grain of the count where adjacent events
are compared. See Zhang, "High-Performance Complex Event Processing for Decision Analytics", ch. 4 (SASE++: the
collapsed format).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, columns
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.aggregate.block import aggregate
from trendloom.kernels.aggregate.measures import spans_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import Pair, PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.search import CERTAIN_FROM
from trendloom.kernels.matching.windows import surroundings
from trendloom.kernels.trends.prune import on_a_match

MATCHES = "matches"
"""The column with the number of matches that a row represents."""
CHUNK = 1 << 20
"""Events of the rows that are built at once, unless one row has more."""
NO_EVENT = -1


@dataclass(frozen=True)
class Settled:
    """A condition on each event of one Kleene variable that is about that event alone once the spine is known.

    `others`: the variables of the spine that it uses; where one of them is not bound the condition is true.
    """

    variable: str
    others: tuple[str, ...]
    expr: Expr


@dataclass(frozen=True)
class Gap:
    """The ways from one position of the spine (None: from the start) to another (None: to the end).

    `positions`: those of Kleene variables that may lie in between. `ways` counts the ways through the gap; for it the
    positions are numbered anew: `positions` in order, then the source, then the target. `free`: nothing lies in
    between and nothing is compared, so there is one way.
    """

    source: int | None
    target: int | None
    positions: tuple[int, ...]
    ways: AggregationSpec
    free: bool


@dataclass(frozen=True)
class Spine:
    """How rows are found without enumerating matches.

    `pattern_spec` finds the spines; None: no match has events outside Kleene variables. `anchored`: a bare WITHIN ties
    Kleene events before the spine to others after it, so a spine also holds the first event of the match.
    `empty`: a match may do without any event of the spine.
    """

    pattern_spec: PatternSpec | None
    gaps: tuple[Gap, ...]
    settled: tuple[Settled, ...]
    anchored: bool
    empty: bool


@dataclass(frozen=True, eq=False)
class Spines:
    """Spines of equal length: `events[r, c]` at `positions[r, c]`. Kleene events have indices from low to high."""

    events: Array
    positions: Array
    low: Array
    high: Array
    start: Array | None

    def __len__(self) -> int:
        return len(self.low)

    def part(self, begin: int, end: int) -> Spines:
        some = slice(begin, end)
        start = None if self.start is None else self.start[some]
        return Spines(self.events[some], self.positions[some], self.low[some], self.high[some], start)


def spines_of(spine: Spine, pattern_spec: PatternSpec, block: Block) -> Iterator[Spines]:
    """Chunks of spines that some match may have."""
    if spine.empty and not spine.anchored:
        yield _empty(pattern_spec, block)
    if spine.pattern_spec is None:
        return
    for found in enumerate_matches(spine.pattern_spec, block):
        events = found.events.reshape(len(found), -1)
        low, high = surroundings(block, events[:, 0], events[:, -1], found.window_start, pattern_spec.window)
        yield Spines(events, found.positions.reshape(events.shape), low, high, found.window_start)


def _empty(pattern_spec: PatternSpec, block: Block) -> Spines:
    """No event outside Kleene variables: one spine for each key and window."""
    spans = spans_of(block, pattern_spec.window)
    nothing = np.zeros((len(spans), 0), np.int64)
    start = spans.start if pattern_spec.window.sliding else None
    return Spines(nothing, nothing.astype(np.int32), spans.low, spans.high, start)


# --------------------------------------------------------------------------------------------------- gaps


@dataclass(frozen=True, eq=False)
class GapInstances:
    """Gaps of one kind to be filled: the events around each (`NO_EVENT`: start or end), and the indices between them.

    `spine`: for variables of the spine that conditions use, the event each gap's spine binds, or `NO_EVENT`.
    """

    source: Array
    target: Array
    low: Array
    high: Array
    spine: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, eq=False)
class GapContents:
    """Per gap its entries (`offsets`, `events`, `positions`), in order of time, and the ways through it; 0: none."""

    offsets: Array
    events: Array
    positions: Array
    ways: Array


@dataclass(frozen=True, eq=False)
class GapFiller:
    """One kind of gap over one block, not a free one."""

    pattern_spec: PatternSpec
    gap: Gap
    settled: tuple[Settled, ...]
    block: Block

    @cached_property
    def members(self) -> Array:
        """The events that may lie in such a gap."""
        lists = [self.block.members[position] for position in self.gap.positions]
        return np.unique(np.concatenate(lists)) if lists else np.zeros(0, np.int64)

    @cached_property
    def words(self) -> Array:
        """Per member the positions of the gap that it fits."""
        words = np.zeros(len(self.members), np.uint64)
        for bit, position in enumerate(self.gap.positions):
            words[np.searchsorted(self.members, self.block.members[position])] |= np.uint64(1 << bit)
        return words

    def fill(self, gaps: GapInstances) -> GapContents:
        """Fill every gap."""
        begin, end = np.searchsorted(self.members, gaps.low), np.searchsorted(self.members, gaps.high)
        bits = len(self.gap.positions)
        starts, events, fits = _lay_out(self.members, self.words, begin, end, gaps.source, gaps.target, bits)
        self._settle(events, fits, np.repeat(np.arange(len(gaps)), np.diff(starts)), gaps)
        inside = self._block_of(starts, events, fits)
        inside = replace(inside, fits=(on_a_match(self.gap.ways, inside),))
        ways = self._count(inside, len(gaps))
        offsets, entries, positions = _listed(starts, inside.fits[0], *self._variables)
        return GapContents(offsets, events[entries], positions, ways)

    def _settle(self, events: Array, fits: Array, gap_of: Array, gaps: GapInstances) -> None:
        """Events that fail a condition with events of the spine lose the positions of its variable."""
        for one in self.settled:
            mask = self._positions_of(one.variable)
            rows = np.flatnonzero((fits & mask) != 0) if mask else np.zeros(0, np.int64)
            for name in one.others:
                rows = rows[gaps.spine[name][gap_of[rows]] != NO_EVENT]
            if len(rows):
                passed = is_true(evaluate(one.expr, self._leaf(one, events[rows], gap_of[rows], gaps)))
                fits[rows[~np.broadcast_to(passed, len(rows))]] &= ~mask

    def _leaf(self, one: Settled, events: Array, gap_of: Array, gaps: GapInstances) -> Any:
        def leaf(expr: Expr) -> Vector:
            assert isinstance(expr, Attribute)
            chosen = events if expr.variable == one.variable else gaps.spine[expr.variable][gap_of]
            return self.block.columns[expr.column].take(chosen)

        return leaf

    def _positions_of(self, variable: str) -> np.uint64:
        places = self.pattern_spec.places
        mine = (1 << bit for bit, p in enumerate(self.gap.positions) if places[p].variable == variable)
        return np.uint64(sum(mine))

    @cached_property
    def _variables(self) -> tuple[Array, Array]:
        """The Kleene variables of the gap in order: a word with the bits of each, and its first position."""
        places = self.pattern_spec.places
        names = sorted({places[position].variable for position in self.gap.positions})
        first = [min(p for p, one in enumerate(places) if one.variable == name) for name in names]
        words = np.array([self._positions_of(name) for name in names], np.uint64)
        return words, np.array(first, np.int32)

    def _block_of(self, starts: Array, events: Array, fits: Array) -> Block:
        """A block with a key for each gap; `fits`: the positions of the gap that each of its events fits."""
        block = self.block
        pairs = [pair for pair in self.gap.ways.pairs if isinstance(pair, Pair)]  # a spine has no NOT to cross
        used = {name for pair in pairs for side in (pair.left, pair.right) for name in columns(side)}
        used |= {name for test in self.gap.ways.tests for name in columns(test.expr)}
        return Block(
            key_starts=starts,
            time=block.time[events],
            row=block.row[events],
            columns={name: block.columns[name].take(events) for name in sorted(used)},
            fits=(fits,),
            bits=tuple(range(len(self.gap.positions) + 2)),
            instants=block.instants_of(events),
        )

    def _count(self, inside: Block, gaps: int) -> Array:
        ways = np.zeros(gaps, np.int64)
        for totals in aggregate(self.gap.ways, inside, "exact"):
            amounts = totals.values["matches"]
            assert isinstance(amounts, Amounts)
            ways = ways if amounts.values.dtype == np.int64 else ways.astype(object)
            ways[totals.key] = amounts.values
        return ways


# --------------------------------------------------------------------------------------------------- rows


class CollapsedRows:
    """The rows of every window and partition of a block; the column `matches` counts the matches of each."""

    def __init__(self, spine: Spine, pattern_spec: PatternSpec, block: Block) -> None:
        self.spine, self.pattern_spec, self.block = spine, pattern_spec, block
        self.fillers: dict[tuple[int, int], GapFiller] = {}
        for gap in (one for one in spine.gaps if not one.free):
            names = {pattern_spec.places[position].variable for position in gap.positions}
            settled = tuple(one for one in spine.settled if one.variable in names)
            self.fillers[_number(gap.source), _number(gap.target)] = GapFiller(pattern_spec, gap, settled, block)
        fits = [block.members[p] for p in {p for gap in spine.gaps for p in gap.positions}]
        self.plural = np.unique(np.concatenate(fits)) if fits else np.zeros(0, np.int64)

    def chunks(self) -> Iterator[Matches]:
        """The rows, a chunk at a time; with an anchored spine several of them can be one row."""
        for spines in spines_of(self.spine, self.pattern_spec, self.block):
            for begin, end in self._parts(spines):
                found = self._rows(spines.part(begin, end))
                if len(found):
                    yield found

    def _parts(self, spines: Spines) -> Iterator[tuple[int, int]]:
        """Ranges of spines whose rows have a bounded number of events in all."""
        size = np.searchsorted(self.plural, spines.high) - np.searchsorted(self.plural, spines.low)
        ends = np.cumsum(size + spines.events.shape[1] + 1)
        begin = 0
        while begin < len(spines):
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
            yield begin, end
            begin = end

    def _rows(self, spines: Spines) -> Matches:
        rows, length = spines.events.shape
        which = np.full((rows, length + 1), NO_EVENT, np.int64)
        filled: list[GapContents] = []
        for column in range(length + 1):
            for filler, mine in self._kinds(spines, column):
                gaps, number = self._instances(filler, spines, mine, column)
                which[mine, column] = number + sum(len(one.ways) for one in filled)
                filled.append(filler.fill(gaps))
        ways = _product([one.ways for one in filled], which)
        kept = np.flatnonzero(ways != 0)
        offsets, events, positions = _assembled(
            *_pooled(filled), which[kept], spines.events[kept], spines.positions[kept]
        )
        start = None if spines.start is None else spines.start[kept]
        certain_from = spines.events[kept, 0] if length else events[offsets[:-1]]
        return Matches(offsets, events, positions, start, {MATCHES: ways[kept], CERTAIN_FROM: certain_from})

    def _kinds(self, spines: Spines, column: int) -> Iterator[tuple[GapFiller, Array]]:
        """The kinds of gaps before the event at `column`, each with its rows; not those with nothing to fill."""
        none = np.full(len(spines), NO_EVENT, np.int64)
        source = spines.positions[:, column - 1].astype(np.int64) if column else none
        target = spines.positions[:, column].astype(np.int64) if column < spines.events.shape[1] else none
        first, number = distinct([source + 1, target + 1])
        for kind, row in enumerate(first):
            filler = self.fillers.get((int(source[row]), int(target[row])))
            if filler is not None:
                yield filler, np.flatnonzero(number == kind)

    def _instances(
        self, filler: GapFiller, spines: Spines, rows: Array, column: int
    ) -> tuple[GapInstances, Array]:  # fmt: skip
        """The different gaps among these rows, and for every row the number of its gap."""
        gap, none = filler.gap, np.full(len(rows), NO_EVENT, np.int64)
        source = none if gap.source is None else spines.events[rows, column - 1]
        target = none if gap.target is None else spines.events[rows, column]
        low = spines.low[rows] if gap.source is None else self.block.tie_end[source]
        high = spines.high[rows] if gap.target is None else self.block.tie_start[target]
        used = sorted({name for one in filler.settled for name in one.others})
        spine = {name: self._bound(name, spines, rows) for name in used}
        first, number = distinct([source + 1, target + 1, low, high, *(events + 1 for events in spine.values())])
        bound = {name: events[first] for name, events in spine.items()}
        return GapInstances(source[first], target[first], low[first], high[first], bound), number

    def _bound(self, variable: str, spines: Spines, rows: Array) -> Array:
        """The event that each spine binds to a variable."""
        mine = np.array([one.variable == variable for one in self.pattern_spec.places], np.bool_)
        found = np.full(len(rows), NO_EVENT, np.int64)
        for column in range(spines.events.shape[1]):
            here = mine[spines.positions[rows, column]]
            found[here] = spines.events[rows[here], column]
        return found


def _number(position: int | None) -> int:
    return NO_EVENT if position is None else position


def _product(ways: list[Array], which: Array) -> Array:
    """Per row the product of the ways through its gaps; a gap that was not filled has one."""
    pool = np.concatenate([*ways, np.ones(1, np.int64)])  # which −1 selects
    product = np.ones(len(which), np.int64)
    for column in range(which.shape[1]):
        factor = pool[which[:, column]]
        if int(product.max(initial=0)) * int(factor.max(initial=0)) >= 2**63:
            product = product.astype(object)
        product = product * factor
    return product


def _pooled(filled: list[GapContents]) -> tuple[Array, Array, Array]:
    """Offsets, events and positions of all gaps, one after another."""
    sizes = [np.diff(one.offsets) for one in filled]
    offsets = np.r_[0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))].astype(np.int64)
    events = np.concatenate([np.zeros(0, np.int64), *(one.events for one in filled)])
    return offsets, events, np.concatenate([np.zeros(0, np.int32), *(one.positions for one in filled)])


def packed(columns: Sequence[Array]) -> Array:
    """One integer per row that is equal, and sorts, as the row does. Columns hold no negative numbers."""
    code = columns[0].astype(np.int64)
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if (int(code.max(initial=0)) + 1) * width >= 2**62:
            code = np.unique(code, return_inverse=True)[1].reshape(-1)
        code = code * width + column
    return code


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """The index of the first of each different row, and for every row its number; numbers sort as rows do."""
    _, first, number = np.unique(packed(columns), return_index=True, return_inverse=True)
    return first, number.reshape(-1)


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _lay_out(
    members: Array, words: Array, begin: Array, end: Array, source: Array, target: Array, bits: int
) -> tuple[Array, Array, Array]:
    """Source, members begin to end, target of every gap one after another."""
    gaps = len(begin)
    starts = np.zeros(gaps + 1, np.int64)
    for gap in range(gaps):
        around = int(source[gap] != NO_EVENT) + int(target[gap] != NO_EVENT)
        starts[gap + 1] = starts[gap] + max(end[gap] - begin[gap], 0) + around
    events, fits = np.empty(starts[gaps], np.int64), np.empty(starts[gaps], np.uint64)
    for gap in range(gaps):
        at = starts[gap]
        if source[gap] != NO_EVENT:
            events[at], fits[at] = source[gap], np.uint64(1) << np.uint64(bits)
            at += 1
        for member in range(begin[gap], end[gap]):
            events[at], fits[at] = members[member], words[member]
            at += 1
        if target[gap] != NO_EVENT:
            events[at], fits[at] = target[gap], np.uint64(1) << np.uint64(bits + 1)
    return starts, events, fits


@njit(nogil=True)
def _listed(starts: Array, fits: Array, variables: Array, positions: Array) -> tuple[Array, Array, Array]:
    """One entry for each variable that a match of the gap binds an event to."""
    offsets = np.zeros(len(starts), np.int64)
    for gap in range(len(starts) - 1):
        count = 0
        for event in range(starts[gap], starts[gap + 1]):
            for variable in variables:
                count += (fits[event] & variable) != np.uint64(0)
        offsets[gap + 1] = offsets[gap] + count
    entries, bound = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int32)
    at = 0
    for event in range(starts[-1]):
        for number in range(len(variables)):
            if fits[event] & variables[number]:
                entries[at], bound[at] = event, positions[number]
                at += 1
    return offsets, entries, bound


@njit(nogil=True)
def _assembled(
    offsets: Array, events: Array, positions: Array, which: Array, spine: Array, bound: Array
) -> tuple[Array, Array, Array]:
    """Rows: what lies in the first gap, the first event of the spine, what lies in the next gap, and so on."""
    rows, gaps = which.shape
    begin = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        size = gaps - 1
        for column in range(gaps):
            gap = which[row, column]
            size += offsets[gap + 1] - offsets[gap] if gap != NO_EVENT else 0
        begin[row + 1] = begin[row] + size
    found, at_position = np.empty(begin[rows], np.int64), np.empty(begin[rows], np.int32)
    at = 0
    for row in range(rows):
        for column in range(gaps):
            gap = which[row, column]
            if gap != NO_EVENT:
                for entry in range(offsets[gap], offsets[gap + 1]):
                    found[at], at_position[at] = events[entry], positions[entry]
                    at += 1
            if column < gaps - 1:
                found[at], at_position[at] = spine[row, column], bound[row, column]
                at += 1
    return begin, found, at_position
