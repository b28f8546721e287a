"""Which structure adds up all predecessors that pass, for every move of the pattern: chosen from its predicates alone.

A move whose predicates compare a column of the earlier event with one of the later is split into *arms*: every arm asks
for equal classes and at most two orders, and the arms together cover the predecessors without overlap. `!=` becomes two
arms, below and above: subtracting the equal ones from all would cancel in floating point.

| predicates of a move            | structure          | cost per event  |
|---------------------------------|--------------------|-----------------|
| none                            | sum                | O(1)            |
| equalities                      | hash               | O(1)            |
| one order (or `!=`)             | fenwick            | O(log n)        |
| equalities and one order        | hash of fenwicks   | O(log n)        |
| two orders, with or without `=` | two-level fenwick  | O(log² n)       |
| anything else                   | scan               | O(n)            |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from trendloom.kernels.matching.automaton import Machine, Step
from trendloom.kernels.measures import AggregationSpec

MOST_ORDERS = 2
"""Orders that the trees can answer together."""

SUM, HASH, TREE, NESTED = range(4)
"""Kinds of arms."""


@dataclass(frozen=True)
class Arm:
    """Predecessors with equal values in the pairs `equal`, and in order in each of `ordered` (pair, operator)."""

    equal: tuple[int, ...]
    ordered: tuple[tuple[int, str], ...]

    @property
    def kind(self) -> int:
        if self.ordered:
            return TREE if len(self.ordered) == 1 else NESTED
        return HASH if self.equal else SUM


@dataclass(frozen=True)
class Move:
    """A step from a state, the pairs and tests that apply to it, and its arms (None: predecessors are scanned)."""

    state: int
    step: Step
    pairs: tuple[int, ...]
    tests: tuple[int, ...]
    arms: tuple[Arm, ...] | None

    @property
    def structure(self) -> str:
        if self.arms is None:
            return "scan"
        arm = self.arms[0]
        if arm.kind == TREE:
            return "hash of fenwicks" if arm.equal else "fenwick"
        return {SUM: "sum", HASH: "hash", NESTED: "two-level fenwick"}[arm.kind]


def moves_of(spec: AggregationSpec, machine: Machine, most_orders: int = MOST_ORDERS) -> list[Move]:
    """The moves of the pattern. Less than two orders: nested trees would take too much memory; −1: always scan."""
    found = []
    for state, steps in enumerate(machine.moves[0]):
        for step in steps:
            pairs = tuple(i for i, pair in enumerate(spec.pairs) if (state, step.number) in pair.steps)
            tests = tuple(i for i, test in enumerate(spec.tests) if (state, step.number) in test.steps)
            arms = None if tests or most_orders < 0 else _arms(spec, pairs, most_orders)
            found.append(Move(state, step, pairs, tests, arms))
    return found


def structures(spec: AggregationSpec, machine: Machine) -> list[tuple[int, Step, str]]:
    """For every move (state before, step) the name of its structure. Needs no data."""
    return [(move.state, move.step, move.structure) for move in moves_of(spec, machine)]


def _arms(spec: AggregationSpec, pairs: tuple[int, ...], most_orders: int) -> tuple[Arm, ...] | None:
    equal = tuple(i for i in pairs if spec.pairs[i].operator == "=")
    ordered = tuple(i for i in pairs if i not in equal)
    if len(ordered) > most_orders:
        return None
    sides = [("<", ">") if spec.pairs[i].operator == "!=" else (spec.pairs[i].operator,) for i in ordered]
    return tuple(Arm(equal, tuple(zip(ordered, some, strict=True))) for some in product(*sides))
