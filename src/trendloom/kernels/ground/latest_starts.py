"""The latest start of the matches of a NOT: one column that decides every gap.

`latest[i]` is the greatest index at which a match starts that has ended before event i. A gap with events in
[low, high) is violated iff latest[high] >= low. Keys need no care: starts in earlier keys lie before every `low`.

A single event: one pass. A pattern without rules or NOTs of its own: for every state only the latest start of the
partial matches that reach it matters, O(events · steps). Otherwise the matches are enumerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trendloom.kernels.compiled import njit
from trendloom.kernels.ground.paths import without_context

if TYPE_CHECKING:
    from trendloom.kernels.ground.gaps import Gaps

Array = np.ndarray[Any, Any]


def latest_starts(gaps: Gaps, scope: int) -> Array:
    """The column for one NOT that depends on nothing outside."""
    block, machine = gaps.block, gaps.machine
    mine = gaps.spec.scopes[scope]
    steps = [*machine.starts[scope], *(step for steps in machine.moves[scope] for step in steps)]
    ended = np.full(len(block) + 1, -1, np.int64)
    if not mine.rules and not any(step.may_tie or any(step.ways) for step in steps):
        _propagate(ended, *_tables(gaps, scope), block.tie_end, np.array([bool(w) for w in mine.template.accepts]))
    else:
        roots = without_context(machine, block, scope, block.keys)
        for matches in gaps.make(gaps, scope).matches(roots, block.key_starts[:-1], block.key_starts[1:], None):
            np.maximum.at(ended, matches.events[:, -1] + 1, matches.events[:, 0])
    return np.maximum.accumulate(ended)


def _tables(gaps: Gaps, scope: int) -> tuple[Array, Array, Array, Array]:
    """Events that fit some position, and for each the steps that bind it: (source state or −1, target state)."""
    machine, block = gaps.machine, gaps.block
    pairs = [(-1, step) for step in machine.starts[scope]]
    pairs += [(state, step) for state, steps in enumerate(machine.moves[scope]) for step in steps]
    events = np.concatenate([block.members[step.position] for _, step in pairs])
    source = np.concatenate([np.full(len(block.members[step.position]), state) for state, step in pairs])
    target = np.concatenate([np.full(len(block.members[step.position]), step.target) for _, step in pairs])
    order = np.argsort(events, kind="stable")
    key = block.key[events[order]] if len(events) else events
    return events[order], source[order], target[order], key


@njit(nogil=True)
def _propagate(
    ended: Array, events: Array, source: Array, target: Array, key: Array, tie_end: Array, accepts: Array
) -> None:
    """Latest starts per state, events of equal time updated together. O(events · steps)."""
    states = len(accepts)
    best = np.full(states, -1, np.int64)
    fresh = np.full(states, -1, np.int64)
    at = 0
    while at < len(events):
        if at == 0 or key[at] != key[at - 1]:
            best[:] = -1
        fresh[:] = -1
        end = tie_end[events[at]]
        while at < len(events) and events[at] < end:
            start = events[at] if source[at] < 0 else best[source[at]]
            if start > fresh[target[at]]:
                fresh[target[at]] = start
            if accepts[target[at]] and start > ended[events[at] + 1]:
                ended[events[at] + 1] = start
            at += 1
        for state in range(states):
            best[state] = max(best[state], fresh[state])
