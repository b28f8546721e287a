"""Which kinds of values go together: the type rules of conditions and values, with errors that name both sides."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction

from trendloom.errors import BindError, Span
from trendloom.expr import nodes
from trendloom.expr.decimals import MOST_DIGITS, scale_of
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import MICROSECONDS, TimeAxis, zone_named

NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT)
COMPARABLE = (Kind.STRING, Kind.TIME, Kind.DURATION)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SECOND = MICROSECONDS["s"]


def arithmetic_kind(operator: str, left: Kind, right: Kind, span: Span | None) -> Kind:
    """The kind of `left operator right`."""
    if left.numeric and right.numeric:
        if operator == "/":
            return Kind.FLOAT
        return _widest((left, right))
    pair = (left, operator, right)
    known = {
        (Kind.TIME, "-", Kind.TIME): Kind.DURATION,
        (Kind.TIME, "+", Kind.DURATION): Kind.TIME,
        (Kind.TIME, "-", Kind.DURATION): Kind.TIME,
        (Kind.DURATION, "+", Kind.TIME): Kind.TIME,
        (Kind.DURATION, "+", Kind.DURATION): Kind.DURATION,
        (Kind.DURATION, "-", Kind.DURATION): Kind.DURATION,
        (Kind.DURATION, "%", Kind.DURATION): Kind.DURATION,
        (Kind.DURATION, "/", Kind.DURATION): Kind.FLOAT,
        (Kind.DURATION, "*", Kind.INT): Kind.DURATION,
        (Kind.INT, "*", Kind.DURATION): Kind.DURATION,
    }
    if pair in known:
        return known[pair]
    if Kind.NULL in (left, right):
        return left if right is Kind.NULL else right
    hint = "write a duration with its unit, as in `5 s`" if Kind.DURATION in (left, right) else None
    raise BindError(f"'{operator}' does not go between {article(left)} and {article(right)}", span, hint=hint)


def _widest(kinds: Collection[Kind]) -> Kind:
    """The kind of numbers that holds them all: a decimal beside a double is a double."""
    return next((kind for kind in reversed(NUMBERS) if kind in kinds), Kind.INT)


def check_comparable(operator: str, left: Kind, right: Kind, span: Span | None) -> None:
    """An error unless the two sides can be compared."""
    if (left.numeric and right.numeric) or Kind.NULL in (left, right):
        return
    if left is right and left in COMPARABLE:
        return
    if left is right is Kind.BOOL and operator in ("=", "!="):
        return
    raise BindError(
        f"cannot compare {article(left)} with {article(right)} by '{operator}'",
        span,
        hint=_comparison_hint(left, right),
    )


def _comparison_hint(left: Kind, right: Kind) -> str:
    kinds = {left, right}
    if kinds == {Kind.BOOL}:
        return "booleans take = and != only"
    if Kind.DURATION in kinds:
        return "write a duration with its unit, as in `5 s`"
    if Kind.STRING in kinds and kinds & set(NUMBERS):
        return "strings stand in single quotes, numbers do not"
    if Kind.TIME in kinds:
        return "write a time as a string, as in '2024-01-31 12:00:00'"
    return "both sides must be of one kind"


def common_kind(kinds: tuple[Kind, ...], what: str, span: Span | None) -> Kind:
    """The kind that holds all the values of `coalesce`, `min` or `max` with several arguments."""
    found = {kind for kind in kinds if kind is not Kind.NULL}
    if not found:
        return Kind.NULL
    if len(found) == 1:
        return found.pop()
    if all(kind in NUMBERS for kind in found):
        return _widest(found)
    raise BindError(f"the arguments of {what} are of different kinds: {', '.join(sorted(map(str, found)))}", span)


def article(kind: Kind) -> str:
    """'an integer', 'a string', for messages."""
    return f"{'an' if str(kind)[0] in 'aeiou' else 'a'} {kind}"


# Times written as text in a query, `a.time >= '2018-04-02'`: which moment is meant.
#
# Text that names its offset is absolute. Other text is a local time of the zone that the caller names, else of the
# column's that it is compared with (`Column.zone`), else of UTC; never of the machine or the session. Every engine sees
# whole ticks only.


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


# How many digits stand after the point of an exact value: known before anything runs, so results have one type.
#
# As on paper: a sum, a difference or a remainder has as many as the longer operand, a product as many as both
# together; `round` leaves at most as many as its second argument. Evaluation of vectors (`expr.operators`) follows the
# same rules.


def digits_after_point(expr: nodes.Expr, schema: Schema) -> int:
    """The scale of an expression; 0 where it is not of decimals."""
    if expr.kind is not Kind.DECIMAL:
        return 0
    match expr:
        case nodes.Constant(value):
            return scale_of(value) if isinstance(value, Decimal) else 0
        case nodes.Attribute() | nodes.Aggregate() | nodes.Total() | nodes.Group():
            return schema.scale(expr.column)
        case nodes.Fold("*", parts):
            return sum(digits_after_point(part.expr, schema) for part in parts)
        case nodes.Fold(_, parts):
            return max(digits_after_point(part.expr, schema) for part in parts)
        case nodes.Arithmetic("*", left, right):
            return digits_after_point(left, schema) + digits_after_point(right, schema)
        case nodes.Function("round", (operand, nodes.Constant(places))):
            return min(digits_after_point(operand, schema), max(int(places or 0), 0))
        case _:
            return max(digits_after_point(operand, schema) for operand in nodes.children(expr))


def column_scale(expr: nodes.Expr, schema: Schema, what: str, span: Span | None) -> int:
    """The scale of a value of the result; refuses a decimal that no column can hold."""
    digits = digits_after_point(expr, schema)
    if digits > MOST_DIGITS:
        raise BindError(
            f"{what} would have {digits} digits after the point, and {MOST_DIGITS} are the most there are",
            span,
            hint="round what it is made of, as in round(a.x, 10)",
        )
    return digits


# Differences of times in a preference are numbers of seconds, whatever the stream's time counts.
#
# A difference of timestamps is a duration, in microseconds. A difference of integers is one of times if both operands
# are times of the stream.


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
