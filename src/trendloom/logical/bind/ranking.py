"""Bind RANK BY and the windows of operands: what is ranked, by which score, and which matches take part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import lcm
from typing import Literal

from trendloom.errors import BindError, Span
from trendloom.expr.nodes import (
    MIRRORED,
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Expr,
    Extent,
    Fold,
    Function,
    Group,
    Junction,
    Negate,
    Part,
    Total,
    Which,
    children,
    columns,
    walk,
    with_attributes,
    with_children,
)
from trendloom.frontend import tree
from trendloom.frontend.tql.printer import write_length
from trendloom.logical.bind.expressions import Typer, bind_ticks
from trendloom.logical.bind.patterns import Bound
from trendloom.logical.bind.types import arithmetic_kind, column_scale, common_kind, digits_after_point
from trendloom.logical.plan import RANK, Aggregation, Condition, OperandWindow, Output, Ranking
from trendloom.model.schema import Kind, Schema
from trendloom.model.selection import Trends
from trendloom.model.time import Window
from trendloom.pattern.algebra import Pattern, atoms
from trendloom.pattern.template import in_every_match

MONOTONE = ("sqrt", "exp", "ln", "floor", "ceil", "round")
"""Functions that do not exchange the order of two numbers."""

NEVER_NEGATIVE = ("abs", "sqrt", "exp")

Operator = Literal["+", "*", "least", "greatest"]


def bind_ranking(query: tree.Query, clause: tree.RankBy, typer: Typer, output: Output, known: Known) -> Ranking:
    """The bound RANK BY, or an error that shows where it goes wrong."""
    if isinstance(output, Aggregation) or output in (Trends.COMPLETE, Trends.COLLAPSED):
        raise BindError(
            "RANK BY ranks matches: it goes with TRENDS or values of a match",
            clause.span,
            hint="RETURN TRENDS, or values such as a.x and sum(b[].x)",
        )
    if RANK in typer.schema.names:
        raise BindError(
            "the events have a column named 'rank', and so have ranked matches",
            clause.span,
            hint="rename the column of the input",
        )
    merge = clause.preference if isinstance(clause.preference, tree.Merge) else None
    if merge is not None and not _joins_sequences(query.pattern):
        raise BindError(
            "MERGE merges the preferences of several sequences, and this pattern is one sequence",
            merge.span,
            hint="write one preference: RANK BY a.x + b.x; several sequences are joined by AND, OR or SEQ of SEQs",
        )
    preferences = tuple(normalised(typer.preference(node), known) for node in clause.preferences)
    function = merge.function if merge else None
    kind, scale = _score(preferences, function, typer.schema, clause.span)
    return Ranking(preferences, function, clause.descending, clause.limit, clause.overall, kind, scale)


def _joins_sequences(pattern: tree.Pattern) -> bool:
    """Whether a pattern is AND, OR or SEQ of sequences, not one sequence of events."""
    if isinstance(pattern, tree.OperandWithin | tree.Exists):
        return _joins_sequences(pattern.pattern)
    if isinstance(pattern, tree.And | tree.Or):
        return True
    operands = (tree.Seq, tree.And, tree.Or, tree.OperandWithin)
    return isinstance(pattern, tree.Seq) and any(isinstance(part, operands) for part in pattern.parts)


def _score(preferences: tuple[Expr, ...], merge: str | None, schema: Schema, span: Span | None) -> tuple[Kind, int]:
    """The kind of the score, and its digits after the point."""
    kind = common_kind(tuple(expr.kind for expr in preferences), "MERGE", span)
    if merge == "avg" or kind is Kind.NULL:
        return Kind.FLOAT, 0
    if kind is not Kind.DECIMAL:
        return kind, 0
    widest = max(preferences, key=lambda expr: digits_after_point(expr, schema))
    return kind, column_scale(widest, schema, "the score", span)


def bind_operand_windows(query: tree.Query, schema: Schema, bound: Bound, window: Window) -> tuple[OperandWindow, ...]:
    """The operands with a WITHIN of their own, in the order of the pattern."""
    found = []
    for operand in bound.operands:
        length, span = operand.written.within, operand.written.within.span
        if query.rank_by is None:
            raise BindError(
                "an operand has a WITHIN of its own only where matches are ranked",
                operand.written.span,
                hint="add RANK BY, or write one WITHIN clause for the whole pattern",
            )
        within = bind_ticks(schema, length)
        if window.within is not None and within > window.within:
            raise BindError(
                "the window of an operand is longer than that of the query",
                span,
                hint=f"at most {_clause(query)}, the WITHIN of the query",
            )
        found.append(OperandWindow(operand.positions, within, write_length(length)))
    return tuple(sorted(found, key=lambda one: one.positions))


def _clause(query: tree.Query) -> str:
    assert query.within is not None
    return write_length(query.within.within)


# -------------------------------------------------------------------------------------- preferences as folds
#
# `a.x + sum(b[].x) - 2 * c.x` is one sum over the events of a match: each gives a value that depends on its variable
# alone. The same holds of products of what is not negative, and of least and greatest values. Such a preference becomes
# an expression over one `Fold`; functions around the fold (`sqrt`, `+ 5`, `/ 2`) are monotone and stay around it. All
# other preferences (`a.x * b.x + c.x`, `avg(b[].x)`) are left as they are.
#
# Differences of times are folded in whole ticks and divided at the end: as doubles, times would lose digits.
# Cost: linear in the size of the expression, but for products of constants with long sums.


@dataclass(frozen=True)
class Known:
    """Properties of the variables that a preference may name.

    `order` is that of the pattern, `plural` can bind several events, `always` are bound in every match; `not_negative`
    are the (variable, column) that a condition keeps from being below 0. `time` is the time column.
    """

    order: Mapping[str, int]
    plural: frozenset[str]
    always: frozenset[str]
    not_negative: frozenset[tuple[str, str]]
    time: str


def known_of(pattern: Pattern, plural: frozenset[str], conditions: Iterable[Condition], time: str) -> Known:
    """The properties of variables, from the pattern and the conditions of a query."""
    order: dict[str, int] = {}
    for atom in atoms(pattern, negated=False):
        order.setdefault(atom.variable, atom.position)
    always = frozenset(name for name in order if in_every_match(pattern, name))
    floors = (pair for one in conditions if one.scope == 0 for pair in _not_negative(one.expr))
    return Known(order, plural, always, frozenset(floors), time)


def _not_negative(expr: Expr) -> Iterable[tuple[str, str]]:
    """The attributes that a condition keeps from being below 0."""
    if isinstance(expr, Junction) and expr.operator == "and":
        for operand in expr.operands:
            yield from _not_negative(operand)
    if not isinstance(expr, Comparison):
        return
    sides = ((expr.left, expr.operator, expr.right), (expr.right, MIRRORED[expr.operator], expr.left))
    for one, operator, other in sides:
        if operator in (">", ">=", "=") and isinstance(one, Attribute) and one.which is Which.EACH and _floor(other):
            yield one.variable, one.column


def _floor(expr: Expr) -> bool:
    return isinstance(expr, Constant) and not isinstance(expr.value, str | bool | None) and expr.value >= 0


def normalised(expr: Expr, known: Known) -> Expr:
    """The preference as an expression over a fold where there is such a form, else as it is."""
    if isinstance(expr, Arithmetic) and expr.operator == "/" and _is_constant(expr.right):
        return replace(expr, left=normalised(expr.left, known))
    total = _sum(expr, known)
    if total is not None and total.parts and not total.loses_digits(known):
        return total.expression(known)
    return _extreme(expr, known) or _product(expr, known) or _around(expr, known)


def _around(expr: Expr, known: Known) -> Expr:
    """What stands around a fold: constants that are added or multiplied, and monotone functions."""
    match expr:
        case Negate(operand):
            return replace(expr, operand=normalised(operand, known))
        case Arithmetic("+" | "-" | "*", left, right) if _is_constant(right):
            return replace(expr, left=normalised(left, known))
        case Arithmetic("+" | "-" | "*", left, right) if _is_constant(left):
            return replace(expr, right=normalised(right, known))
        case Function(name, (operand, *rest)) if name in MONOTONE:
            return replace(expr, arguments=(normalised(operand, known), *rest))
        case Function("least" | "greatest", arguments) if sum(not _is_constant(one) for one in arguments) == 1:
            found = tuple(one if _is_constant(one) else normalised(one, known) for one in arguments)
            return replace(expr, arguments=found)
    return expr


def _is_constant(expr: Expr) -> bool:
    return not any(isinstance(one, Attribute | Aggregate | Extent | Fold | Group | Total) for one in walk(expr))


# ---------------------------------------------------------------------------------------------------- one variable


def _single(expr: Expr, known: Known) -> Part | None:
    """A value of the one event of one variable."""
    leaves = [one for one in walk(expr) if isinstance(one, Attribute | Aggregate | Extent | Group | Total)]
    names = {one.variable for one in leaves if isinstance(one, Attribute)}
    if len(names) != 1 or not all(isinstance(one, Attribute) for one in leaves) or names & known.plural:
        return None
    given = not any(isinstance(one, Function) and one.name == "coalesce" for one in walk(expr))
    if not given and not names <= known.always:  # a variable that is not bound is NULL, which coalesce replaces
        return None
    return Part(names.pop(), _in_ticks(with_attributes(expr, lambda one: replace(one, which=Which.EACH))))


def _in_ticks(expr: Expr) -> Expr:
    """Times and durations as the whole numbers that they are."""
    found = with_children(expr, _in_ticks)
    return replace(found, kind=Kind.INT) if expr.kind in (Kind.TIME, Kind.DURATION) else found


def _fold(operator: Operator, parts: Iterable[Part], known: Known) -> Fold:
    found = tuple(sorted(parts, key=lambda part: known.order[part.variable]))
    kind = common_kind(tuple(part.expr.kind for part in found), operator, None)
    return Fold(operator, found, Kind.INT if kind is Kind.NULL else kind)


def _calculated(operator: Literal["+", "-", "*"], left: Expr, right: Expr) -> Expr:
    return Arithmetic(operator, left, right, arithmetic_kind(operator, left.kind, right.kind, None))


# ------------------------------------------------------------------------------------------------------------ sums


@dataclass(frozen=True)
class _Sum:
    """(parts + constant) / divisor."""

    parts: dict[str, Part]
    constant: Expr | None = None
    divisor: int = 1

    @property
    def whole(self) -> bool:
        """Whether all its terms are whole numbers."""
        terms = [part.expr for part in self.parts.values()] + ([] if self.constant is None else [self.constant])
        return all(term.kind is Kind.INT for term in terms)

    def loses_digits(self, known: Known) -> bool:
        """Whether times would be added up as doubles, one by one."""
        exprs = [part.expr for part in self.parts.values()]
        return any(one.kind is Kind.FLOAT for one in exprs) and any(known.time in columns(one) for one in exprs)

    def mapped(self, changed: Callable[[Expr], Expr]) -> _Sum:
        """The sum of other terms."""
        parts = {name: replace(part, expr=changed(part.expr)) for name, part in self.parts.items()}
        return replace(self, parts=parts, constant=None if self.constant is None else changed(self.constant))

    def negated(self) -> _Sum:
        return self.mapped(lambda term: Negate(term, term.kind))

    def times(self, factor: Expr) -> _Sum:
        return self.mapped(lambda term: _calculated("*", factor, term))

    def over(self, divisor: int) -> _Sum | None:
        """The same with another divisor, a multiple of its own."""
        if divisor == self.divisor:
            return self
        if not self.whole:
            return None
        return replace(self.times(Constant(divisor // self.divisor, Kind.INT)), divisor=divisor)

    def expression(self, known: Known) -> Expr:
        found: Expr = _fold("+", self.parts.values(), known)
        if self.constant is not None:
            found = _calculated("+", found, self.constant)
        if self.divisor == 1:
            return found
        return Arithmetic("/", found, Constant(self.divisor, Kind.INT), Kind.FLOAT)


def _sum(expr: Expr, known: Known) -> _Sum | None:
    """A weighted sum of parts; None where the expression is not one."""
    if _is_constant(expr):
        return _Sum({}, _in_ticks(expr))
    single = _single(expr, known)
    if single is not None:
        return _Sum({single.variable: single})
    match expr:
        case Aggregate("sum", variable, str(column), False, kind):
            return _Sum({variable: Part(variable, _in_ticks(Attribute(variable, Which.EACH, column, kind)))})
        case Aggregate("count", variable, None, False):
            return _Sum({variable: Part(variable, Constant(1, Kind.INT), counts=True)})
        case Negate(operand):
            found = _sum(operand, known)
            return None if found is None else found.negated()
        case Arithmetic("+" | "-", left, right):
            return _added(_sum(left, known), _sum(right, known), known, negated=expr.operator == "-")
        case Arithmetic("*", left, right) if _is_constant(left) or _is_constant(right):
            factor, term = (left, right) if _is_constant(left) else (right, left)
            found = _sum(term, known)
            return None if found is None else found.times(_in_ticks(factor))
        case Arithmetic("/", left, Constant(int(divisor))) if divisor > 0:
            found = _sum(left, known)
            return replace(found, divisor=found.divisor * divisor) if found is not None and found.whole else None
    return None


def _added(one: _Sum | None, other: _Sum | None, known: Known, *, negated: bool) -> _Sum | None:
    if one is None or other is None:
        return None
    divisor = lcm(one.divisor, other.divisor)
    one, other = one.over(divisor), (other.negated() if negated else other).over(divisor)
    if one is None or other is None:
        return None
    parts = dict(one.parts)
    for name, part in other.parts.items():
        joined = _joined("+", parts[name], part, known) if name in parts else part
        if joined is None:
            return None
        parts[name] = joined
    constants = [term for term in (one.constant, other.constant) if term is not None]
    constant = reduce(lambda left, right: _calculated("+", left, right), constants) if constants else None
    return _Sum(parts, constant, divisor)


def _joined(operator: Operator, one: Part, other: Part, known: Known) -> Part | None:
    """Two values of one event as one; of several events, each skips its own NULLs, so that only counts go together."""
    if one.counts != other.counts or (one.variable in known.plural and not one.counts):
        return None
    if operator == "least" or operator == "greatest":
        kind = common_kind((one.expr.kind, other.expr.kind), operator, None)
        return replace(one, expr=Function(operator, (one.expr, other.expr), kind))
    return replace(one, expr=_calculated(operator, one.expr, other.expr))


# ------------------------------------------------------------------------------------------ least, greatest, products


def _extreme(expr: Expr, known: Known) -> Expr | None:
    """`min(a.x, b.x)`, `max(b[].x)`: a least or greatest value of parts; constants beside it stay beside it."""
    match expr:
        case Function("least" | "greatest" as operator):
            arguments = _arguments(expr, operator)
            constants = [one for one in arguments if _is_constant(one)]
            fold = _folded(operator, [one for one in arguments if not _is_constant(one)], known)
            return fold if fold is None or not constants else replace(expr, arguments=(fold, *constants))
        case Aggregate("min" | "max" as function, _, str(), False):
            return _folded("least" if function == "min" else "greatest", [expr], known)
    return None


def _arguments(expr: Expr, operator: str) -> Sequence[Expr]:
    """The arguments, those of the same function inside it too."""
    if not (isinstance(expr, Function) and expr.name == operator):
        return [expr]
    return [inner for one in children(expr) for inner in _arguments(one, operator)]


def _product(expr: Expr, known: Known) -> Fold | None:
    """A product of factors that are not negative."""
    if not (isinstance(expr, Arithmetic) and expr.operator == "*"):
        return None
    factors = list(_factors(expr, known))
    odd = [one for one in factors if factors.count(one) % 2]
    return _folded("*", factors, known) if all(_is_not_negative(one, known) for one in odd) else None


def _factors(expr: Expr, known: Known) -> Iterable[Expr]:
    """The factors of a product, each as much of it as is of one variable."""
    if isinstance(expr, Arithmetic) and expr.operator == "*" and _single(expr, known) is None:
        yield from _factors(expr.left, known)
        yield from _factors(expr.right, known)
    else:
        yield expr


def _is_not_negative(expr: Expr, known: Known) -> bool:
    match expr:
        case Constant():
            return _floor(expr)
        case Attribute(variable, _, column):
            return (variable, column) in known.not_negative
        case Function(name):
            return name in NEVER_NEGATIVE
        case Arithmetic("*", left, right) if left == right:
            return True
        case Arithmetic("+" | "*" | "/", left, right):
            return _is_not_negative(left, known) and _is_not_negative(right, known)
    return False


def _folded(operator: Operator, operands: Sequence[Expr], known: Known) -> Fold | None:
    parts: dict[str, Part] = {}
    for operand in operands:
        part = _part(operator, operand, known)
        if part is not None and part.variable in parts:
            part = _joined(operator, parts[part.variable], part, known)
        if part is None:
            return None
        parts[part.variable] = part
    return _fold(operator, parts.values(), known) if parts else None


def _part(operator: Operator, expr: Expr, known: Known) -> Part | None:
    """A value of one event, or the least or greatest of several where the preference has them."""
    wanted = {"least": "min", "greatest": "max"}.get(operator)
    match expr:
        case Aggregate(function, variable, str(column), False, kind) if function == wanted:
            return Part(variable, _in_ticks(Attribute(variable, Which.EACH, column, kind)))
    return _single(expr, known)
