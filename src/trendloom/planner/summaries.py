"""Whether stretches of events can be summed up as matrices, so that the events themselves need not be kept or moved."""

from __future__ import annotations

from trendloom.kernels.measures import AggregationSpec
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind

NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT, Kind.BOOL)


def summary_obstacle(plan: Plan, spec: AggregationSpec) -> str | None:
    """Why not; None: they can."""
    if not spec.algebra or spec.pivot is not None:
        return "its predicates relate events, so stretches of events are not matrices"
    summed = [plan.schema.column(m.column) for m in spec.measures if m.function != "count" and m.column]
    if any(column is not None and column.wide for column in summed):
        return "its decimals may be beyond 64 bits"
    extremes = [
        m.column for m in spec.measures if m.function in ("min", "max") and m.column and m.column != plan.schema.time
    ]
    if any(plan.schema.kind(name) not in NUMBERS for name in extremes):
        return "MIN or MAX of values that are not numbers"
    return None
