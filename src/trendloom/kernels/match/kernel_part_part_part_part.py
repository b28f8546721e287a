"""Matches whose next event depends on the last one alone: runs are followed by a table of successors.

On a live stream only events of runs that may go on are asked for again (see `unfinished`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block
from trendloom.kernels.emission import Certain
from trendloom.kernels.match.next import follow_runs, matches_of, prepare_runs
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.match.unfinished import unfinished
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.spec import Compared


@dataclass(frozen=True)
class RunsKernel(SearchKernel):
    """Skip-till-next-match and contiguous; `pairs` are the conditions on the two events of a step."""

    pairs: tuple[Compared, ...]

    def all(self, block: Block) -> Iterator[Matches]:
        return follow_runs(self.detection, self.pairs, block)

    @property
    def prunes(self) -> bool:
        """Whether a run that has gone on is done with all other events: not where a NOT may look at them."""
        return self.clock.certain is Certain.LAST and len(self.detection.scopes) == 1

    @property
    def keeps(self) -> str:
        return "the events of runs that may go on" if self.prunes else super().keeps

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Matches], SearchState]:
        """Take events; give out the matches that have become certain."""
        if watermark is None or not self.prunes or not len(block):
            return super().step(state, block, watermark)
        runs = prepare_runs(self.detection, self.pairs, block)
        kept = unfinished(runs, self.clock.forgotten(block.time) > watermark)
        return self.fresh(block, matches_of(runs), state.before, watermark), SearchState(block, watermark, kept)
