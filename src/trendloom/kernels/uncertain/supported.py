"""Which patterns the search takes: binding refuses the others by name, and here is where they would go wrong."""

from __future__ import annotations

from itertools import combinations

from trendloom.errors import PlanError, option
from trendloom.kernels.matching.automaton import Machine, Step
from trendloom.kernels.uncertain.extension import scopes_crossed
from trendloom.kernels.uncertain.rivals import CLASSES, excuse_bits


def check_supported(machine: Machine) -> None:
    """Refuse what signatures with rivals cannot express."""
    spec = machine.spec
    template = spec.scopes[0].template
    if spec.adjacent or spec.hidden:
        raise _refusal("contiguous matches and EXISTS")
    if machine.ambiguous or any(len(step.ways) != 1 or step.may_tie for step in machine.steps):
        raise _refusal("a pattern that leads from one component to another in several ways")
    if any(len(ways) > 1 for ways in template.accepts):
        raise _refusal("a pattern that ends in several ways")
    if any(edge.target < state for state, edges in enumerate(template.edges) for edge in edges):
        raise _refusal("a Kleene part of several components")
    for scope in spec.scopes[1:]:
        if scope.parent or len(scope.template.edges) != 1 or scope.template.edges[0] or scope.open_ended:
            raise _refusal("NOT of more than one event")
    if spec.earliest:
        _check_runs(machine)


def _check_runs(machine: Machine) -> None:
    spec = machine.spec
    if any(rule.shape.whole for rule in spec.scopes[0].rules):
        raise _refusal("skip-till-next-match with conditions on a whole Kleene part")
    if any(rule.part in scope.parts for scope in spec.scopes[1:] for rule in scope.rules if rule.part is not None):
        raise _refusal("skip-till-next-match with conditions on a NOT inside a Kleene part")
    if len(excuse_bits(machine)) > CLASSES:
        raise _refusal(f"skip-till-next-match with more than {CLASSES} NOTs")
    for steps in machine.moves[0]:
        for one, other in combinations(steps, 2):
            if _of_one_type(machine, one, other) and not _in_line(one, other):
                raise _refusal("skip-till-next-match with NOTs on different ways to one event")


def _of_one_type(machine: Machine, one: Step, other: Step) -> bool:
    places = machine.spec.places
    return places[one.position].type == places[other.position].type


def _in_line(one: Step, other: Step) -> bool:
    """Whether one of two steps crosses all NOTs that the other crosses."""
    mine, theirs = set(scopes_crossed(one)), set(scopes_crossed(other))
    return mine <= theirs or theirs <= mine


def _refusal(what: str) -> PlanError:
    return PlanError(
        f"with imprecise time the search does not take {what}",
        hint=f"use skip-till-any-match or a simpler pattern; {option('engine', 'reference')} runs it on small streams",
    )
