"""What analyses and pictures show of kernels: how far partial matches get, and the matrices that count matches.

Rooms above the planner name no algorithm of `kernels`; they get what they show of one here.
"""

from __future__ import annotations

from collections.abc import Callable

from trendloom.kernels.aggregate.program import Program as Program
from trendloom.kernels.aggregate.program import Slot as Slot
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.expansion import NOWHERE as NOWHERE
from trendloom.kernels.match.expansion import Reached as Reached
from trendloom.kernels.match.expansion import reached
from trendloom.kernels.matching.automaton import Automaton
from trendloom.planner.adjacency import adjacent
from trendloom.planner.request import Refusal


def reached_by_partial_matches(pattern_spec: PatternSpec, block: Block, go_on: Callable[[], bool]) -> Reached:
    """What partial matches reach; a lower bound where `go_on` ends the search."""
    return reached(pattern_spec, block, remembered(pattern_spec), go_on)


def remembered(pattern_spec: PatternSpec) -> frozenset[str] | None:
    """Variables whose events decide, besides the last event, how a partial match goes on; None: everything may matter.

    Each binds one event. Where it is the last event alone, all partial matches that end with it are alike.
    """
    automaton = Automaton(pattern_spec)
    if automaton.ambiguous or any(place.branch for place in pattern_spec.places):
        return None
    names: set[str] = set()
    for rule in pattern_spec.scopes[0].rules:
        if isinstance(adjacent(rule, pattern_spec, automaton), Refusal):
            names |= rule.shape.variables
    for scope in pattern_spec.scopes[1:]:
        names |= scope.outer if scope.parent == 0 and scope.waits else frozenset()
    return None if names & pattern_spec.plural else frozenset(names)


def program_of(pattern_spec: PatternSpec) -> Program:
    """The slots and moves of a pattern whose matches are counted with matrices."""
    return Program(Automaton(pattern_spec))
