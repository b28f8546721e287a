"""Matches of any pattern: partial matches are extended, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block
from trendloom.kernels.expansion.enumerate import enumerate_matches
from trendloom.kernels.ground.matches import Matches
from trendloom.kernels.search.kernel import SearchKernel


@dataclass(frozen=True)
class ExpansionKernel(SearchKernel):
    """What no faster algorithm takes."""

    def all(self, block: Block) -> Iterator[Matches]:
        return enumerate_matches(self.detection, block)
