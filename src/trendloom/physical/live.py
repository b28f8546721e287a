"""Which kernel serves a query on a live stream, and which queries cannot be served."""

from __future__ import annotations

from typing import Any

from trendloom.errors import PlanError
from trendloom.kernels.aggregation.kernel import AggregationKernel
from trendloom.kernels.contract import Kernel
from trendloom.physical.plan import Physical
from trendloom.physical.spread import Path, obstacle


def live_kernel(physical: Physical, numeric: str) -> Kernel[Any, Any]:
    """The kernel that is stepped; a query whose results would never be certain is refused."""
    plan = physical.plan
    if plan.window.within is None:
        raise PlanError(
            "a live stream has no end, so a query without WITHIN would never be done",
            plan.query.clause("PATTERN"),
            hint="add WITHIN, e.g. WITHIN 10 minutes SLIDE 1 minute",
            text=plan.query.text,
        )
    if physical.one_step:
        summarised = obstacle(physical, Path.REDUCED) is None
        return AggregationKernel(physical.aggregation, numeric, summarised)
    return physical.kernel
