"""What is made of matches that are found one by one: rows, complete trends, collapsed trends, or sums of them."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.contract.pattern_spec import Compared
from trendloom.kernels.match.exists import ExistsKernel
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.ranking.kernel import ListingKernel
from trendloom.kernels.trends.collapsed.kernel import MergedKernel
from trendloom.kernels.trends.complete.by_comparison import MaximalKernel
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation
from trendloom.model.selection import Semantics, Trends
from trendloom.planner.algorithms.collapsed import TOGETHER, spine_of
from trendloom.planner.algorithms.complete import complete_of
from trendloom.planner.consistency import describe_predicates
from trendloom.planner.counting import count_of_matches, count_of_tried
from trendloom.planner.estimates import estimate_search
from trendloom.planner.exists import COMPARED, describe_hiding
from trendloom.planner.ranking import describe_ranking, scoring_of
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

ADDED_UP = Refusal(RefusalCode.OUTPUT, "it finds matches one by one, and aggregates may do without")


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
    """A search for matches, and what the plan wants of them."""
    output, lists = request.plan.output, False
    kernel = replace(kernel, whole_windows=request.aggregates, count=count_of_matches(request))
    found = matches = _shown(request, kernel)
    result = "matches as they are found, sorted where they fit in memory"
    ranking: tuple[Branch, ...] = ()
    if output is Trends.COMPLETE:
        tries, compares = count_of_tried(kernel.pattern_spec)
        found = MaximalKernel(
            kernel.pattern_spec, matches, request.limits.compared, tries, compares, count=kernel.count
        )
        refusal = complete_of(request.pattern_spec)
        reason = f" ({refusal.text})" if isinstance(refusal, Refusal) else ""
        result = f"find all matches, then drop those that another one contains{reason}"
    elif output is Trends.COLLAPSED:
        found = MergedKernel(kernel.pattern_spec, matches, request.limits.enumerated)
        spines = spine_of(request.pattern_spec)
        result = f"{TOGETHER}: {because('matches are enumerated and put together, because', spines)}"
    elif (
        scoring := scoring_of(request.plan, tuple(place.variable for place in kernel.pattern_spec.places))
    ) is not None:
        found = ListingKernel(kernel.pattern_spec, scoring, matches, request.limits.enumerated, count=kernel.count)
        result = f"list all matches (at most {request.limits.enumerated:,}), keep the best of them"
        how = f"every match is made and scored, at most {request.limits.enumerated:,}; the best are held"
        ranking, lists = (describe_ranking(request.plan, how),), True
    elif isinstance(output, Aggregation):
        having = ", keep rows that pass HAVING" if output.having is not None else ""
        result = f"two steps: find the matches, then add up per group and window{having}"
    hiding = f"{COMPARED} (of at most {request.limits.enumerated:,} matches at a time)"
    notes = (*ranking, *describe_hiding(kernel.pattern_spec, hiding), *_predicates(request, kernel, pairs))
    return Choice(found, algorithm, why, cost, result, notes=notes, lists=lists, estimate=estimate_search(request))


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
    """Under skip-till-any-match: the class of every condition, which says where it may be tested."""
    if request.plan.semantics is not Semantics.ANY:
        return ()
    found = tuple(
        Branch(text, f"{kind.value}: {where}")
        for text, kind, where in describe_predicates(request.plan, kernel.pattern_spec, pairs)
    )
    return (Branch("predicates", below=found),) if found else ()
