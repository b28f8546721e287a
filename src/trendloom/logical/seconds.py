"""Differences of times in a preference are numbers of seconds, whatever the stream's time counts.

A difference of timestamps is a duration, in microseconds. A difference of whole numbers of an integer time column is
told by its operands: both are times of the stream.
"""

from __future__ import annotations

from fractions import Fraction

from trendloom.expr import nodes
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import MICROSECONDS, TimeAxis

SECOND = MICROSECONDS["s"]


def in_seconds(expr: nodes.Expr) -> nodes.Expr:
    """A number: a duration as its seconds, anything else as it is."""
    if expr.kind is not Kind.DURATION:
        return expr
    return nodes.Arithmetic("/", expr, nodes.Constant(SECOND, Kind.DURATION), Kind.FLOAT)


def ticks_in_seconds(expr: nodes.Expr, axis: TimeAxis) -> nodes.Expr:
    """A difference of two integer times; where a tick is a second or longer, it stays a whole number."""
    in_tick = axis.tick / SECOND
    if in_tick == 1:
        return expr
    if in_tick.denominator == 1:
        return nodes.Arithmetic("*", expr, nodes.Constant(int(in_tick), Kind.INT), Kind.INT)
    return nodes.Arithmetic("/", expr, nodes.Constant(int(1 / in_tick), Kind.INT), Kind.FLOAT)


def is_integer_time(expr: nodes.Expr, schema: Schema) -> bool:
    """Whether an expression is a time of a stream whose times are whole numbers."""
    if schema.axis.timestamp or not isinstance(expr, nodes.Attribute | nodes.Aggregate):
        return False
    return expr.column == schema.time and getattr(expr, "function", "min") in ("min", "max")


def seconds_written(amount: Fraction, unit: str) -> nodes.Constant:
    """A written duration as its seconds."""
    seconds = amount * MICROSECONDS[unit] / SECOND
    if seconds.denominator == 1:
        return nodes.Constant(int(seconds), Kind.INT)
    return nodes.Constant(float(seconds), Kind.FLOAT)
