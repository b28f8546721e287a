"""The algorithms in order of preference: the first that takes a plan runs it.

An algorithm is added by a file with `consider` and a place in this tuple. Each takes a plan only if it is right for
it, whatever the others do, so every subset in every order gives right plans; the order is a matter of speed. A file,
and with it its kernels, is loaded when a plan returns what its algorithm computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from trendloom.planner.request import LISTED, Algorithm, Choice, Decide, OutputKind, PlanningRequest, Refusal


@dataclass(frozen=True)
class FunctionInFile:
    """A function of a file in this folder, which is loaded by the first call."""

    file: str
    function: str = "consider"

    def __call__(self, request: PlanningRequest) -> Choice | Refusal:
        found: Decide = getattr(import_module(f"{__name__}.{self.file}"), self.function)
        return found(request)


COMPLETE, COLLAPSED = frozenset({OutputKind.COMPLETE}), frozenset({OutputKind.COLLAPSED})
RANKED, AGGREGATES = frozenset({OutputKind.RANKED}), frozenset({OutputKind.AGGREGATES})

ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm("trend graph", FunctionInFile("complete"), COMPLETE),
    Algorithm("spines", FunctionInFile("collapsed"), COLLAPSED),
    Algorithm("best paths", FunctionInFile("best_paths"), RANKED, ranks=True),
    Algorithm("branches", FunctionInFile("branches"), RANKED, ranks=True),
    Algorithm("rank join", FunctionInFile("rank_join"), RANKED, ranks=True),
    Algorithm("parts", FunctionInFile("monotone_parts"), RANKED, ranks=True),
    Algorithm("runs", FunctionInFile("next_match"), LISTED),
    Algorithm("postponed", FunctionInFile("postponed"), LISTED),
    Algorithm("outside in", FunctionInFile("join_order"), LISTED),
    Algorithm("expansion", FunctionInFile("expansion"), LISTED),
    Algorithm("matrices", FunctionInFile("grains", "consider_type_grained"), AGGREGATES),
    Algorithm("waiting runs", FunctionInFile("grains", "consider_pattern_grained"), AGGREGATES),
    Algorithm("by event", FunctionInFile("grains", "consider_event_grained"), AGGREGATES),
    Algorithm("pivots", FunctionInFile("grains", "consider_pivots"), AGGREGATES),
    Algorithm("two steps", FunctionInFile("two_steps"), AGGREGATES),
    Algorithm("signatures", FunctionInFile("uncertain"), LISTED, imprecise=True),
    Algorithm("expected", FunctionInFile("expected_values"), AGGREGATES, imprecise=True),
    Algorithm("summed signatures", FunctionInFile("summed_confidences"), AGGREGATES, imprecise=True),
)
