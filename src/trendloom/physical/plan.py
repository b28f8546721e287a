"""The physical plan: which kernel finds the matches, and what is made of them. Frozen and picklable.

Features whose algorithms are still to come are refused here, before anything runs, by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.errors import PlanError, option
from trendloom.kernels.aggregation import spec as kernels
from trendloom.kernels.complete.spec import Complete
from trendloom.kernels.detection.kernel import DetectionKernel
from trendloom.lang.tree import Trends
from trendloom.optimize import optimize
from trendloom.physical.aggregation import Grained, choose_aggregation
from trendloom.physical.collapsed import Collapsing, choose_collapsing
from trendloom.physical.complete import complete_of
from trendloom.physical.detection import Algorithm, Choice, choose_detection
from trendloom.physical.limits import NO_LIMITS, Limits
from trendloom.plan.depth import too_deep
from trendloom.plan.logical import Aggregation, Plan


@dataclass(frozen=True)
class Physical:
    """An executable plan. `plan` is the optimized logical plan."""

    plan: Plan
    choice: Choice
    grained: Grained | None = None  # how aggregates are computed
    graph: Complete | None = None  # complete trends by the trend graph
    limits: Limits = NO_LIMITS
    collapsing: Collapsing | None = None  # how matches become collapsed trends

    @property
    def kernel(self) -> DetectionKernel:
        """The kernel that finds the matches."""
        return DetectionKernel(
            self.choice.detection,
            None if self.choice.algorithm is Algorithm.EXPANSION else self.choice.pairs,
            complete=self.plan.output is Trends.COMPLETE,
            whole_windows=self.aggregates,
            graph=self.graph,
            memory=self.limits.memory,
            collapsed=None if self.collapsing is None else self.collapsing.spec,
        )

    @property
    def aggregates(self) -> bool:
        return isinstance(self.plan.output, Aggregation)

    @property
    def one_step(self) -> bool:
        """Whether aggregates are computed without finding the matches."""
        return self.grained is not None and self.grained.aggregation is not None

    @property
    def aggregation(self) -> kernels.Aggregation:
        assert self.grained is not None
        assert self.grained.aggregation is not None
        return self.grained.aggregation


def plan_physically(plan: Plan, limits: Limits = NO_LIMITS) -> Physical:
    """Optimize a logical plan and choose its algorithms."""
    try:
        return _planned(plan, limits)
    except RecursionError:
        raise too_deep(plan.query) from None


def _planned(plan: Plan, limits: Limits) -> Physical:
    _refuse_missing_features(plan)
    optimized = optimize(plan)
    choice = choose_detection(optimized)
    if isinstance(optimized.output, Aggregation):
        return Physical(optimized, choice, choose_aggregation(optimized, choice.detection), limits=limits)
    graph = complete_of(choice.detection)[0] if optimized.output is Trends.COMPLETE else None
    collapsing = _collapsing(optimized, choice) if optimized.output is Trends.COLLAPSED else None
    return Physical(optimized, choice, graph=graph, limits=limits, collapsing=collapsing)


def _collapsing(plan: Plan, choice: Choice) -> Collapsing:
    if "matches" in plan.partition:
        raise PlanError(
            "the result would have two columns named 'matches'",
            plan.query.clause("RETURN"),
            hint="rename the attribute: collapsed trends have a column 'matches' of their own",
            text=plan.query.text,
        )
    return choose_collapsing(choice.detection)


def _refuse_missing_features(plan: Plan) -> None:
    missing = [
        ("RANK BY", plan.ranking is not None, "RANK BY"),
        ("imprecise time", plan.schema.imprecise, "CONFIDENCE"),
        ("EXISTS", bool(plan.hidden), "PATTERN"),
    ]
    for feature, wanted, clause in missing:
        if wanted:
            raise PlanError(
                f"{feature} cannot be run by this engine yet",
                plan.query.clause(clause),
                hint=f"{option('engine', 'reference')} runs it on small streams",
                text=plan.query.text,
            )
