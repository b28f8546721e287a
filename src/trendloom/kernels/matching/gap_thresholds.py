"""A NOT that depends on one event next to it, as two columns that are compared: it is no longer tested gap by gap.

Between consecutive events e and f lies no match of the NOT iff

- the neighbour is f:  `tie_end[e] > latest[f]`, the latest start of the matches that pass with f and ended before it;
- the neighbour is e:  `earliest[e] >= tie_start[f]`, the first end of the matches that pass with e and start after it.

Equalities divide the matches by value (an anti-join by value and time): in each part, matches in order of their ends
with the latest start so far answer both by bisection. A NOT of one event may be compared in one more way:

- `<` and its kin: a stack on which values fall towards the nearest event, searched by bisection; an event that is
  further away and whose value passes with no more neighbours can never be the answer and is dropped;
- `!=`: the nearest event, and the nearest of another value.

Looking forwards is looking backwards through mirrored indices. Keys need no care beside values: what lies in another
key is before every e or after every f. A NULL passes with nothing.
Cost: O(events · log events), whatever the number of pairs e, f.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Comparison
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import sides_of
from trendloom.kernels.columns.keys import encode_keys
from trendloom.kernels.contract.pattern_spec import Compared, EmptyGap, NegationGuard
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.partial_matches import whole_keys
from trendloom.model.schema import Kind
from trendloom.pattern.template import Template

if TYPE_CHECKING:
    from trendloom.kernels.matching.gaps import Gaps


def latest_starts(gaps: Gaps, scope: int) -> Array:
    """For every index i the greatest index at which a match of a NOT starts that has ended before event i.

    One column decides every gap for a NOT that depends on nothing outside: a gap with events in [low, high) is violated
    iff latest[high] >= low. Keys need no care: starts in earlier keys lie before every `low`.

    A single event: one pass. A pattern without rules or NOTs of its own: for every state only the latest start of the
    partial matches that reach it matters, O(events · steps). Otherwise the matches are enumerated.
    """
    block, automaton = gaps.block, gaps.automaton
    mine = gaps.spec.scopes[scope]
    steps = [*automaton.starts[scope], *(step for steps in automaton.moves[scope] for step in steps)]
    if not mine.rules and not any(step.may_tie or any(step.ways) for step in steps):
        ended = propagate(mine.template, block, block.key)
    else:
        ended = np.full(len(block) + 1, -1, np.int64)
        for matches in gaps.matches(*whole_keys(automaton, block, scope)):
            np.maximum.at(ended, matches.events[:, -1] + 1, matches.events[:, 0])
    return np.maximum.accumulate(ended)


def propagate(template: Template, block: Block, part_of: Array) -> Array:
    """For a pattern without rules and NOTs, at i + 1 the latest start of a match that ends with event i; −1: none.

    Matches lie in one part, `part_of[event]`, which has events of one key; −1: the event is in no match.
    """
    ended = np.full(len(block) + 1, -1, np.int64)
    accepts = np.array([bool(ways) for ways in template.accepts])
    _propagate(ended, *_tables(template, block, part_of), block.tie_end, accepts)
    return ended


def _tables(template: Template, block: Block, part_of: Array) -> tuple[Array, Array, Array, Array]:
    """Events that fit some position, and for each the steps that bind it: (source state or −1, target state)."""
    pairs = [(state, edge) for state, edges in ((-1, template.starts), *enumerate(template.edges)) for edge in edges]
    steps = list(dict.fromkeys((state, edge.position, edge.target) for state, edge in pairs))
    events = np.concatenate([block.members[position] for _, position, _ in steps])
    source = np.concatenate([np.full(len(block.members[position]), state) for state, position, _ in steps])
    target = np.concatenate([np.full(len(block.members[position]), target) for _, position, target in steps])
    order = np.argsort(events, kind="stable")
    part = part_of[events[order]] if len(events) else events
    if (np.diff(part, prepend=0) < 0).any():  # keys are in order as they are
        by_part = np.argsort(part, kind="stable")
        by_part = by_part[part[by_part] >= 0]
        order, part = order[by_part], part[by_part]
    return events[order], source[order], target[order], part


@njit(nogil=True)
def _propagate(
    ended: Array, events: Array, source: Array, target: Array, part: Array, tie_end: Array, accepts: Array
) -> None:
    """Latest starts per state, events of equal time updated together. O(events · steps)."""
    states = len(accepts)
    best = np.full(states, -1, np.int64)
    fresh = np.full(states, -1, np.int64)
    at = 0
    while at < len(events):
        if at == 0 or part[at] != part[at - 1]:
            best[:] = -1
        fresh[:] = -1
        mine, end = part[at], tie_end[events[at]]
        while at < len(events) and part[at] == mine and events[at] < end:
            start = events[at] if source[at] < 0 else best[source[at]]
            if start > fresh[target[at]]:
                fresh[target[at]] = start
            if accepts[target[at]] and start > ended[events[at] + 1]:
                ended[events[at] + 1] = start
            at += 1
        for state in range(states):
            best[state] = max(best[state], fresh[state])


def borders(negation_guard: NegationGuard, block: Block) -> tuple[Array, Array]:
    """The columns of e and of f; the gap between two events has no match of the NOT iff the first is greater.

    They may be equal where the neighbour is e. Only events at positions of the neighbour have their own value.
    """
    beside = _Beside(negation_guard, block)
    compared = [link for link in negation_guard.links if link.operator != "="]
    found = beside.nearest(compared[0]) if compared else beside.among_equals()
    if negation_guard.follows:
        latest = np.full(len(block), -1, np.int64)
        latest[beside.neighbours] = found
        return block.tie_end, latest
    earliest = np.full(len(block), len(block), np.int64)
    earliest[beside.neighbours] = found
    return earliest, block.tie_start


class LatestMatches(NamedTuple):
    """Matches of a NOT that no other replaces, in order of `part`, then of `end`; `start` never falls in a part."""

    part: Array
    start: Array
    end: Array


class _Beside:
    """The events of a NOT, its neighbours, and the parts into which equalities divide both."""

    def __init__(self, negation_guard: NegationGuard, block: Block) -> None:
        self.negation_guard, self.block = negation_guard, block
        self.follows, self.size = negation_guard.follows, len(block)
        self.events = _members(block, tuple(negation_guard.template.position_of))
        self.neighbours = _members(block, negation_guard.positions)
        sides = [sides_of(link.left, link.right, block) for link in negation_guard.links]
        for inner, outer in sides:
            self.events = self.events[_known(inner, self.events)]
            self.neighbours = self.neighbours[_known(outer, self.neighbours)]
        self.sides = dict(zip(negation_guard.links, sides, strict=True))
        together = np.concatenate([self.events, self.neighbours])
        parts = block.key[together].astype(np.int64)
        equal = [self.sides[link] for link in negation_guard.links if link.operator == "="]
        if equal and len(together):
            values = [np.concatenate([a.values[self.events], b.values[self.neighbours]]) for a, b in equal]
            parts = encode_keys([Vector(Kind.INT, one) for one in (parts, *values)]).codes
        self.part, self.neighbour_part = parts[: len(self.events)], parts[len(self.events) :]

    def among_equals(self) -> Array:
        """Per neighbour the latest start of a match that has ended before it, or the first end of one after it."""
        block, size = self.block, self.size
        matches, width = self._matches(), size + 1
        starts = matches.part * width + matches.start
        ends = matches.part * width + matches.end
        if self.follows:
            at = np.searchsorted(ends, self.neighbour_part * width + block.tie_start[self.neighbours]) - 1
            return self._where_same(matches.part, at, matches.start, -1)
        at = np.searchsorted(starts, self.neighbour_part * width + block.tie_end[self.neighbours])
        return self._where_same(matches.part, at, matches.end, size)

    def _where_same(self, part: Array, at: Array, values: Array, otherwise: int) -> Array:
        found = np.full(len(at), otherwise, np.int64)
        inside = np.flatnonzero((at >= 0) & (at < len(part)))
        inside = inside[part[at[inside]] == self.neighbour_part[inside]]
        found[inside] = values[at[inside]]
        return found

    def _matches(self) -> LatestMatches:
        order = np.lexsort((self.events, self.part))
        part, end = self.part[order], self.events[order]
        if len(self.negation_guard.template.position_of) == 1:
            return LatestMatches(part, end, end)
        part_of = np.full(self.size, -1, np.int64)
        part_of[self.events] = self.part
        ended = propagate(self.negation_guard.template, self.block, part_of)[1:]
        kept = ended[end] >= 0
        part, end = part[kept], end[kept]
        latest = np.maximum.accumulate(part * (self.size + 1) + ended[end]) if len(end) else end
        return LatestMatches(part, latest - part * (self.size + 1), end)

    def nearest(self, link: Comparison) -> Array:
        """The same for matches of one event that are also compared by an order or `!=`."""
        inner, outer = self.sides[link]
        value, bar = (side.values.astype(np.int64, copy=False) for side in (inner, outer))
        value, bar = value[self.events], bar[self.neighbours]
        if link.operator in ("<", "<="):  # x → ~x turns the order around: what passes is always what lies above
            value, bar = ~value, ~bar
        if self.follows:
            index, bound = self.events, self.block.tie_start[self.neighbours]
        else:
            index, bound = self.size - 1 - self.events, self.size - self.block.tie_end[self.neighbours]
        order, by_part = np.lexsort((index, self.part)), np.lexsort((bound, self.neighbour_part))
        found = np.empty(len(by_part), np.int64)
        found[by_part] = _nearest_below(
            self.part[order], index[order], value[order], self.neighbour_part[by_part], bound[by_part], bar[by_part],
            link.operator == "!=", link.operator in ("<=", ">="),
        )  # fmt: skip
        return found if self.follows else self.size - 1 - found


def _members(block: Block, positions: tuple[int, ...]) -> Array:
    """The events that fit one of the positions, in order."""
    found = [block.members[position].astype(np.int64) for position in set(positions)]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def _known(side: Vector, events: Array) -> Array:
    return np.ones(len(events), np.bool_) if side.valid is None else side.valid[events]


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _nearest_below(
    part: Array, index: Array, value: Array, own_part: Array, bound: Array, bar: Array, other: bool, or_equal: bool
) -> Array:
    """Per row the greatest index below its bound, in its part, whose value is above its bar; −1: none.

    Both sides are in order of part, then of index or bound. `other`: the value has to differ instead.
    """
    found = np.full(len(bar), -1, np.int64)
    stack = np.empty(len(index), np.int64)
    at, height = 0, 0
    for row in range(len(bar)):
        if row == 0 or own_part[row] != own_part[row - 1]:
            height = 0
            while at < len(index) and part[at] < own_part[row]:
                at += 1
        while at < len(index) and part[at] == own_part[row] and index[at] < bound[row]:
            if other:
                if height == 0 or value[stack[height - 1]] == value[at]:
                    height = max(height, 1)
                else:
                    stack[0], height = stack[height - 1], 2
            else:
                while height > 0 and value[stack[height - 1]] <= value[at]:
                    height -= 1
                height += 1
            stack[height - 1] = at
            at += 1
        if other:
            low = height - 1
            if low >= 0 and value[stack[low]] == bar[row]:
                low -= 1
        else:
            low, high = -1, height  # values pass up to `low`, from `high` on they do not
            while high - low > 1:
                middle = (low + high) // 2
                if value[stack[middle]] > bar[row] or (or_equal and value[stack[middle]] == bar[row]):
                    low = middle
                else:
                    high = middle
        if low >= 0:
            found[row] = index[stack[low]]
    return found


def comparable(pairs: tuple[Compared, ...], block: Block) -> tuple[Array, Array, Array]:
    """Left and right columns of every pair, and where each is known: [pair, event] and [side, pair, event].

    They are int64 columns whose order and equality are those of the values (see `sides_of`); a NOT that depends on one
    event next to it is two columns, too.
    """
    size = (len(pairs), len(block))
    left, right = np.zeros(size, np.int64), np.zeros(size, np.int64)
    known = np.ones((2, *size), np.bool_)
    for number, pair in enumerate(pairs):
        if isinstance(pair, EmptyGap):
            left[number], right[number] = borders(pair.negation_guard, block)
            continue
        sides = sides_of(pair.left, pair.right, block)
        left[number], right[number] = sides[0].values, sides[1].values
        for side, vector in enumerate(sides):
            if vector.valid is not None:
                known[side, number] = vector.valid
    return left, right, known
