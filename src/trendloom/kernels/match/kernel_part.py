"""Matches of sequences of single events with conditions between any of them: bound in the order that costs least."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Built, Figure
from trendloom.kernels.match.join_order import describe_order, joined_matches
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.matches import Matches


@dataclass(frozen=True)
class JoiningKernel(SearchKernel):
    """What conditions between distant components, or inside NOTs, make more selective than its steps."""

    def all(self, block: Block) -> Iterator[Matches]:
        return joined_matches(self.detection, block)

    def describe(self, state: SearchState) -> Built | None:
        """The order of the components, which depends on the events."""
        if state.block is None or not len(state.block):
            return None
        return Built("order", (Figure("binds", describe_order(self.detection, state.block)),))
