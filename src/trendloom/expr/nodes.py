"""Bound expressions: every name resolved, every node typed, checked when built by the binder.

Two worlds use the same nodes: conditions and values of *one match* (leaves `Attribute`, `Aggregate`, `Extent`, `Fold`),
and results *over all matches* (leaves `Group`, `Total`). Columns of results are computed from either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, get_args

from trendloom.model.schema import Kind


class Which(Enum):
    """Which event of a variable an attribute is read from."""

    EACH = "each"  # b.x: every event bound to b; the left of a NEXT pair where the conjunct has one
    NEXT = "next"  # NEXT(b).x: the event after it in the match
    CURRENT = "i"  # b[i].x: every event of b, counted by i
    PREVIOUS = "i-1"  # b[i-1].x
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True)
class Constant:
    """A literal. Times and durations are ticks; a number with a point is a double, beside decimals a decimal."""

    value: int | float | Decimal | str | bool | None
    kind: Kind


@dataclass(frozen=True)
class Attribute:
    """`variable[which].column` in one match. `column` is a name of the input's columns."""

    variable: str
    which: Which
    column: str
    kind: Kind


@dataclass(frozen=True)
class Aggregate:
    """`avg(b[].x)`, `count(b[])`, `max(b[..i-1].x)` inside one match. `column` None: the events are counted."""

    function: Literal["count", "min", "max", "sum", "avg"]
    variable: str
    column: str | None
    before: bool  # b[..i-1]: the events of b before the current one
    kind: Kind


@dataclass(frozen=True)
class Extent:
    """`duration(b)`: last minus first time of b's events."""

    variable: str
    kind: Kind = Kind.DURATION


@dataclass(frozen=True)
class Group:
    """A grouping or partition attribute in RETURN or HAVING."""

    column: str
    kind: Kind


@dataclass(frozen=True)
class Total:
    """An aggregate over all matches of a group and window; of imprecise time, its expected value.

    `positions` None is COUNT(*), the matches, or PROBABILITY(*), that there is one. Else the occurrences of the events
    bound to any of `positions` (positions of the pattern, see `pattern.algebra`); `column` None counts them.
    """

    function: Literal["count", "min", "max", "sum", "avg", "probability"]
    positions: tuple[int, ...] | None
    column: str | None
    kind: Kind
    text: str


@dataclass(frozen=True)
class Negate:
    operand: Expr
    kind: Kind


@dataclass(frozen=True)
class Arithmetic:
    operator: Literal["+", "-", "*", "/", "%"]
    left: Expr
    right: Expr
    kind: Kind


