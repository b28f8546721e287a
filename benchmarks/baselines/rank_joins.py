"""Round robin, as NRA reads the components of a rank join, and components whose entries are all there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trendloom.kernels.ranking.join_entries import Entries
from trendloom.kernels.ranking.rank_join import Frontier

Array = np.ndarray[Any, Any]


def round_robin(frontier: Frontier) -> Sequence[int]:
    """Every component as far as every other one."""
    return [frontier.batch] * len(frontier.depths)


class ArrayComponent:
    """A component whose matches are all there."""

    def __init__(self, scores: Array, events: Array, *, cost: float = 1.0) -> None:
        order = np.argsort(scores, kind="stable")
        self._entries = Entries(scores[order], events[order].astype(np.int64, copy=False))
        self._given, self.positions, self.cost = 0, events.shape[1], cost

    @property
    def exhausted(self) -> bool:
        return self._given >= len(self._entries.scores)

    def pull(self, count: int) -> Entries:
        some = slice(self._given, self._given + count)
        self._given = min(some.stop, len(self._entries.scores))
        return Entries(self._entries.scores[some], self._entries.events[some])
