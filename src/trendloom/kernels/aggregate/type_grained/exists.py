"""Positions that EXISTS hides, as plain tests of existence: how remainders are counted without finding a match.

Of several events that could take a hidden place in a match one is enough, and the latest is as good as any: whatever
could stand before an earlier one stands before it too, and no NOT after it sees more. So the number of remainders that
wait at a hidden position is *set* at each event that fits there, to that of all that could stand before it, instead of
added to. That is still a matrix. Events of one instant set it once (`one_per_instant`).

It is right under skip-till-any-match where a remainder can come about in one way only, and no NOT lies right before a
hidden position: then an earlier event may be better. A hidden event that can repeat is bound once, and one that can be
missing, with no NOT beside it, need not be there at all (`Existence.needless`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.matching.automaton import Automaton, Step

Node = int | None  # a state of the template; None: the start, or the end
FREE = (frozenset[Any](),)
"""The ways of a step that crosses no NOT."""


@dataclass(frozen=True, eq=False)
class Existence:
    """The hidden states of a pattern, and what can be said of the ways through them."""

    automaton: Automaton

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The states at hidden positions."""
        positions = self.automaton.spec.scopes[0].template.position_of
        return frozenset(state for state, position in enumerate(positions) if position in self.automaton.spec.hidden)

    @cached_property
    def needless(self) -> frozenset[int]:
        """Hidden states past which a step without NOTs leads from everything before them to everything after."""
        found: set[int] = set()
        for state in sorted(self.hidden):
            others = [one for one in (None, *range(len(self.automaton.moves[0]))) if one != state and one not in found]
            before = [one for one in others if self._leads(one, state)]
            after = [one for one in others if one is not None and self._leads(state, one)]
            ends: list[Node] = [None] if self._ends(state) else []
            if all(self._free(source, target) for source in before for target in [*after, *ends]):
                found.add(state)
        return frozenset(found)

    def takes(self, source: Node, step: Step) -> bool:
        """Whether a step has to be taken to count remainders."""
        return step.target not in self.needless and not (step.target == source and step.target in self.hidden)

    @cached_property
    def obstacle(self) -> str | None:
        """Why remainders cannot be counted in this way; None: they can."""
        spec = self.automaton.spec
        if not self.hidden:
            return None
        if spec.earliest or spec.adjacent:
            return "EXISTS hides events of runs, and different runs can have equal remainders"
        if any(spec.places[position].branch for position in spec.hidden):
            return "EXISTS hides a part of an AND"
        needed = self.hidden - self.needless
        for source in (None, *range(len(self.automaton.moves[0]))):
            steps = [step for step in self._steps(source) if self.takes(source, step)]
            if any(step.target in needed and step.ways != FREE for step in steps):
                return "a NOT stands right before an event that EXISTS hides"
            if source not in self.hidden and (obstacle := self._through(source)) is not None:
                return obstacle
        return None

    def _through(self, source: Node) -> str | None:
        """What is wrong with the ways from a state that is not hidden over hidden ones to those that are not."""
        reached: list[Node] = []
        todo: list[tuple[Node, frozenset[int]]] = [(source, frozenset())]
        while todo:
            state, passed = todo.pop()
            if state is not None and self._ends(state):
                reached.append(None)
            for step in self._steps(state):
                if not self.takes(state, step):
                    continue
                if step.target in passed:
                    return "EXISTS hides the whole of a repeated part"
                if step.target in self.hidden:
                    todo.append((step.target, passed | {step.target}))
                else:
                    reached.append(step.target)
        if source is None and None in reached:
            return "EXISTS may hide all events of a match"
        if len(set(reached)) < len(reached):
            return "a remainder of EXISTS can come about in several ways"
        return None

    def _steps(self, source: Node) -> list[Step]:
        return self.automaton.starts[0] if source is None else self.automaton.moves[0][source]

    def _leads(self, source: Node, target: int) -> bool:
        return any(step.target == target for step in self._steps(source))

    def _ends(self, state: int) -> bool:
        return bool(self.automaton.spec.scopes[0].template.accepts[state])

    def _free(self, source: Node, target: Node) -> bool:
        """Whether a step leads there that crosses no NOT; nothing is at its end before it has begun."""
        if target is None:
            return source is not None and frozenset() in self.automaton.spec.scopes[0].template.accepts[source]
        return any(step.target == target and step.ways == FREE for step in self._steps(source))


def one_per_instant(block: Block, hidden: frozenset[int]) -> Block:
    """The block where of the events of an instant that fit a hidden position only one does. O(events)."""
    again = {position: _repeats(block, block.members[position]) for position in sorted(hidden)}
    again = {position: repeated for position, repeated in again.items() if repeated.any()}
    if not again:
        return block
    fits, bits, free = list(block.fits), list(block.bits), max(block.bits) + 1
    for position, repeated in again.items():
        if free % WORD == 0:
            fits.append(np.zeros(len(block), np.uint8))
        fits[-1] = _with_bit(fits[-1], free % WORD, block.members[position][~repeated])
        bits[position] = free
        free += 1
    return replace(block, fits=tuple(fits), bits=tuple(bits))


def _repeats(block: Block, events: Array) -> Array:
    """Which of these events have another of their instant before them."""
    instant = block.tie_start[events]
    return np.r_[False, instant[1:] == instant[:-1]] if len(events) else np.zeros(0, np.bool_)


def _with_bit(words: Array, bit: int, events: Array) -> Array:
    """A copy with one more bit, set for some events, in words wide enough."""
    wide = next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bit < 8 * np.dtype(kind).itemsize)
    found = words.astype(np.promote_types(words.dtype, wide))
    found[events] |= found.dtype.type(1 << bit)
    return found
