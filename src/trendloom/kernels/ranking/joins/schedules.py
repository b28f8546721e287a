"""Which component of a rank join is read next, and how far.

A join has to reach a boundary (`boundaries`) behind which nothing is good enough; schedules differ in which one they
reach, and at what cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from trendloom.kernels.ranking.joins.boundaries import Frontier

Array = np.ndarray[Any, Any]


class JoinProgress:
    """What a schedule may know: how far each component was read, what it gave, and what accesses cost."""

    def __init__(self, frontier: Frontier, components: int) -> None:
        self.frontier = frontier
        self.depths = [0] * components
        self.lookups = [0] * components
        self.spent = 0.0
        self.batch = 1
        self.costs = [1.0] * components
        self.target: Any = None
        """The score of the k-th result so far; None if there are fewer."""
        self._scores: list[list[Array]] = [[] for _ in range(components)]
        self._new = [0] * components

    def note_pulled(self, component: int, scores: Array, cost: float) -> None:
        self.depths[component] += len(scores)
        self.spent += cost * len(scores)
        self._scores[component].append(scores)

    def note_new(self, component: int, keys: int) -> None:
        self._new[component] += keys

    def note_lookups(self, component: int, keys: int, cost: float) -> None:
        self.lookups[component] += keys
        self.spent += cost * keys

    def new_share(self, component: int) -> float:
        """Which share of the entries of a component had keys that were not known."""
        return (self._new[component] + 1) / (self.depths[component] + 1)

    def scores(self, component: int) -> Array:
        """All scores that a component has given, in order."""
        pieces = self._scores[component]
        if len(pieces) > 1:
            pieces[:] = [np.concatenate(pieces)]
        return pieces[0] if pieces else np.zeros(0)


class Schedule(Protocol):
    """How accesses are distributed."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        """How many entries to pull of each component before it is asked again: at least one of one that has more."""


class RoundRobin:
    """Every component as far as every other one: what TA and NRA do."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        return [progress.batch] * len(progress.depths)
