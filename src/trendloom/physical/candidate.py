"""What the candidates of `candidates` look at, and what they answer: a kernel and why, or what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trendloom.kernels.contract import Kernel
from trendloom.kernels.ground.spec import Detection
from trendloom.physical.limits import NO_LIMITS, Limits
from trendloom.plan.display import Branch
from trendloom.plan.logical import Aggregation, Plan


@dataclass(frozen=True)
class Wanted:
    """An optimized plan, its pattern as tables, and how it is to run; `refused`: what stood in the way so far."""

    plan: Plan
    detection: Detection
    limits: Limits = NO_LIMITS
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def aggregates(self) -> bool:
        return isinstance(self.plan.output, Aggregation)


@dataclass(frozen=True)
class Choice:
    """An algorithm that is right for a plan, and what EXPLAIN says of it: `result` is how rows come of its results.

    `structures` are shown below the cost, `notes` after it. `builds`: the kernel builds something of the events before
    it gives out results, which EXPLAIN shows where there are events (`Kernel.describe`).
    """

    kernel: Kernel[Any, Any]
    algorithm: str
    why: str
    cost: str
    result: str
    structures: tuple[Branch, ...] = ()
    notes: tuple[Branch, ...] = ()
    builds: bool = False


@dataclass(frozen=True)
class Candidate:
    """An algorithm by name; `consider` gives what it makes of a plan, or the obstacle in words."""

    name: str
    consider: Callable[[Wanted], Choice | str]
