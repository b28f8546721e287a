"""What the candidates of `candidates` look at, and what they answer: a kernel and why, or what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation, Plan
from trendloom.logical.statistics import UNKNOWN, Origin, Statistics
from trendloom.planner.limits import NO_LIMITS, Limits


@dataclass(frozen=True)
class PlanningRequest:
    """An optimized plan, its pattern as tables, and how it is to run; `refused`: what stood in the way so far.

    `statistics`: what is known of the stream. They decide what is estimated, and never what is answered.
    """

    plan: Plan
    pattern_spec: PatternSpec
    limits: Limits = NO_LIMITS
    refused: Mapping[str, str] = field(default_factory=dict)
    statistics: Statistics = UNKNOWN

    @property
    def aggregates(self) -> bool:
        return isinstance(self.plan.output, Aggregation)


@dataclass(frozen=True)
class Estimate:
    """What a run should come to: events `read`, `events` that the kernel looks at, `results`, `bytes` of columns.

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
    """An algorithm that is right for a plan, and what EXPLAIN says of it: `result` is how rows come of its results.

    `structures` are shown below the cost, `notes` after it. `builds`: the kernel builds something of the events before
    it gives out results, which EXPLAIN shows where there are events (`Kernel.describe`). `estimate`: the cost in
    figures, where statistics tell.
    """

    kernel: Kernel[Any, Any]
    algorithm: str
    why: str
    cost: str
    result: str
    structures: tuple[Branch, ...] = ()
    notes: tuple[Branch, ...] = ()
    builds: bool = False
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Candidate:
    """An algorithm by name; `consider` gives what it makes of a plan, or the obstacle in words."""

    name: str
    consider: Callable[[PlanningRequest], Choice | str]
