"""Matches of a whole pattern that is a sequence of single events, in the windows that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trendloom.kernels.columns.block import Block, check_range, horizons
from trendloom.kernels.contract import Built, Figure
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import CHUNK, Expansion
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.join_order import Joining
from trendloom.kernels.matching.partial_matches import without_context
from trendloom.kernels.matching.windows import in_windows, matches_of


def joined_matches(spec: PatternSpec, block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    check_range(block.time, spec.window)
    joining = joining_of(spec, block, chunk)
    roots = without_context(joining.automaton, block, 0, block.keys)
    for paths in joining.matches(roots, block.key_starts[:-1], block.key_starts[1:]):
        for windowed, start in in_windows(joining.gaps, paths, spec):
            if len(windowed):
                yield matches_of(windowed, start)


def joining_of(spec: PatternSpec, block: Block, chunk: int = CHUNK) -> Joining:
    """The search for a pattern over a block."""
    automaton = Automaton(spec)
    gaps = Gaps(automaton, block, lambda gaps, scope: Expansion(automaton, block, gaps, scope, chunk))
    return Joining(gaps, 0, chunk, horizons(block, spec.window))


def describe_order(spec: PatternSpec, block: Block) -> str:
    """The components in the order in which they are bound over these events, for people to read."""
    joining = joining_of(spec, block)
    return ", ".join(joining.names[at] for at in joining.order)


# Matches of sequences of single events with conditions between any of them: bound in the order that costs least.


@dataclass(frozen=True)
class JoiningKernel(SearchKernel):
    """What conditions between distant components, or inside NOTs, make more selective than its steps."""

    def all(self, block: Block) -> Iterator[Matches]:
        return joined_matches(self.pattern_spec, block)

    def describe(self, state: SearchState) -> Built | None:
        """The order of the components, which depends on the events."""
        if state.block is None or not len(state.block):
            return None
        return Built("order", (Figure("binds", describe_order(self.pattern_spec, state.block)),))
