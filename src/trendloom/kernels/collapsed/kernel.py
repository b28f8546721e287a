"""Collapsed trends under the contract every kernel keeps: by spines, or by putting all matches together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.collapsed.collapse import collapse
from trendloom.kernels.collapsed.merge import merged, up_to
from trendloom.kernels.collapsed.spec import MATCHES, Spine
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Expected
from trendloom.kernels.ground.matches import Matches
from trendloom.kernels.search.kernel import SearchKernel, SearchState


@dataclass(frozen=True)
class CollapsedKernel(SearchKernel):
    """Matches that differ in events of Kleene variables alone are one row."""

    @property
    def together(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        return (MATCHES,)

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """There are polynomially many rows: nobody has to be told."""
        return None


@dataclass(frozen=True)
class SpinesKernel(CollapsedKernel):
    """Events outside Kleene variables first, then what may lie between them."""

    spine: Spine

    def all(self, block: Block) -> Iterator[Matches]:
        return collapse(self.spine, self.detection, block)


@dataclass(frozen=True)
class MergedKernel(CollapsedKernel):
    """All matches are found by `search`, at most `most` of them, and put together."""

    search: SearchKernel
    most: int

    def all(self, block: Block) -> Iterator[Matches]:
        return merged(up_to(self.most, self.search.all(block)), self.detection, block)
