"""The latest start of the matches of a NOT: one column that decides every gap.

`latest[i]` is the greatest index at which a match starts that has ended before event i. A gap with events in
[low, high) is violated iff latest[high] >= low. Keys need no care: starts in earlier keys lie before every `low`.

A single event: one pass. A pattern without rules or NOTs of its own: for every state only the latest start of the
partial matches that reach it matters, O(events · steps). Otherwise the matches are enumerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.partial_matches import without_context
from trendloom.pattern.template import Template

if TYPE_CHECKING:
    from trendloom.kernels.matching.gaps import Gaps

Array = np.ndarray[Any, Any]


def latest_starts(gaps: Gaps, scope: int) -> Array:
    """The column for one NOT that depends on nothing outside."""
    block, machine = gaps.block, gaps.machine
    mine = gaps.spec.scopes[scope]
    steps = [*machine.starts[scope], *(step for steps in machine.moves[scope] for step in steps)]
    if not mine.rules and not any(step.may_tie or any(step.ways) for step in steps):
        ended = propagate(mine.template, block, block.key)
    else:
        ended = np.full(len(block) + 1, -1, np.int64)
        roots = without_context(machine, block, scope, block.keys)
        for matches in gaps.matches(roots, block.key_starts[:-1], block.key_starts[1:]):
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
