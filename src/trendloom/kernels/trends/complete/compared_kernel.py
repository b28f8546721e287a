"""Complete trends of any pattern: all matches are found, then those go that another one contains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from trendloom.kernels.aggregate.count_matches import Count
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Expected
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.trends.complete.by_comparison import only_complete, too_many_to_compare

TRIED = "complete trends of this query are found among all its matches: {} would be tried"


@dataclass(frozen=True)
class MaximalKernel(SearchKernel):
    """`search` finds all matches; at most `most` of one window and partition are compared.

    `tries` counts what the search tries, or less; `compares`: all of that is compared.
    """

    search: SearchKernel
    most: int
    tries: Count | None = None
    compares: bool = False

    @property
    def together(self) -> bool:
        return True

    def within(self, memory: int) -> Self:
        return replace(self, search=self.search.within(memory))

    def all(self, block: Block) -> Iterator[Matches]:
        return iter([only_complete(block, self.search.all(block), self.most)])

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """Refused where too many would be compared: what is tried is known, what comes of it is not."""
        if not beforehand or self.tries is None or state.block is None:
            return super().expected(state, beforehand=beforehand)
        found = self.tries.by_window(state.block)
        if found is None:
            return None
        if self.compares and found.max(initial=0) > self.most:
            raise too_many_to_compare(str(Expected(float(found.max()), True)))
        return Expected(float(found.sum()), False, TRIED, stoppable=False)
