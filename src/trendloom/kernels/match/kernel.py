"""Matches of any pattern: partial matches are extended, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.matches import Matches


@dataclass(frozen=True)
class ExpansionKernel(SearchKernel):
    """What no faster algorithm takes."""

    def all(self, block: Block) -> Iterator[Matches]:
        return enumerate_matches(self.detection, block)
