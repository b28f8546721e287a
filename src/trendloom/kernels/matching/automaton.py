"""The template as tables: every step of every scope gets a number, and what a step means is looked up by it.

Alternatives of one step that differ only in the NOTs they cross, and whose NOTs can be decided at once, become one step
with several *ways*. Alternatives that start different rounds, or cross NOTs that must wait for variables, stay steps of
their own; then one binding can be derived twice (`ambiguous`) and matches must be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.contract.pattern_spec import PatternSpec, Scope
from trendloom.pattern.template import Crossings, Edge


@dataclass(frozen=True)
class Step:
    """Binding an event at `position`; possible if the NOTs of one of the `ways` all hold."""

    number: int
    scope: int
    position: int
    target: int
    may_tie: bool
    rounds: frozenset[int]
    ways: tuple[Crossings, ...]


class Automaton:
    """The tables of a pattern, built once per task."""

    def __init__(self, spec: PatternSpec) -> None:
        self.spec = spec
        self.steps: list[Step] = []
        self.parts = sorted({rule.part for scope in spec.scopes for rule in scope.rules if rule.part is not None}
                            | {part for place in spec.places for part, _ in place.branch})  # fmt: skip
        self.ambiguous = False
        self.starts: list[list[Step]] = []
        self.moves: list[list[list[Step]]] = []
        for scope in spec.scopes:
            self.starts.append(self._steps(scope, scope.template.starts))
            self.moves.append([self._steps(scope, edges) for edges in scope.template.edges])

    def _steps(self, scope: Scope, edges: Iterable[Edge]) -> list[Step]:
        groups: dict[tuple[int, int, bool], dict[frozenset[int], list[Crossings]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for edge in edges:
            groups[edge.position, edge.target, edge.may_tie][edge.rounds & frozenset(self.parts)].append(edge.crossings)
        found: list[Step] = []
        # Inside AND several states bind one position: `(AND(A, B?))+` derives a b a as ab·a and as a·ba.
        self.ambiguous |= scope.number == 0 and len({position for position, _, _ in groups}) < len(groups)
        for (position, target, may_tie), by_rounds in groups.items():
            bundles = [(rounds, bundle) for rounds, ways in by_rounds.items() for bundle in self._bundles(ways)]
            self.ambiguous |= len(bundles) > 1 and scope.number == 0
            for rounds, ways in bundles:
                step = Step(len(self.steps), scope.number, position, target, may_tie, rounds, ways)
                self.steps.append(step)
                found.append(step)
        return found

    def _bundles(self, ways: list[Crossings]) -> list[tuple[Crossings, ...]]:
        ways = [way for way in ways if not any(other < way for other in ways)]
        if all(self.immediate(crossing.scope) for way in ways for crossing in way):
            return [(frozenset(),)] if frozenset() in ways else [tuple(dict.fromkeys(ways))]
        return [(way,) for way in dict.fromkeys(ways)]

    def immediate(self, scope: int) -> bool:
        """Whether a NOT can be decided as soon as the events around it are bound."""
        return not self.spec.scopes[scope].waits

    def thresholds_of(self, way: Crossings) -> frozenset[int]:
        """The NOTs of a way that depend on nothing outside, equal ones once."""
        scopes = [self.spec.scopes[crossing.scope] for crossing in way]
        return frozenset(scope.first_alike for scope in scopes if not scope.outer)

    # -------------------------------------------------------------------------------------------- tables

    @cached_property
    def transitions(self) -> list[tuple[int, Step]]:
        """The steps of the pattern itself from one state to another, each with the state before it."""
        return [(state, step) for state, steps in enumerate(self.moves[0]) for step in steps]

    @cached_property
    def position_of(self) -> Array:
        return np.array([step.position for step in self.steps], np.int64)

    @cached_property
    def target_of(self) -> Array:
        return np.array([step.target for step in self.steps], np.int64)

    @cached_property
    def starts_round(self) -> dict[int, Array]:
        """By part, which steps begin a new round of it."""
        return {part: np.array([part in step.rounds for step in self.steps], np.bool_) for part in self.parts}

    @cached_property
    def inside(self) -> dict[int, Array]:
        """By part, which steps bind a position inside it."""
        places = self.spec.places
        return {p: np.array([p in places[s.position].parts for s in self.steps], np.bool_) for p in self.parts}

    def binds(self, scope: int, variable: str) -> Array:
        """Which steps bind an event to the variable, as seen from a scope."""
        key = (scope, variable)
        if key not in self._binds:
            owner = self.spec.binds(scope, variable)
            places = self.spec.places
            self._binds[key] = np.array(
                [s.scope == owner and places[s.position].variable == variable for s in self.steps], np.bool_
            )
        return self._binds[key]

    @cached_property
    def _binds(self) -> dict[tuple[int, str], Array]:
        return {}

    def beside(self, scope: int) -> dict[int, Array]:
        """For each AND around a NOT, the steps of its other operands: neither before nor after it in the same round."""
        places = self.spec.places
        return {
            part: np.array([dict(places[s.position].branch).get(part, mine) != mine for s in self.steps], np.bool_)
            for part, mine in self.spec.scopes[scope].branch
        }
