"""The best matches, under the contract every kernel keeps.

Ranks of a window are certain when it has ended. Without windows those of a key depend on all its events, so there are
none on a live stream. Keys may be looked at apart unless they are ranked together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from trendloom.errors import RunError
from trendloom.expr.nodes import columns
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Built, Divisible, Expected, Figure
from trendloom.kernels.contract.emission import Certain, EmissionPolicy
from trendloom.kernels.contract.matches import Matches, MatchValues, ResultColumn, binding_positions, join
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.ranking.scores import (
    RANK,
    SCORE,
    Scored,
    Scoring,
    best_of,
    concatenate_scored,
    inside_operand_spans,
    scored,
    scores_of,
)
from trendloom.model.schema import Kind

RANKING, IN_ALL, MADE = "Ranking", "matches in all", "matches made"
"""What EXPLAIN says of ranks: how many matches there are, and how many were made to find the best of them."""
HELD = 1 << 20
"""Matches that are held before the best of them are kept."""
MANY = 1 << 12
"""Matches after which all of them are counted: few are listed sooner than counted."""
STEPS_OF_A_MATCH = 8
"""Steps of counting that take about as long as to list a match and score it."""


@dataclass(frozen=True)
class RankingKernel(SearchKernel):
    """Matches are scored, and the best of each window and key are given out in their order."""

    scoring: Scoring

    @property
    def emission(self) -> EmissionPolicy:
        window = self.pattern_spec.window
        return (
            EmissionPolicy(window, Certain.WINDOW) if window.sliding else EmissionPolicy(window, Certain.FIRST, reach=2)
        )

    @property
    def divisible(self) -> Divisible:
        found = Divisible.NOT_AT_ALL if self.scoring.overall else Divisible.BY_KEY
        return found | Divisible.BY_TIME if self.pattern_spec.window.sliding else found

    @property
    def reads(self) -> frozenset[str]:
        return frozenset().union(*(columns(expr) for expr in self.scoring.preferences))

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        scoring = self.scoring
        return (
            ResultColumn(RANK, Kind.INT, "which place a match has in its window and partition", sorts=True),
            ResultColumn(SCORE, scoring.kind, "what it is ranked by", scale=scoring.scale),
        )

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """None: there are few."""
        return None

    def all(self, block: Block) -> Iterator[Matches]:
        best = self.best(block)
        if len(best):
            yield best

    def describe(self, state: SearchState) -> Built | None:
        """How many matches were made to find the best, beside all that there are; None: too many for that."""
        if state.block is None:
            return None
        try:
            made = self.effort(state.block)
        except RunError:
            return None
        figures = [Figure(name, f"{number:,.0f}") for name, number in made.items()]
        total = None if self.count is None else self.count.total(state.block)
        if total is None:
            return Built(RANKING, tuple(figures), made)
        figures.insert(0, Figure(IN_ALL, f"{total}, counted without listing them"))
        spared = total.number - made[MADE]
        if spared > 0:
            figures.append(Figure("spared", f"{replace(total, number=spared)} matches were never made"))
        return Built(RANKING, tuple(figures), {IN_ALL: total.number, **made} if total.exact else made)

    def effort(self, block: Block) -> Mapping[str, float]:
        """What finding the best comes to, by name: `MADE`, and whatever else an algorithm counts. Here: the best."""
        return {MADE: float(len(self.best(block)))}

    @abstractmethod
    def best(self, block: Block) -> Matches:
        """The best of each window and key among these events, in the order of windows, keys and ranks."""

    def scored(self, block: Block, matches: Matches) -> Scored:
        """Matches with their scores."""
        values = MatchValues(
            block,
            matches,
            binding_positions(self.pattern_spec.places),
            lambda name, events: block.columns[name].take(events),
        )
        return scored(matches, scores_of(self.scoring, values), descending=self.scoring.descending)


@dataclass(frozen=True)
class ListingKernel(RankingKernel):
    """All matches are found by `search`, at most `most` of them, and the best are kept.

    Cost: that of the search, and O(m log m) for its m matches; the best so far and a chunk are held.
    """

    search: SearchKernel
    most: int

    def within(self, memory: int) -> Self:
        return replace(self, search=self.search.within(memory))

    def effort(self, block: Block) -> Mapping[str, float]:
        """All matches are made."""
        listed = 0
        for matches in self.search.all(block):
            listed += len(matches)
            if listed > self.most:
                raise self._too_many(f"more than {self.most:,}")
        return {MADE: float(listed)}

    def best(self, block: Block) -> Matches:
        held: list[Scored] = []
        size = count = 0
        counter = self.search.count
        worth_it = 0 if counter is None else max(MANY, counter.steps(block) // STEPS_OF_A_MATCH)
        for matches in self.search.all(block):
            if counter is not None and count < worth_it <= count + len(matches):
                self._refuse_more_than_allowed(counter.expected(block))
            count += len(matches)
            if count > self.most:
                raise self._too_many(f"more than {self.most:,}")
            held.append(
                self.scored(block, inside_operand_spans(matches, block, self.scoring, self.pattern_spec.window))
            )
            size += len(held[-1])
            if size > HELD:
                held = [best_of(concatenate_scored(held), block, self.scoring)]
                size = len(held[0])
        return best_of(concatenate_scored(held), block, self.scoring).matches if held else join([])

    def _refuse_more_than_allowed(self, expected: Expected | None) -> None:
        """Refuse to list matches for minutes only to find that there are too many."""
        if expected is not None and expected.certain > self.most:
            raise self._too_many(expected.in_any_case)

    def _too_many(self, number: str) -> RunError:
        return RunError(
            f"{number} matches would have to be listed to rank them, and {self.most:,} are the most there may be",
            hint="use a smaller WITHIN, more selective conditions, or a preference that is a sum of values of events: "
            "EXPLAIN says what stands in the way",
        )


@dataclass(frozen=True)
class BranchesKernel(RankingKernel):
    """The best matches of an OR whose branches are ranked each on its own.

    A match takes one branch, and its score is the preference of that one. So the k best of all are among the k best of
    each, and every branch is ranked in the way that suits it. `branches`: each ranks the matches of one branch as all
    of them are ranked. Cost: that of the branches.
    """

    branches: tuple[RankingKernel, ...]

    def within(self, memory: int) -> Self:
        return replace(self, branches=tuple(branch.within(memory) for branch in self.branches))

    def effort(self, block: Block) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for branch in self.branches:
            for name, number in branch.effort(block).items():
                found[name] = found.get(name, 0.0) + number
        return found

    def best(self, block: Block) -> Matches:
        found = [branch.best(block) for branch in self.branches]
        scored = [self.scored(block, matches) for matches in found if len(matches)]
        return best_of(concatenate_scored(scored), block, self.scoring).matches if scored else join([])
