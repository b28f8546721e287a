"""How early a match can end that goes on from an event: what lets the search drop a partial match long before its end.

Idea: backwards through the pattern, an event at a state is followed by one that may come after it, and of those the one
with the earliest end counts. Conditions and NOTs are left out, so it is a bound: a partial match whose last event would
come too late for the window, or not at all, is dropped. That is what a selective order of evaluation gains, where a
rare component comes late in the pattern.

Cost: O(events · log events) per move of the pattern. An event that repeats itself in a Kleene part ends no earlier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.uncertain.block import IntervalBlock
from trendloom.kernels.uncertain.position_events import FAR, PositionEvents

Array = np.ndarray[Any, Any]


def least_ends(machine: Machine, block: IntervalBlock, fitting: tuple[PositionEvents, ...]) -> Array:
    """`ends[state, event]`: the least point of the last event of a match that has bound the event in that state."""
    template = machine.spec.scopes[0].template
    ends = np.full((len(template.edges), len(block)), FAR, np.int64)
    for state in range(len(template.edges) - 1, -1, -1):  # without loops over several components, states are in order
        mine = fitting[template.position_of[state]]
        if template.accepts[state]:
            ends[state, mine.events] = mine.low
            continue
        key = block.key[mine.events]
        for target in {edge.target for edge in template.edges[state]} - {state}:
            after = fitting[template.position_of[target]]
            found = after.least_after(ends[target, after.events], key, mine.low)
            ends[state, mine.events] = np.minimum(ends[state, mine.events], found)
    return ends
