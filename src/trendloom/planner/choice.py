"""What is made of matches that are found one by one: rows, complete trends, collapsed trends, or sums of them."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.match.exists import RemaindersKernel
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.spec import Compared
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
from trendloom.planner.request import Choice, Wanted

ADDED_UP = "it finds matches one by one, and aggregates may do without"


def searched(
    wanted: Wanted, kernel: SearchKernel, pairs: tuple[Compared, ...] | None, algorithm: str, why: str, cost: str
) -> Choice:
    """A search for matches, and what the plan wants of them."""
    output, refused = wanted.plan.output, wanted.refused
    kernel = replace(kernel, whole_windows=wanted.aggregates, count=count_of_matches(wanted))
    found = matches = _shown(wanted, kernel)
    result = "matches as they are found, sorted where they fit in memory"
    ranking: tuple[Branch, ...] = ()
    if output is Trends.COMPLETE:
        tries, compares = count_of_tried(kernel.detection)
        found = MaximalKernel(kernel.detection, matches, wanted.limits.compared, tries, compares, count=kernel.count)
        result = f"find all matches, then drop those that another one contains ({refused['trend graph']})"
    elif output is Trends.COLLAPSED:
        found = MergedKernel(kernel.detection, matches, wanted.limits.enumerated)
        result = f"{TOGETHER}: matches are enumerated and put together, because {refused['spines']}"
    elif (scoring := scoring_of(wanted.plan, tuple(place.variable for place in kernel.detection.places))) is not None:
        found = ListingKernel(kernel.detection, scoring, matches, wanted.limits.enumerated, count=kernel.count)
        result = f"list all matches (at most {wanted.limits.enumerated:,}), keep the best of them"
        ranking = (_listed(wanted),)
    elif isinstance(output, Aggregation):
        having = ", keep rows that pass HAVING" if output.having is not None else ""
        result = f"two steps: find the matches, then add up per group and window{having}"
    hiding = f"{COMPARED} (of at most {wanted.limits.enumerated:,} matches at a time)"
    notes = (*ranking, *describe_hiding(kernel.detection, hiding), *_predicates(wanted, kernel, pairs))
    return Choice(found, algorithm, why, cost, result, notes=notes, estimate=estimate_search(wanted))


def _listed(wanted: Wanted) -> Branch:
    """Why the best are found by listing all matches."""
    obstacles = tuple(
        Branch(f"not by {name}", wanted.refused[name]) for name in WITHOUT_LISTING if name in wanted.refused
    )
    return describe_ranking(
        wanted.plan,
        f"every match is made and scored, at most {wanted.limits.enumerated:,}; the best are held",
        obstacles,
    )


def _shown(wanted: Wanted, kernel: SearchKernel) -> SearchKernel:
    """What a search finds, without the events that EXISTS hides."""
    if not kernel.detection.hidden:
        return kernel
    return RemaindersKernel(
        kernel.detection,
        kernel,
        wanted.limits.enumerated,
        whole_windows=kernel.whole_windows,
        count=kernel.count,
    )


def _predicates(wanted: Wanted, kernel: SearchKernel, pairs: tuple[Compared, ...] | None) -> tuple[Branch, ...]:
    """Under skip-till-any-match: the class of every condition, which says where it may be tested."""
    if wanted.plan.semantics is not Semantics.ANY:
        return ()
    found = tuple(
        Branch(text, f"{kind.value}: {where}")
        for text, kind, where in describe_predicates(wanted.plan, kernel.detection, pairs)
    )
    return (Branch("predicates", below=found),) if found else ()
