"""Complete trends by filtering: of all matches of a window and partition, those that no other match contains.

The baseline of Poppe's "Complete Event Trend" chapter: enumerate, then compare. Containment of all pairs is one product
of 0/1 matrices: |m ∩ n| = |m| means that m lies in n. Cost: O(matches² · events) per window and partition, so at most
`most` of them are compared; once there are more, no further ones are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.block import Count
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Expected
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.match.search import SearchKernel, SearchState


def only_complete(block: Block, found: Iterator[Matches], most: int) -> Matches:
    """The complete trends of every window and partition, if none of these has more than `most` matches."""
    chunks: list[Matches] = []
    count, looked_at = 0, most
    for chunk in found:
        chunks.append(chunk)
        count += len(chunk)
        if count > looked_at:
            chunks = [join(chunks)]
            if int(np.bincount(_groups(block, chunks[0])).max()) > most:
                raise too_many_to_compare(f"more than {most:,}")
            looked_at = 2 * count
    matches = join(chunks)
    return complete_only(matches, _groups(block, matches), most)


def _groups(block: Block, matches: Matches) -> Array:
    """The window and partition of every match, numbered."""
    group = block.key[matches.first]
    if matches.window_start is None:
        return group
    _, window = np.unique(matches.window_start, return_inverse=True)
    numbered = group * (int(window.max(initial=0)) + 1) + window.reshape(-1)
    return np.unique(numbered, return_inverse=True)[1].reshape(-1)


def too_many_to_compare(number: str) -> RunError:
    """The refusal to compare so many matches of one window and partition."""
    return RunError(
        f"{number} matches in one window and partition are too many to compare with each other",
        hint="use a smaller window, more partition attributes, or RETURN TRENDS",
    )


def complete_only(matches: Matches, group: Array, most: int) -> Matches:
    """The matches whose set of events is no proper subset of another's in the same group."""
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0, True]) if len(order) else np.zeros(1, np.int64)
    largest = int(np.diff(bounds).max(initial=0))
    if largest > most:
        raise too_many_to_compare(f"{largest:,}")
    kept = [_maximal(matches, order[a:b]) for a, b in pairwise(bounds)]
    rows = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    return matches.take(rows)


def _maximal(matches: Matches, rows: Array) -> Array:
    some = matches.take(rows)
    events, of = np.unique(some.events, return_inverse=True)
    holds = np.zeros((len(some), len(events)), np.float32)
    holds[some.match, of.reshape(-1)] = 1
    size = holds.sum(axis=1)
    contained = np.zeros(len(some), np.bool_)
    for begin in range(0, len(some), 1024):
        part = slice(begin, begin + 1024)
        inside = (holds[part] @ holds.T) == size[part, None]
        contained[part] = (inside & (size[None, :] > size[part, None])).any(axis=1)
    return rows[~contained]


# Complete trends of any pattern: all matches are found, then those go that another one contains.


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
    def depends_on_all(self) -> bool:
        return True

    def within(self, memory: int) -> Self:
        return replace(self, search=self.search.within(memory))

    def all(self, block: Block) -> Iterator[Matches]:
        return iter([only_complete(block, self.search.all(block), self.most)])

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """Refused where too many would be compared; the number of matches tried is exact, that of results is not."""
        if not beforehand or self.tries is None or state.block is None:
            return super().expected(state, beforehand=beforehand)
        found = self.tries.by_window(state.block)
        if found is None:
            return None
        if self.compares and found.max(initial=0) > self.most:
            raise too_many_to_compare(str(Expected(float(found.max()), True)))
        return Expected(float(found.sum()), False, TRIED, stoppable=False)
