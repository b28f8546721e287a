"""When what a stream's plan was made with no longer holds: the types of its events come at other rates.

The figures of a stream add up over its life, so they change ever more slowly. What counts is the stretch since the last
comparison: the share of each type among all, beside the share that the plan was made with. Answers do not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trendloom.streaming.statistics import Figures

FACTOR = 2.0
"""How many times as large or small a share must have become."""
LEAST_SHARE = 0.05
"""Types that are rarer than this, before and after, do not count."""
LEAST_EVENTS = 10_000
LEAST_BATCHES = 20
"""How long a stretch is, in events and batches, before it is compared: a stream is renewed at most once in it."""


@dataclass
class DriftWatch:
    """Compares a stream with what its plan knew. `known`: the figures of the plan; `counted`: totals so far."""

    known: Figures
    counted: Figures

    def drifted_to(self, newest: Figures) -> Figures | None:
        """The figures of the last stretch, if it is long enough and unlike what is known; a new stretch then begins."""
        stretch = stretch_of(self.counted, newest)
        if newest.batch - self.counted.batch < LEAST_BATCHES or stretch.events < LEAST_EVENTS:
            return None
        self.counted = newest
        if not has_drifted(self.known, stretch):
            return None
        self.known = stretch
        return stretch


def has_drifted(known: Figures, recent: Figures) -> bool:
    """Whether any type that matters is much more, or much less, of the events than it was."""
    if not known.events:
        return bool(recent.events)
    common = known.types.keys() & recent.types.keys()
    before, after = _shares(known.types, common), _shares(recent.types, common)
    return any(_differ(before[name], after[name]) for name in before.keys() & after.keys())


def stretch_of(earlier: Figures, newest: Figures) -> Figures:
    """What was counted after `earlier`. Of keys and values the most in any batch is known, and stays."""
    return Figures(
        newest.batch,
        newest.events - earlier.events,
        newest.first if earlier.last is None else earlier.last,
        newest.last,
        _less(newest.types, earlier.types),
        newest.keys,
        _less(newest.fitting, earlier.fitting),
        newest.domains,
    )


def _shares(types: Mapping[str, int], names: set[str]) -> dict[str, float]:
    whole = sum(types[name] for name in names)
    return {name: types[name] / whole for name in names} if whole else {}


def _differ(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return high >= LEAST_SHARE and high >= FACTOR * low


def _less(newest: Mapping[Any, int], earlier: Mapping[Any, int]) -> dict[Any, int]:
    return {one: count - earlier.get(one, 0) for one, count in newest.items()}
