"""The measures that kernels keep for the aggregates of a query, and whether stretches of events can be summed up."""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Expr, Total, walk
from trendloom.kernels.contract.aggregates import AggregationSpec, Measure
from trendloom.logical.plan import Aggregation, Plan
from trendloom.model.schema import Kind

NEEDED = {"count": ("count",), "sum": ("sum", "count"), "avg": ("sum", "count"), "min": ("min",), "max": ("max",),
          "probability": ("probability",)}  # fmt: skip
NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT, Kind.BOOL)


def measures_of(plan: Plan) -> tuple[Measure, ...]:
    """What has to be kept to compute every aggregate of a query."""
    found: dict[str, Measure] = {}
    for total in totals_of(plan):
        for function in NEEDED[total.function]:
            measure = measure_of(total, function)
            found[measure.name] = measure
    return tuple(replace(measure, fractional=_fractional(plan, measure)) for measure in found.values())


def _fractional(plan: Plan, measure: Measure) -> bool:
    if measure.function != "sum" or measure.column is None:
        return False
    return plan.schema.kind(measure.column) is Kind.FLOAT


def totals_of(plan: Plan) -> list[Total]:
    assert isinstance(plan.output, Aggregation)
    exprs: list[Expr] = [value.expr for value in plan.output.values]
    exprs += [plan.output.having] if plan.output.having is not None else []
    return [node for expr in exprs for node in walk(expr) if isinstance(node, Total)]


def measure_of(total: Total, function: str) -> Measure:
    """The measure that an aggregate reads for one of the functions it needs."""
    if total.function == "probability":
        return Measure(total.function, total.function, None, None, total.kind)
    if total.positions is None:
        return Measure("matches", "matches", None, None, total.kind)
    counted = total.kind if total.function == "count" else Kind.INT
    kind = counted if function == "count" else Kind.FLOAT if total.function == "avg" else total.kind
    where = "_".join(map(str, total.positions))
    return Measure(f"{function}_{where}_{total.column or ''}", function, total.positions, total.column, kind)


def summary_obstacle(plan: Plan, spec: AggregationSpec) -> str | None:
    """Why stretches of events cannot be summed up as matrices, so that events are kept and moved; None: they can."""
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
