"""The physical plan: which kernel finds the matches, and what is made of them. Frozen and picklable.

Features whose algorithms are still to come are refused here, before anything runs, by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.errors import PlanError
from trendloom.kernels.detection.kernel import DetectionKernel
from trendloom.lang.tree import Trends
from trendloom.optimize import optimize
from trendloom.physical.detection import Algorithm, Choice, choose_detection
from trendloom.plan.logical import Aggregation, Plan


@dataclass(frozen=True)
class Physical:
    """An executable plan. `plan` is the optimized logical plan."""

    plan: Plan
    choice: Choice

    @property
    def kernel(self) -> DetectionKernel:
        follows = self.choice.algorithm is Algorithm.RUNS
        return DetectionKernel(self.choice.detection, self.choice.pairs if follows else None)

    @property
    def aggregates(self) -> bool:
        return isinstance(self.plan.output, Aggregation)


def plan_physically(plan: Plan) -> Physical:
    """Optimize a logical plan and choose its algorithms."""
    _refuse_missing_features(plan)
    optimized = optimize(plan)
    return Physical(optimized, choose_detection(optimized))


def _refuse_missing_features(plan: Plan) -> None:
    missing = [
        ("RANK BY", plan.ranking is not None, "RANK BY"),
        ("imprecise time", plan.schema.imprecise, "CONFIDENCE"),
        ("COLLAPSED TRENDS", plan.output is Trends.COLLAPSED, "RETURN"),
        ("EXISTS", bool(plan.hidden), "PATTERN"),
    ]
    for feature, wanted, clause in missing:
        if wanted:
            raise PlanError(
                f"{feature} cannot be run by this engine yet",
                plan.query.clause(clause),
                hint='engine="reference" (--engine reference) runs it on small streams',
                text=plan.query.text,
            )
