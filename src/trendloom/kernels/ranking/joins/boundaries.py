"""When a rank join may stop: how good a result can be that was not seen yet.

Components give their entries best first, so what a component has not given is at most as good as its last entry. For
two lists A and B, smaller is better, and the sum:

    A:  1  2  4 | ...    last 4, best 1        with random access:    4 + 3          = 7
    B:  1  1  3 | ...    last 3, best 1        with sorted access:    min(4+1, 1+3)  = 4

- The *threshold* (TA: R. Fagin, "Combining fuzzy information: an overview") is the merged score of all last entries. It
  bounds what is unseen if every entry is completed when it is seen: its key is looked up in all other components. Then
  an unseen result has an unseen entry in every component.
- Without random access (NRA in the same article) an unseen result may combine an unseen entry of one component with the
  best entries of all others, which may have been seen: where many entries join with many, the last entries together
  bound nothing. The *corner bound* is the best over components of: its last entry, the best ones of the others.

A join has its k best results when the k-th is at least as good as the bound; strictly better if all results of that
score are wanted, because an unseen one may be exactly as good as the bound.

A threshold can be reached in several ways: deep in A, or deep in B, or half-way in both. Each such set of depths is
a *boundary*, and boundaries differ in cost; corner bounds are all reached in the same way. See `schedules`.
"""

from __future__ import annotations

from typing import Any

from trendloom.expr.arrays import Array
from trendloom.kernels.ranking.joins.merging import merged_score


class Frontier:
    """How far each component was read: its best and its last score, and whether there is more of it."""

    def __init__(self, components: int, merge: int, *, completed: bool) -> None:
        """`completed`: every entry is completed by random access when it is seen."""
        self.merge, self.completed = merge, completed
        self.restart([None] * components)

    def restart(self, tops: list[Any]) -> None:
        """Nothing was read yet; `tops` are the best scores of what is known of before."""
        self.tops: list[Any] = tops
        self.lasts: list[Any] = [None] * len(tops)
        self.exhausted = [False] * len(tops)
        self.empty = [False] * len(tops)

    def read(self, component: int, scores: Array, *, exhausted: bool) -> None:
        """Take note of the next entries of a component."""
        if len(scores):
            top = self.tops[component]
            best = scores.item(0)
            self.tops[component] = best if top is None else min(top, best)
            self.lasts[component] = scores.item(-1)
        self.exhausted[component] = exhausted
        self.empty[component] = exhausted and self.tops[component] is None

    @property
    def ended(self) -> bool:
        """Whether everything was seen that can be part of a result."""
        if any(self.empty):
            return True
        return any(self.exhausted) if self.completed else all(self.exhausted)

    def bound(self) -> Any:
        """The best score that an unseen result can have; None before all components were read."""
        if any(last is None and not self.exhausted[number] for number, last in enumerate(self.lasts)):
            return None
        if self.completed:
            return merged_score(self.merge, self.lasts)
        return min(self.corner(number, self.lasts[number]) for number, done in enumerate(self.exhausted) if not done)

    def corner(self, component: int, last: Any) -> Any:
        """The best that can be made with an entry of this score and the best entries of all other components."""
        return merged_score(self.merge, [last if number == component else top for number, top in enumerate(self.tops)])
