"""What EXISTS leaves of matches, under the contract every kernel keeps: hidden events go, and equal remainders are one.

Equal remainders can come of matches anywhere within WITHIN of their first event, before and after it. So a remainder
is certain when the watermark has passed that event by WITHIN, or at the end of its window, and events are kept for
twice WITHIN, or as long as their windows.

Keys are looked at some at a time: remainders of different keys differ, and those of done keys are forgotten.
Cost: that of the search, and O(events of its matches).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.match.exists import MEMORY, without_hidden
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.matches import Matches

STRETCH = 1 << 17
"""Events of keys that are looked at together, unless a key has more."""


@dataclass(frozen=True)
class RemaindersKernel(SearchKernel):
    """`search` finds matches, at most `most` for each stretch of keys; `memory`: bytes of remainders that are kept."""

    search: SearchKernel
    most: int
    memory: int = MEMORY

    @property
    def together(self) -> bool:
        return True

    def within(self, memory: int) -> Self:
        return replace(self, memory=memory)

    def all(self, block: Block) -> Iterator[Matches]:
        for some, low in _stretches_of_keys(block):
            for remainders in without_hidden(self.search.all(some), self.detection, self.most, self.memory):
                yield replace(remainders, events=remainders.events + low) if low else remainders


def _stretches_of_keys(block: Block) -> Iterator[tuple[Block, int]]:
    """The block in parts that divide no key, each with where it begins."""
    wanted = np.arange(STRETCH, len(block), STRETCH)
    bounds = np.unique(np.r_[0, np.searchsorted(block.key_starts, wanted), block.keys])
    if len(bounds) <= 2:
        yield block, 0
        return
    for first, last in pairwise(bounds.tolist()):
        yield block.of_keys(first, last), int(block.key_starts[first])
