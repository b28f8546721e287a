"""From matches that are found one by one to the output of a plan: rows, trends, ranked matches or aggregates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Expected
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.match.exists import ExistsKernel
from trendloom.kernels.match.search import MatchCount, SearchKernel
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation
from trendloom.model.selection import Semantics
from trendloom.planner.consistency import describe_predicates
from trendloom.planner.estimates import estimate_search
from trendloom.planner.exists import COMPARED, describe_hiding
from trendloom.planner.request import Choice, OutputKind, PlanningRequest, Refusal

if TYPE_CHECKING:
    from trendloom.kernels.aggregate.block import Count


COLLAPSED_ROWS = "one row for all matches with the same events outside Kleene variables"


def because(text: str, answer: object) -> str:
    """The text with the reason of a refusal; without one its first clause alone."""
    return f"{text} {answer.text}" if isinstance(answer, Refusal) else text.partition(",")[0]


def searched(
    request: PlanningRequest,
    kernel: SearchKernel,
    pairs: tuple[Compared, ...] | None,
    algorithm: str,
    why: str,
    cost: str,
) -> Choice:
    """The choice of a search for matches, completed by what the plan returns of them."""
    kernel = replace(kernel, whole_windows=request.aggregates, count=_count(request))
    found, result = _returning(request, kernel, _shown(request, kernel))
    ranking: tuple[Branch, ...] = ()
    if request.output is OutputKind.RANKED:
        from trendloom.planner.ranking import describe_ranking

        how = f"every match is made and scored, at most {request.limits.enumerated:,}; the best are held"
        ranking = (describe_ranking(request.plan, how),)
    hiding = f"{COMPARED} (of at most {request.limits.enumerated:,} matches at a time)"
    notes = (*ranking, *describe_hiding(kernel.pattern_spec, hiding), *_predicates(request, kernel, pairs))
    lists = request.output not in (OutputKind.MATCHES, OutputKind.AGGREGATES)
    return Choice(found, algorithm, why, cost, result, notes=notes, lists=lists, estimate=estimate_search(request))


def _returning(request: PlanningRequest, kernel: SearchKernel, matches: SearchKernel) -> tuple[SearchKernel, str]:
    """The kernel that returns the output of the plan, and how; kernels that a plan does not need are not loaded."""
    pattern_spec, limits, output = kernel.pattern_spec, request.limits, request.plan.output
    match request.output:
        case OutputKind.COMPLETE:
            from trendloom.kernels.trends.by_comparison import MaximalKernel
            from trendloom.planner.counting import count_of_tried

            tries, compares = count_of_tried(pattern_spec)
            maximal = MaximalKernel(pattern_spec, matches, limits.compared, tries, compares, count=kernel.count)
            return maximal, "find all matches, then drop those that another one contains"
        case OutputKind.COLLAPSED:
            from trendloom.kernels.trends.collapsed import MergedKernel

            how = f"{COLLAPSED_ROWS}: matches are enumerated and merged"
            return MergedKernel(pattern_spec, matches, limits.enumerated), how
        case OutputKind.RANKED:
            from trendloom.kernels.ranking.kernel import ListingKernel
            from trendloom.planner.ranking import scoring_of

            scoring = scoring_of(request.plan, tuple(place.variable for place in pattern_spec.places))
            assert scoring is not None
            listing = ListingKernel(pattern_spec, scoring, matches, limits.enumerated, count=kernel.count)
            return listing, f"list all matches (at most {limits.enumerated:,}), keep the best of them"
        case OutputKind.AGGREGATES:
            assert isinstance(output, Aggregation)
            having = ", keep rows that pass HAVING" if output.having is not None else ""
            return matches, f"two steps: find the matches, then add up per group and window{having}"
        case OutputKind.MATCHES:
            return matches, "matches as they are found, sorted where they fit in memory"


@dataclass(frozen=True)
class DeferredCount:
    """The count of the matches of a plan that returns them, planned on first use: most never are."""

    pattern_spec: PatternSpec

    @cached_property
    def planned(self) -> Count | None:
        from trendloom.planner.counting import count_of_matches

        return count_of_matches(self.pattern_spec, complete=False)

    def expected(self, block: Block) -> Expected | None:
        return None if self.planned is None else self.planned.expected(block)

    def total(self, block: Block) -> Expected | None:
        return None if self.planned is None else self.planned.total(block)

    def steps(self, block: Block) -> int:
        return 0 if self.planned is None else self.planned.steps(block)


def _count(request: PlanningRequest) -> MatchCount | None:
    """How the matches of a plan are counted; None: not at all."""
    if request.aggregates:
        return None
    if request.output is OutputKind.MATCHES:
        return DeferredCount(request.pattern_spec)
    from trendloom.planner.counting import count_of_matches

    return count_of_matches(request.pattern_spec, complete=request.output is OutputKind.COMPLETE)


def _shown(request: PlanningRequest, kernel: SearchKernel) -> SearchKernel:
    """What a search finds, without the events that EXISTS hides."""
    if not kernel.pattern_spec.hidden:
        return kernel
    return ExistsKernel(
        kernel.pattern_spec,
        kernel,
        request.limits.enumerated,
        whole_windows=kernel.whole_windows,
        count=kernel.count,
    )


def _predicates(
    request: PlanningRequest, kernel: SearchKernel, pairs: tuple[Compared, ...] | None
) -> tuple[Branch, ...]:
    """Under skip-till-any-match: the class of every condition, and where it is tested."""
    if request.plan.semantics is not Semantics.ANY:
        return ()
    found = tuple(
        Branch(text, f"{kind.value}: {where}")
        for text, kind, where in describe_predicates(request.plan, kernel.pattern_spec, pairs)
    )
    return (Branch("predicates", below=found),) if found else ()
