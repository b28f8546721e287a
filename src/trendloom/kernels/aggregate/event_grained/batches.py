"""Batches: spans of one key that overlap are swept together, one lane each, so that what they share is done once.

A batch is a run of spans that all overlap its first one. So the union of their events is less than twice the longest
span, and at least half of the work in every lane counts. Spans that overlap none are batches of one lane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Spans
from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.automaton import Automaton

# Items: every event once for each state it can stand in, in order of time.
#
# Kernels that keep a value per event and state walk over items instead of testing every event against every state:
# events that fit no position of the pattern (those of a NOT) are not met at all. O(items) to build, by merging lists
# in order.


class Items(NamedTuple):
    """`event`, `state` and `ordinal` (among the items of its state) of every item; by event, then state.

    The items of state s are `of_state[begin[s]:begin[s + 1]]`. `tie_start`, `tie_end`: by event.
    """

    event: Array
    state: Array
    ordinal: Array
    of_state: Array
    begin: Array
    tie_start: Array
    tie_end: Array

    def of(self, state: int) -> Array:
        """The events of the items of a state, in order."""
        return self.event[self.of_state[self.begin[state] : self.begin[state + 1]]]


def items_of(automaton: Automaton, block: Block) -> Items:
    """All items of the pattern's positive part."""
    fitting = [block.members[p] for p in automaton.spec.scopes[0].template.position_of]
    sizes = np.array([len(events) for events in fitting], np.int64)
    begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    event = np.concatenate(fitting).astype(np.int64)
    state = np.repeat(np.arange(len(fitting)), sizes)
    ordinal = np.arange(len(event)) - np.repeat(begin[:-1], sizes)
    if len(fitting) == 1:
        return Items(event, state, ordinal, np.arange(len(event)), begin, block.tie_start, block.tie_end)
    order = np.argsort(event, kind="stable")
    of_state = np.empty(len(event), np.int64)
    of_state[order] = np.arange(len(event))
    return Items(event[order], state[order], ordinal[order], of_state, begin, block.tie_start, block.tie_end)


class Batches(NamedTuple):
    """Batches with `lanes` spans each: the first span, and the items `low` to `high` of all its spans."""

    span: Array
    low: Array
    high: Array
    first_event: Array
    last_event: Array
    lanes: int


def batches_of(spans: Spans, items: Items, most_lanes: int) -> list[Batches]:
    """All spans in batches, those with equally many lanes together."""
    first = _firsts(spans.key, spans.low, spans.high, most_lanes)
    width = np.diff(np.append(first, len(spans)))
    found = []
    for lanes in np.unique(width).tolist():
        some = first[width == lanes]
        low, high = spans.low[some], spans.high[some + lanes - 1]
        found.append(
            Batches(some, np.searchsorted(items.event, low), np.searchsorted(items.event, high), low, high, lanes)
        )
    return found


@njit(nogil=True)
def _firsts(key: Any, low: Any, high: Any, most_lanes: Any) -> Any:
    """The first span of every batch."""
    found = np.empty(len(key), np.int64)
    count, first = 0, -1
    for span in range(len(key)):
        fresh = first < 0 or key[span] != key[first] or span - first >= most_lanes or low[span] >= high[first]
        if fresh:
            found[count] = first = span
            count += 1
    return found[:count].copy()
