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
from trendloom.planner.algorithms.collapsed import TOGETHER
from trendloom.planner.consistency import describe_predicates
from trendloom.planner.counting import count_of_matches, count_of_tried
from trendloom.planner.estimates import estimate_search
from trendloom.planner.exists import COMPARED, describe_hiding
from trendloom.planner.ranking import WITHOUT_LISTING, describe_ranking, scoring_of
from trendloom.planner.request import Choice, PlanningRequest

ADDED_UP = "it finds matches one by one, and aggregates may do without"


def searched(
    request: PlanningRequest,
    kernel: SearchKernel,
    pairs: tuple[Compared, ...] | None,
    algorithm: str,
    why: str,
    cost: str,
) -> Choice:
    """A search for matches, and what the plan wants of them."""
    output, refused = request.plan.output, request.refused
    kernel = replace(kernel, whole_windows=request.aggregates, count=count_of_matches(request))
    found = matches = _shown(request, kernel)
    result = "matches as they are found, sorted where they fit in memory"
    ranking: tuple[Branch, ...] = ()
    if output is Trends.COMPLETE:
        tries, compares = count_of_tried(kernel.pattern_spec)
        found = MaximalKernel(
            kernel.pattern_spec, matches, request.limits.compared, tries, compares, count=kernel.count
        )
        result = f"find all matches, then drop those that another one contains ({refused['trend graph']})"
    elif output is Trends.COLLAPSED:
        found = MergedKernel(kernel.pattern_spec, matches, request.limits.enumerated)
        result = f"{TOGETHER}: matches are enumerated and put together, because {refused['spines']}"
    elif (
        scoring := scoring_of(request.plan, tuple(place.variable for place in kernel.pattern_spec.places))
    ) is not None:
        found = ListingKernel(kernel.pattern_spec, scoring, matches, request.limits.enumerated, count=kernel.count)
        result = f"list all matches (at most {request.limits.enumerated:,}), keep the best of them"
        ranking = (_listed(request),)
    elif isinstance(output, Aggregation):
        having = ", keep rows that pass HAVING" if output.having is not None else ""
        result = f"two steps: find the matches, then add up per group and window{having}"
    hiding = f"{COMPARED} (of at most {request.limits.enumerated:,} matches at a time)"
    notes = (*ranking, *describe_hiding(kernel.pattern_spec, hiding), *_predicates(request, kernel, pairs))
    return Choice(found, algorithm, why, cost, result, notes=notes, estimate=estimate_search(request))


def _listed(request: PlanningRequest) -> Branch:
    """Why the best are found by listing all matches."""
    obstacles = tuple(
        Branch(f"not by {name}", request.refused[name]) for name in WITHOUT_LISTING if name in request.refused
    )
    return describe_ranking(
        request.plan,
        f"every match is made and scored, at most {request.limits.enumerated:,}; the best are held",
        obstacles,
    )


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
