"""Times written as text in a query, `a.time >= '2018-04-02'`: which moment is meant.

Text that names its offset is absolute. Other text is a local time of the zone that the caller names, else of the
column's that it is compared with, else of UTC (`Column.zone` says which); never of the machine or the session. Every
engine sees whole ticks only.
"""

from __future__ import annotations

import datetime

from trendloom.errors import BindError, Span
from trendloom.expr import nodes
from trendloom.model.schema import Kind, Schema
from trendloom.model.zone import zone_named

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def time_constant(expr: nodes.Expr, beside: nodes.Expr, schema: Schema, span: Span | None) -> nodes.Expr:
    """The expression; a string beside a time becomes the time it stands for."""
    if beside.kind is not Kind.TIME or not isinstance(expr, nodes.Constant) or not isinstance(expr.value, str):
        return expr
    try:
        moment = datetime.datetime.fromisoformat(expr.value)
    except ValueError:
        raise BindError(f"'{expr.value}' is not a time", span, hint="write '2024-01-31 12:00:00'") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_named(_zone_beside(beside, schema)))
    return nodes.Constant((moment - EPOCH) // datetime.timedelta(microseconds=1), Kind.TIME)


def _zone_beside(expr: nodes.Expr, schema: Schema) -> str:
    """The zone of the first column of times in an expression."""
    read = (node for node in nodes.walk(expr) if node.kind is Kind.TIME)
    leaves = nodes.Attribute | nodes.Aggregate | nodes.Total | nodes.Group
    names = (node.column for node in read if isinstance(node, leaves) and node.column is not None)
    return schema.zone_of(next(names, schema.time))
