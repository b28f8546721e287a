"""The physical plan: the logical plan, its pattern as tables, the one kernel that runs it, and why. Picklable.

The algorithms are considered in order. What none of them takes is refused with the reasons of all of them, before
anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trendloom.errors import PlanError
from trendloom.expr.nodes import Expr, columns
from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation, Plan
from trendloom.logical.statistics import UNKNOWN, Statistics
from trendloom.model.amounts import NO_LIMITS, Limits
from trendloom.planner.algorithms import ALGORITHMS
from trendloom.planner.exists import with_single_witnesses
from trendloom.planner.pattern_tables import describe
from trendloom.planner.request import Algorithm, Choice, PlanningRequest, Refusal, RefusalCode

EventFilter = tuple[str, tuple[Expr, ...]]
"""Which events fit a position: their type, and conditions on the event alone."""


@dataclass(frozen=True)
class Physical:
    """An executable plan. `plan` is the optimized logical plan, `chosen` its algorithm with the reason for it."""

    plan: Plan
    pattern_spec: PatternSpec
    chosen: Choice
    limits: Limits = NO_LIMITS

    @property
    def kernel(self) -> Kernel[Any, Any]:
        return self.chosen.kernel

    @property
    def aggregates(self) -> bool:
        return isinstance(self.plan.output, Aggregation)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that kernels compare or add up."""
        rules = [rule.expr for scope in self.pattern_spec.scopes for rule in scope.rules]
        return tuple(sorted(self.kernel.reads.union(*(columns(expr) for expr in rules))))

    @property
    def filters(self) -> tuple[EventFilter, ...]:
        """The event filter of each position of the pattern."""
        return tuple(
            (place.type, tuple(expr for where, expr in self.plan.filters if where == position))
            for position, place in enumerate(self.pattern_spec.places)
        )

    @property
    def reads_all(self) -> bool:
        """Whether events that fit no position matter."""
        return self.plan.scan.types is None

    def within(self, memory: int) -> Physical:
        """The same plan, with so many bytes to use."""
        return replace(self, chosen=self._with(self.kernel.within(memory)), limits=replace(self.limits, memory=memory))

    def in_numbers(self, numeric: str) -> Physical:
        """The same plan, with `exact`, `float` or `log` numbers."""
        return replace(self, chosen=self._with(self.kernel.in_numbers(numeric)))

    def _with(self, kernel: Kernel[Any, Any]) -> Choice:
        return replace(self.chosen, kernel=kernel)


def choose(
    plan: Plan,
    limits: Limits = NO_LIMITS,
    algorithms: tuple[Algorithm, ...] | None = None,
    statistics: Statistics = UNKNOWN,
) -> Physical:
    """The choice of the first algorithm that takes a plan as it is; without `algorithms`, of all that there are."""
    request = PlanningRequest(plan, with_single_witnesses(describe(plan)), limits, statistics)
    refusals: list[tuple[Algorithm, Refusal]] = []
    for algorithm in ALGORITHMS if algorithms is None else algorithms:
        found = algorithm.consider(request)
        if isinstance(found, Choice):
            return Physical(plan, request.pattern_spec, _with_obstacles(found, request, refusals), limits)
        refusals.append((algorithm, found))
    listed = "; ".join(f"{one.name}: {why.text}" for one, why in refusals if why.code is not RefusalCode.TIME)
    raise PlanError(f"no algorithm runs this query ({listed})", plan.query.clause("PATTERN"), text=plan.query.text)


def _with_obstacles(choice: Choice, request: PlanningRequest, refusals: Sequence[tuple[Algorithm, Refusal]]) -> Choice:
    """The choice; where it lists matches, with the reasons of the algorithms for this kind of output alone."""
    if not choice.lists:
        return choice
    alone = frozenset({request.output})
    obstacles = tuple(Branch(f"not by {one.name}", why.text) for one, why in refusals if one.outputs == alone)
    return replace(choice, obstacles=obstacles)