@dataclass(frozen=True)
class Comparison:
    operator: Literal["=", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr
    kind: Kind = Kind.BOOL


MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`a < b` is `b > a`."""


@dataclass(frozen=True)
class Junction:
    operator: Literal["and", "or"]
    operands: tuple[Expr, ...]
    kind: Kind = Kind.BOOL


@dataclass(frozen=True)
class Inverse:
    """NOT of a condition."""

    operand: Expr
    kind: Kind = Kind.BOOL


@dataclass(frozen=True)
class NullTest:
    operand: Expr
    negated: bool
    kind: Kind = Kind.BOOL


@dataclass(frozen=True)
class Wildcard:
    """LIKE: `%` is any text, `_` any one character, no escapes."""

    operand: Expr
    pattern: str
    kind: Kind = Kind.BOOL


@dataclass(frozen=True)
class Function:
    """abs sqrt ln exp floor ceil round lower upper length coalesce, and least/greatest (min/max of several values)."""

    name: str
    arguments: tuple[Expr, ...]
    kind: Kind


@dataclass(frozen=True)
class Part:
    """What the events of one variable give to a fold.

    `expr` is a value of one event: its leaves are attributes of `variable` (`Which.EACH`) and constants. `counts`:
    a count, which is 0 where the variable is not bound, and never NULL.
    """

    variable: str
    expr: Expr
    counts: bool = False


@dataclass(frozen=True)
class Fold:
    """A score that best paths can find: events of a match in their order, each giving a value, joined by `operator`.

    `parts` has one for each variable, in the order of the pattern; other events give nothing. Values are combined from
    left to right, the first one as it is, in the kind of the fold: doubles as doubles, integers and decimals exactly.
    NULLs are skipped, but a part without any known value makes the fold NULL, unless it counts; so does a result that
    is not a number, or is infinite although every value was finite. Where all parts count and bind nothing, it is 0.
    Times are ticks here.
    """

    operator: Literal["+", "*", "least", "greatest"]
    parts: tuple[Part, ...]
    kind: Kind


Expr = (
    Constant | Attribute | Aggregate | Extent | Fold | Group | Total | Negate | Arithmetic | Comparison | Junction
    | Inverse | NullTest | Wildcard | Function
)  # fmt: skip


FIELDS = {node: tuple(field.name for field in fields(node)) for node in get_args(Expr)}
"""The fields of each kind of node, found once: plans are walked thousands of times."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node; a fold is a leaf."""
    found: list[Expr] = []
    for name in FIELDS[type(expr)]:
        value = getattr(expr, name)
        if type(value) in FIELDS:
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(part for part in value if type(part) in FIELDS)
    return tuple(found)


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and everything below it."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def variables(expr: Expr) -> frozenset[str]:
    """Every variable of the pattern in an expression."""
    found = {node.variable for node in walk(expr) if isinstance(node, Attribute | Aggregate | Extent)}
    return frozenset(found | {part.variable for part in parts_of_folds(expr)})


def columns(expr: Expr) -> frozenset[str]:
    """Every input column that an expression reads (the time column of `duration` is not listed)."""
    found = {
        node.column
        for node in walk(expr)
        if isinstance(node, Attribute | Aggregate | Total | Group) and node.column is not None
    }
    return frozenset(found.union(*(columns(part.expr) for part in parts_of_folds(expr))))


def parts_of_folds(expr: Expr) -> Iterator[Part]:
    """The parts of all folds in an expression."""
    for node in walk(expr):
        if isinstance(node, Fold):
            yield from node.parts


# Expressions with something else in the place of some of their leaves.


def of_any_event(expr: Expr) -> Expr:
    """A condition on one event, whatever its variable is called."""
    return with_attributes(expr, lambda one: replace(one, variable="event"))


def with_attributes(expr: Expr, changed: Callable[[Attribute], Expr]) -> Expr:
    """The expression with something else in the place of each attribute."""
    return _with(expr, lambda one: changed(one) if isinstance(one, Attribute) else None)


def renamed(expr: Expr, name_of: Callable[[str], str]) -> Expr:
    """The same expression with other names for its variables."""

    def other(one: Expr) -> Expr | None:
        if isinstance(one, Attribute | Aggregate | Extent):
            return replace(one, variable=name_of(one.variable))
        if isinstance(one, Fold):
            parts = (replace(p, variable=name_of(p.variable), expr=renamed(p.expr, name_of)) for p in one.parts)
            return replace(one, parts=tuple(parts))
        return None

    return _with(expr, other)


def with_totals(expr: Expr, changed: Callable[[Total], Expr]) -> Expr:
    """The expression with something else in the place of each aggregate over matches."""
    return _with(expr, lambda one: changed(one) if isinstance(one, Total) else None)


def _with(expr: Expr, changed: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with something else in the place of each node for which `changed` is not None."""
    other = changed(expr)
    return with_children(expr, lambda child: _with(child, changed)) if other is None else other


def with_children(expr: Expr, changed: Callable[[Expr], Expr]) -> Expr:
    """The node with something else in the place of each direct operand; those of a fold are the values of its parts."""
    if isinstance(expr, Fold):
        return replace(expr, parts=tuple(replace(part, expr=changed(part.expr)) for part in expr.parts))
    found: dict[str, Any] = {}
    for name in FIELDS[type(expr)]:
        value = getattr(expr, name)
        if type(value) in FIELDS:
            found[name] = changed(value)
        elif isinstance(value, tuple):
            found[name] = tuple(changed(one) if type(one) in FIELDS else one for one in value)
    return replace(expr, **found) if found else expr
