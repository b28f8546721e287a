"""A planning request and the two answers to it: a choice of kernel, or a refusal.

Algorithms are independent: each decides by the request alone, so any subset of them in any order gives right plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation, Plan
from trendloom.logical.statistics import UNKNOWN, Origin, Statistics
from trendloom.model.amounts import NO_LIMITS, Limits
from trendloom.model.selection import Trends


class OutputKind(Enum):
    """What a plan returns, as far as the choice of an algorithm depends on it."""

    MATCHES = "matches"
    RANKED = "ranked matches"
    COMPLETE = "complete trends"
    COLLAPSED = "collapsed trends"
    AGGREGATES = "aggregates"


LISTED = frozenset(OutputKind) - {OutputKind.AGGREGATES}
"""Outputs that list matches: all but aggregates."""


@dataclass(frozen=True)
class PlanningRequest:
    """An optimized plan, its pattern as tables, limits, and statistics, which decide estimates alone."""

    plan: Plan
    pattern_spec: PatternSpec
    limits: Limits = NO_LIMITS
    statistics: Statistics = UNKNOWN

    @property
    def aggregates(self) -> bool:
        return isinstance(self.plan.output, Aggregation)

    @property
    def output(self) -> OutputKind:
        """What the plan returns."""
        if self.aggregates:
            return OutputKind.AGGREGATES
        if self.plan.ranking is not None:
            return OutputKind.RANKED
        match self.plan.output:
            case Trends.COMPLETE:
                return OutputKind.COMPLETE
            case Trends.COLLAPSED:
                return OutputKind.COLLAPSED
        return OutputKind.MATCHES


@dataclass(frozen=True)
class Estimate:
    """Figures of a run by statistics: events `read`, `events` that the kernel looks at, `results`, `bytes` of columns.

    `at_most`: there may be fewer results. `further`: what the kernel builds, by the names that it gives to it. None, or
    no name: unknown.
    """

    origin: Origin
    read: float | None = None
    events: float | None = None
    results: float | None = None
    at_most: bool = False
    bytes: float | None = None
    further: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """A kernel that is right for a plan, and its description for EXPLAIN: `result` is how results become rows.

    `structures` are shown below the cost, `notes` after it, `obstacles` below the result. `builds`: the kernel builds a
    structure of the events before it returns results, which EXPLAIN shows where there are events (`Kernel.describe`).
    `lists`: matches are listed to select among them; the planner adds what stands in the way of other algorithms.
    `estimate`: the cost in figures, if statistics are known.
    """

    kernel: Kernel[Any, Any]
    algorithm: str
    why: str
    cost: str
    result: str
    structures: tuple[Branch, ...] = ()
    notes: tuple[Branch, ...] = ()
    obstacles: tuple[Branch, ...] = ()
    builds: bool = False
    lists: bool = False
    estimate: Estimate | None = None


class RefusalCode(Enum):
    """The part of a plan that an algorithm does not support."""

    TIME = "time"
    OUTPUT = "output"
    SEMANTICS = "semantics"
    PATTERN = "pattern"
    NEGATION = "negation"
    PREDICATE = "predicate"
    HIDING = "hiding"
    WINDOW = "window"
    PREFERENCE = "preference"
    UNNEEDED = "unneeded"


@dataclass(frozen=True)
class Refusal:
    """Why an algorithm does not take a plan: a code for programs, and a clause for EXPLAIN and errors."""

    code: RefusalCode
    text: str


Decide = Callable[[PlanningRequest], Choice | Refusal]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm by name; `decide` returns its choice for a plan that returns one of the `outputs`, or its refusal.

    `imprecise`: whether it takes events whose times are intervals, and no others.
    """

    name: str
    decide: Decide
    outputs: frozenset[OutputKind] = frozenset(OutputKind)
    imprecise: bool = False

    def consider(self, request: PlanningRequest) -> Choice | Refusal:
        """The choice of this algorithm for a plan, or its refusal."""
        if request.plan.schema.imprecise != self.imprecise:
            return Refusal(RefusalCode.TIME, f"it is for {'imprecise' if self.imprecise else 'exact'} times")
        if request.output not in self.outputs:
            return Refusal(RefusalCode.OUTPUT, f"it does not compute {request.output.value}")
        return self.decide(request)
