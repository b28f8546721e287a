"""Matches under skip-till-any-match whose steps depend on the two events they join alone: built last (postponed)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block
from trendloom.kernels.match.any import construct_matches
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.spec import Compared


@dataclass(frozen=True)
class PostponedKernel(SearchKernel):
    """`pairs` are the conditions on the two events of a step."""

    pairs: tuple[Compared, ...]

    def all(self, block: Block) -> Iterator[Matches]:
        return construct_matches(self.detection, self.pairs, block)
