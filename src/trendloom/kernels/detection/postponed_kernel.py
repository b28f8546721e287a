"""Matches under skip-till-any-match whose steps depend on the two events they join alone: built last (postponed)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.kernel import SearchKernel
from trendloom.kernels.detection.matches import Matches
from trendloom.kernels.detection.postponed import construct_matches
from trendloom.kernels.detection.spec import Pair


@dataclass(frozen=True)
class PostponedKernel(SearchKernel):
    """`pairs` are the conditions on the two events of a step."""

    pairs: tuple[Pair, ...]

    def all(self, block: Block) -> Iterator[Matches]:
        return construct_matches(self.detection, self.pairs, block)
