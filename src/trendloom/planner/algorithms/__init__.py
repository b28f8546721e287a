"""The algorithms in order of preference: the first that takes a plan runs it.

An algorithm is added by a file with `consider` and a place in this tuple. Each takes a plan only if it is right for
it, whatever the others do, so every subset in every order gives right plans; the order is a matter of speed. A file,
and with it its kernels, is loaded when a plan returns what its algorithm computes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module

from trendloom.planner.request import LISTED, Algorithm, Choice, Decide, OutputKind, PlanningRequest, Refusal


@dataclass(frozen=True)
class ConsiderIn:
    """The function `consider` of a file in this folder, which is loaded by the first call."""

    file: str

    def __call__(self, request: PlanningRequest) -> Choice | Refusal:
        consider: Decide = import_module(f"{__name__}.{self.file}").consider
        return consider(request)


COMPLETE, COLLAPSED = frozenset({OutputKind.COMPLETE}), frozenset({OutputKind.COLLAPSED})
RANKED, AGGREGATES = frozenset({OutputKind.RANKED}), frozenset({OutputKind.AGGREGATES})

SEARCHES: tuple[Algorithm, ...] = (
    Algorithm("next match", ConsiderIn("next_match"), LISTED),
    Algorithm("postponed", ConsiderIn("postponed"), LISTED),
    Algorithm("join order", ConsiderIn("join_order"), LISTED),
    Algorithm("expansion", ConsiderIn("expansion"), LISTED),
)
"""Those that find matches one by one; the last one takes every pattern."""

ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm("trend graph", ConsiderIn("complete"), COMPLETE),
    Algorithm("spines", ConsiderIn("collapsed"), COLLAPSED),
    Algorithm("best paths", ConsiderIn("best_paths"), RANKED),
    Algorithm("branches", ConsiderIn("branches"), RANKED),
    Algorithm("rank join", ConsiderIn("rank_join"), RANKED),
    Algorithm("monotone parts", ConsiderIn("monotone_parts"), RANKED),
    *SEARCHES,
    Algorithm("type-grained", ConsiderIn("type_grained"), AGGREGATES),
    Algorithm("pattern-grained", ConsiderIn("pattern_grained"), AGGREGATES),
    Algorithm("event-grained", ConsiderIn("event_grained"), AGGREGATES),
    Algorithm("pivots", ConsiderIn("pivots"), AGGREGATES),
    Algorithm("two steps", ConsiderIn("two_steps"), AGGREGATES),
    Algorithm("signatures", ConsiderIn("uncertain"), LISTED, imprecise=True),
    Algorithm("expected", ConsiderIn("expected_values"), AGGREGATES, imprecise=True),
    Algorithm("summed signatures", ConsiderIn("summed_confidences"), AGGREGATES, imprecise=True),
)


def list_matches(request: PlanningRequest) -> Choice:
    """The choice of the first search that takes the pattern of a plan, as a part of another algorithm."""
    found = next(found for one in SEARCHES if isinstance(found := one.decide(request), Choice))
    return replace(found, builds=False)
