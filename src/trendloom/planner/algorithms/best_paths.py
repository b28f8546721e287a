"""Ranked matches whose preference is a fold of what each event gives: best paths, without listing the others.

See Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2, on sequences as
paths through a stratified graph.
"""

from __future__ import annotations

from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.join_order import is_straight
from trendloom.kernels.ranking.kernel import ListingKernel
from trendloom.kernels.ranking.paths_kernel import PathsKernel
from trendloom.planner.adjacency import pairs_in_order
from trendloom.planner.algorithms import list_matches
from trendloom.planner.estimates import estimate_search
from trendloom.planner.ranking import describe_ranking, fold_of
from trendloom.planner.request import Choice, PlanningRequest, Refusal


def consider(request: PlanningRequest) -> Choice | Refusal:
    found = fold_of(request.plan)
    if isinstance(found, Refusal):
        return found
    pairs = pairs_in_order(request.pattern_spec)
    if isinstance(pairs, Refusal):
        return pairs
    straight = not pairs and len(request.pattern_spec.scopes) == 1 and is_straight(Automaton(request.pattern_spec), 0)
    straight &= not (request.pattern_spec.earliest or request.pattern_spec.adjacent)
    listing = list_matches(request).kernel
    assert isinstance(listing, ListingKernel)
    return Choice(
        PathsKernel(
            request.pattern_spec,
            listing.scoring,
            pairs,
            found.fold,
            found.falling,
            listing,
            straight,
            count=listing.count,
        ),
        "best paths: the best way to every event, then the next best matches one after the other",
        "a score is a fold of what each event gives, so the best match through an event goes on from the best to it",
        "O(events · moves) per window, and O(length · log events) for each match given out",
        "the best matches, in the order of their ranks",
        notes=(describe_ranking(request.plan, "best first, and no match is made that is not given out, but for ties"),),
        estimate=estimate_search(request),
    )
