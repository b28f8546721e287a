"""Collapsed trends: one row for all matches with the same events outside Kleene variables, without enumerating them.

Idea: the events outside Kleene variables are the *spine* of a match, and there are only polynomially many spines. Once
a spine is known, each gap between two of its events is a small problem of its own: which events may lie in it, and in
how many ways (`fill_gaps`). The union is what lies in the gaps, the number of matches the product of the ways. A gap
that several spines share is filled once. Where a gap depends on more, matches are put together instead (`merge`).

Cost: O(events of all rows), be the matches as many as they like. See Zhang, "High-Performance
Complex Event Processing for Decision Analytics", ch. 4 (SASE++: the collapsed format).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.spans import spans_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.search import CERTAIN_FROM
from trendloom.kernels.matching.windows import surroundings
from trendloom.kernels.trends.collapsed.gaps import NOBODY, Asked, Filled, Filling
from trendloom.kernels.trends.collapsed.merge import distinct, merged
from trendloom.kernels.trends.collapsed.spec import MATCHES, Gap, Spine

# The spines of all matches, and where Kleene events before and after each may lie.
#
# There are polynomially many: a spine has at most one event for each position outside Kleene variables. They are found
# like matches of a pattern that has only these positions, and appear once for each window that holds them.


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


CHUNK = 1 << 20
"""Events of the rows that are built together, unless one row has more."""


def collapse(spine: Spine, pattern_spec: PatternSpec, block: Block) -> Iterator[Matches]:
    """The rows of every window and partition, in chunks; the column `matches` says how many a row stands for."""
    found = _CollapsedRows(spine, pattern_spec, block).chunks()
    return merged(found, pattern_spec, block) if spine.anchored else found


class _CollapsedRows:
    """The rows of one block."""

    def __init__(self, spine: Spine, pattern_spec: PatternSpec, block: Block) -> None:
        self.spine, self.pattern_spec, self.block = spine, pattern_spec, block
        self.fillings: dict[tuple[int, int], Filling] = {}
        for gap in spine.gaps:
            names = {pattern_spec.places[position].variable for position in gap.positions}
            settled = tuple(one for one in spine.settled if one.variable in names)
            self.fillings[_number(gap.source), _number(gap.target)] = Filling(pattern_spec, gap, settled, block)
        fits = [block.members[p] for p in {p for gap in spine.gaps for p in gap.positions}]
        self.plural = np.unique(np.concatenate(fits)) if fits else np.zeros(0, np.int64)

    def chunks(self) -> Iterator[Matches]:
        for spines in spines_of(self.spine, self.pattern_spec, self.block):
            for begin, end in self._parts(spines):
                found = self._rows(spines.part(begin, end))
                if len(found):
                    yield found

    def _parts(self, spines: Spines) -> Iterator[tuple[int, int]]:
        """Stretches of spines whose rows have a bounded number of events together."""
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
        which = np.full((rows, length + 1), NOBODY, np.int64)
        filled: list[Filled] = []
        for place in range(length + 1):
            for filling, mine in self._kinds(spines, place):
                gaps, number = self._asked(filling.gap, spines, mine, place)
                which[mine, place] = number + sum(len(one.ways) for one in filled)
                filled.append(filling.fill(gaps))
        ways = _product([one.ways for one in filled], which)
        kept = np.flatnonzero(ways != 0)
        pool = _pooled([(one.offsets, one.events, one.positions) for one in filled])
        offsets, events, positions = _assembled(*pool, which[kept], spines.events[kept], spines.positions[kept])
        start = None if spines.start is None else spines.start[kept]
        columns = {MATCHES: ways[kept], CERTAIN_FROM: self._certain_from(spines, kept, offsets, events)}
        return Matches(offsets, events, positions, start, columns)

    def _certain_from(self, spines: Spines, kept: Array, offsets: Array, events: Array) -> Array:
        return spines.events[kept, 0] if spines.events.shape[1] else events[offsets[:-1]]

    def _kinds(self, spines: Spines, place: int) -> Iterator[tuple[Filling, Array]]:
        """The kinds of gaps before the event at `place`, each with its rows; not those with nothing to fill."""
        nobody = np.full(len(spines), NOBODY, np.int64)
        length = spines.events.shape[1]
        source = spines.positions[:, place - 1].astype(np.int64) if place else nobody
        target = spines.positions[:, place].astype(np.int64) if place < length else nobody
        first, number = distinct([source + 1, target + 1])
        for kind, row in enumerate(first):
            filling = self.fillings[int(source[row]), int(target[row])]
            if not filling.gap.free:
                yield filling, np.flatnonzero(number == kind)

    def _asked(self, gap: Gap, spines: Spines, rows: Array, place: int) -> tuple[Asked, Array]:
        """The different gaps among these rows, and for every row the number of its gap."""
        nobody = np.full(len(rows), NOBODY, np.int64)
        source = nobody if gap.source is None else spines.events[rows, place - 1]
        target = nobody if gap.target is None else spines.events[rows, place]
        low = spines.low[rows] if gap.source is None else self.block.tie_end[source]
        high = spines.high[rows] if gap.target is None else self.block.tie_start[target]
        spine = {name: self._bound(name, spines, rows) for name in self._used(gap)}
        first, number = distinct([source + 1, target + 1, low, high, *(events + 1 for events in spine.values())])
        bound = {name: events[first] for name, events in spine.items()}
        return Asked(source[first], target[first], low[first], high[first], bound), number

    def _used(self, gap: Gap) -> list[str]:
        settled = self.fillings[_number(gap.source), _number(gap.target)].settled
        return sorted({name for one in settled for name in one.others})

    def _bound(self, variable: str, spines: Spines, rows: Array) -> Array:
        """The event that each spine binds to a variable."""
        mine = np.array([place.variable == variable for place in self.pattern_spec.places], np.bool_)
        found = np.full(len(rows), NOBODY, np.int64)
        for place in range(spines.events.shape[1]):
            here = mine[spines.positions[rows, place]]
            found[here] = spines.events[rows[here], place]
        return found


def _number(position: int | None) -> int:
    return NOBODY if position is None else position


def _product(ways: list[Array], which: Array) -> Array:
    """Per row the product of the ways through its gaps; a gap that was not filled has one."""
    pool = np.concatenate([*ways, np.ones(1, np.int64)])  # NOBODY finds the last
    product = np.ones(len(which), np.int64)
    for place in range(which.shape[1]):
        factor = pool[which[:, place]]
        if int(product.max(initial=0)) * int(factor.max(initial=0)) >= 2**63:
            product = product.astype(object)
        product = product * factor
    return product


def _pooled(lists: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Lists of entries one after another."""
    sizes = [np.diff(offsets) for offsets, _, _ in lists]
    offsets = np.r_[0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))].astype(np.int64)
    events = np.concatenate([np.zeros(0, np.int64), *(events for _, events, _ in lists)])
    return offsets, events, np.concatenate([np.zeros(0, np.int32), *(positions for _, _, positions in lists)])


@njit(nogil=True)
def _assembled(
    offsets: Array, events: Array, positions: Array, which: Array, spine: Array, bound: Array
) -> tuple[Array, Array, Array]:
    """Rows: what lies in the first gap, the first event of the spine, what lies in the next gap, and so on."""
    rows, places = which.shape
    begin = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        size = places - 1
        for place in range(places):
            gap = which[row, place]
            size += offsets[gap + 1] - offsets[gap] if gap != NOBODY else 0
        begin[row + 1] = begin[row] + size
    found, at_position = np.empty(begin[rows], np.int64), np.empty(begin[rows], np.int32)
    at = 0
    for row in range(rows):
        for place in range(places):
            gap = which[row, place]
            if gap != NOBODY:
                for entry in range(offsets[gap], offsets[gap + 1]):
                    found[at], at_position[at] = events[entry], positions[entry]
                    at += 1
            if place < places - 1:
                found[at], at_position[at] = spine[row, place], bound[row, place]
                at += 1
    return begin, found, at_position
