"""In which order to bind the components of a sequence: the one that should build the fewest partial matches.

A set of components is bound by about (events · shares · window^(k-1) / (k-1)! · what conditions let through) partial
matches: as many as there are choices of k events in order within a window. What a condition between two components
lets through is measured on a sample of pairs. An order costs the sum over its steps of what is tried: pairs that pass
equalities, which are looked up. All subsets are weighed where there are few components; beyond that, the cheapest next
one is taken.
Cost: O(2^components · components) for few components, else O(components²); a sample of pairs for each condition.
See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 5, on costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST_WEIGHED = 9
"""Components of which all orders are weighed."""
PAIRS = 512
"""Pairs of events of which conditions are measured."""


@dataclass(frozen=True)
class PairCondition:
    """A rule on two events, one or both of them components: what it lets through, and whether it is looked up.

    `ends`: the components; an event that is none is bound from the start.
    """

    ends: frozenset[int]
    measured: float
    looked_up: bool

    @property
    def passes(self) -> float:
        """Never nothing at all: a sample may miss what passes."""
        return max(self.measured, 0.5 / PAIRS)


@dataclass(frozen=True)
class SequenceFigures:
    """`events` of the block, the `share` of them that fits each component, events of a `window`, the conditions."""

    events: int
    shares: tuple[float, ...]
    window: float
    conditions: tuple[PairCondition, ...]

    def bound(self, components: frozenset[int]) -> float:
        """Partial matches that bind these components."""
        size = len(components)
        choices = self.events * self.window ** (size - 1) / factorial(size - 1)
        shares = prod(self.shares[at] for at in components)
        return choices * shares * prod(one.passes for one in self.conditions if one.ends <= components)

    def tried(self, components: frozenset[int], new: int) -> float:
        """Extensions that are tried to bind one more component."""
        mine = [one for one in self.conditions if new in one.ends and one.ends <= components | {new}]
        found = self.bound(components | {new})
        return found / prod(one.passes for one in mine if not one.looked_up) if found else 0.0


def cheapest_order(figures: SequenceFigures) -> tuple[int, ...]:
    """The components in the order in which to bind them; equal ones from the first to the last."""
    count = len(figures.shares)
    everything = frozenset(range(count))
    if count > MOST_WEIGHED:
        return _greedy(figures, everything)
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for _ in range(count):
        longer: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for components, (cost, order) in best.items():
            for new in sorted(everything - components):
                found = (cost + figures.tried(components, new), (*order, new))
                key = components | {new}
                if key not in longer or found < longer[key]:
                    longer[key] = found
        best = longer
    return best[everything][1]


def _greedy(figures: SequenceFigures, everything: frozenset[int]) -> tuple[int, ...]:
    """The pair that is bound by the fewest partial matches, then whatever keeps them fewest."""
    order: tuple[int, ...] = min(combinations(sorted(everything), 2), key=lambda pair: figures.bound(frozenset(pair)))
    while len(order) < len(everything):
        left = sorted(everything - set(order))
        order = (*order, min(left, key=lambda new: figures.bound(frozenset(order) | {new})))
    return order


def sampled(events: Array) -> Array:
    """Some of the events, the same in every run."""
    if len(events) <= 1:
        return np.repeat(events, PAIRS)
    return events[np.random.default_rng(len(events)).integers(0, len(events), PAIRS)]
