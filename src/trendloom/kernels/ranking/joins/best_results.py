"""The best combinations so far, as many as are asked for, and all that are as good as the last of them.

Results that are worse than the last one kept are dropped; `horizon` is the worst score up to which nothing was.

Cost: O(results found) in batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.expr.arrays import Array


class BestResults:
    """Scores and entries (by component) of the `size` best, and of those that equal the last, up to `most` in all."""

    def __init__(self, size: int, most: int, components: int, type_: Any) -> None:
        self.size, self.most = size, max(size + 1, most)
        self.scores = np.zeros(0, type_)
        self.rows = np.zeros((0, components), np.int64)
        self.horizon: Any = None
        """The worst score that is kept; None if any is."""
        self._known, self._score = 0, None
        self.cut = False
        """Whether results as good as the horizon were dropped, for there were too many."""

    def __len__(self) -> int:
        return len(self.scores)

    def score(self, rank: int) -> Any:
        """The score of rank 1, 2, ..."""
        if self._known != rank:
            self._known, self._score = rank, np.partition(self.scores, rank - 1).item(rank - 1)
        return self._score

    def as_good_as(self, score: Any) -> int:
        """How many results there are with this score or a better one."""
        return int(np.count_nonzero(self.scores <= score))

    def add(self, scores: Array, rows: Array) -> None:
        """Keep what is good enough of these."""
        if self.horizon is not None:
            good = scores <= self.horizon
            scores, rows = scores[good], rows[good]
        if len(scores):
            self.scores, self.rows = np.concatenate([self.scores, scores]), np.concatenate([self.rows, rows])
            self._known = 0
            self._drop_the_rest()

    def keep(self, kept: Array) -> None:
        """Keep these results alone."""
        self.scores, self.rows = self.scores[kept], self.rows[kept]
        self._known = 0

    def in_order(self, count: int) -> Array:
        """The numbers of the best results, best first."""
        return np.argsort(self.scores, kind="stable")[:count]

    def _drop_the_rest(self) -> None:
        if len(self.scores) <= self.size:
            return
        limit = self.score(self.size)
        if self.horizon is None or limit < self.horizon:
            self.horizon, self.cut = limit, False
        kept = np.flatnonzero(self.scores <= limit)
        if len(kept) > self.most:
            better, equal = kept[self.scores[kept] < limit], kept[self.scores[kept] == limit]
            kept = np.concatenate([better, equal[: self.most - len(better)]])
            self.cut = True
        self.scores, self.rows = self.scores[kept], self.rows[kept]
