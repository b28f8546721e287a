"""Bind expressions: resolve every variable and attribute, give every node its kind, refuse what makes no sense.

One `Typer` serves all places where expressions stand; its `ExpressionPlace` decides which forms are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum

from trendloom.errors import BindError, Span, did_you_mean, option
from trendloom.expr import nodes
from trendloom.frontend import tree
from trendloom.frontend.tql.foreign_syntax import hint_for
from trendloom.frontend.tql.keywords import PROBABILITY
from trendloom.frontend.tql.printer import write_expression
from trendloom.logical.bind.imprecise_time import bind_probability
from trendloom.logical.bind.patterns import Attached, Bound, error_of_component, error_of_result
from trendloom.logical.bind.types import (
    arithmetic_kind,
    article,
    check_comparable,
    common_kind,
    in_seconds,
    is_integer_time,
    seconds_written,
    ticks_in_seconds,
    time_constant,
)
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import TimeAxis

AGGREGATES = ("count", "min", "max", "sum", "avg")
NUMERIC_FUNCTIONS = {"abs": None, "sqrt": Kind.FLOAT, "ln": Kind.FLOAT, "exp": Kind.FLOAT, "floor": Kind.INT,
                     "ceil": Kind.INT, "round": Kind.INT}  # fmt: skip
STRING_FUNCTIONS = {"lower": Kind.STRING, "upper": Kind.STRING, "length": Kind.INT}
OF_SEVERAL = {"min": "least", "max": "greatest", "coalesce": "coalesce"}
FUNCTIONS = (*NUMERIC_FUNCTIONS, *STRING_FUNCTIONS, "coalesce", "duration", *AGGREGATES, PROBABILITY)


class ExpressionPlace(Enum):
    """Where an expression stands."""

    CONDITION = "WHERE"
    RETURN = "RETURN"
    HAVING = "HAVING"
    RANK = "RANK BY"


@dataclass(frozen=True)
class Typer:
    """Binds the expressions of one query at one place.

    `variables` are those that may be named here, `kleene` those that can bind several events, `groups` the
    attributes that may stand bare, `aliases` the names that stand for other expressions, `component` the one that the
    expression is attached to, if any. `exact`: numbers with a point are decimals, not doubles.
    """

    place: ExpressionPlace
    schema: Schema
    bound: Bound
    variables: frozenset[str]
    kleene: frozenset[str]
    groups: tuple[str, ...]
    aliases: Mapping[str, tree.Expression] = field(default_factory=dict)
    component: Attached | None = None
    exact: bool = False

    def bind(self, node: tree.Expression) -> nodes.Expr:
        match node:
            case tree.Literal():
                return _literal(node, exact=self.exact)
            case tree.DurationLiteral() if self.place is ExpressionPlace.RANK and not self.schema.axis.timestamp:
                return seconds_written(node.amount, node.unit)
            case tree.DurationLiteral():
                return nodes.Constant(bind_ticks(self.schema, node), self.duration_kind)
            case tree.Name():
                return self.name(node)
            case tree.Reference():
                return self.reference(node)
            case tree.Call():
                return self.call(node)
            case tree.Unary("not", operand):
                return nodes.Inverse(self.condition(operand))
            case tree.Unary():
                return self.negated(node)
            case tree.Binary():
                return self.binary(node)
            case tree.Logical():
                return nodes.Junction(node.operator, tuple(self.condition(part) for part in node.operands))
            case tree.In(operand, items):
                equal = tuple(self.bind(tree.Binary("=", operand, item, span=item.span)) for item in items)
                return nodes.Junction("or", equal) if len(equal) > 1 else equal[0]
            case tree.Between():
                low = tree.Binary(">=", node.operand, node.low, span=node.span)
                high = tree.Binary("<=", node.operand, node.high, span=node.span)
                return nodes.Junction("and", (self.bind(low), self.bind(high)))
            case tree.IsNull():
                return nodes.NullTest(self.bind(node.operand), node.negated)
            case tree.Like():
                return nodes.Wildcard(self.string(node.operand, "LIKE"), node.pattern)
            case tree.Star():
                raise BindError("'*' stands only in COUNT(*)", node.span)
            case tree.Equivalence():
                raise BindError(
                    "[...] must be a conjunct of its own in WHERE",
                    node.span,
                    hint="write WHERE [key] AND ...; it cannot stand inside OR, NOT or a comparison",
                )

    def condition(self, node: tree.Expression) -> nodes.Expr:
        """A node that must be a boolean."""
        expr = self.bind(node)
        if expr.kind not in (Kind.BOOL, Kind.NULL):
            raise BindError(
                f"a condition is expected here, not {article(expr.kind)}", node.span, hint="compare it with something"
            )
        return expr

    def preference(self, node: tree.Expression) -> nodes.Expr:
        """A node that must be a number; a duration is its seconds."""
        expr = in_seconds(self.bind(node))
        if not expr.kind.numeric:
            seconds = "a difference of times is a number of seconds: b.time - a.time"
            hint = seconds if expr.kind is Kind.TIME else "name an attribute that holds numbers, or count(b[])"
            raise BindError(f"a preference is a number, not {article(expr.kind)}", node.span, hint=hint)
        return expr

    # ------------------------------------------------------------------------------------------ leaves

    def name(self, node: tree.Name) -> nodes.Expr:
        kind = self.schema.kind(node.name)
        if node.name in self.groups and kind is not None:
            return nodes.Group(node.name, kind)
        if node.name in self.aliases:
            return replace(self, aliases={}).bind(self.aliases[node.name])
        if node.name.lower() in AGGREGATES and kind is None:
            function = node.name.upper()
            hint = f"write {function}({'*' if function == 'COUNT' else self.example('x')})"
            raise BindError(f"'{node.name}' is a function, and nothing stands behind it", node.span, hint=hint)
        if self.place in (ExpressionPlace.RETURN, ExpressionPlace.HAVING) and kind is not None:
            raise BindError(
                f"'{node.name}' is neither a grouping nor a partition attribute",
                node.span,
                hint=f"add GROUP BY {node.name}, or say of which variable: {self.example(node.name)}",
            )
        if node.name in self.variables:
            raise _not_a_value(node.name, node.span)
        near = did_you_mean(node.name, self.groups or self.schema.names)
        raise BindError(
            f"'{node.name}' does not say of which variable it is",
            node.span,
            hint=near if kind is None else f"write {self.example(node.name)}",
        )

    def example(self, attribute: str) -> str:
        return f"{next(iter(sorted(self.variables)), 'a')}.{attribute}"

    def reference(self, node: tree.Reference) -> nodes.Expr:
        self.check_variable(node)
        if node.attribute is None:
            raise _not_a_value(node.variable, node.span)
        column, kind = self.attribute(node, node.attribute)
        if node.index in (tree.Index.ALL, tree.Index.BEFORE):
            raise BindError(
                f"'{write_expression(node)}' stands for many events",
                node.span,
                hint="put it into count, min, max, sum or avg",
            )
        self.check_index(node)
        return nodes.Attribute(node.variable, nodes.Which[node.index.name], column, kind)

    def check_variable(self, node: tree.Reference) -> None:
        name = node.variable
        if name in self.variables:
            return
        if self.component is not None:
            raise error_of_component(self.bound, self.component, name, node.span)
        raise error_of_result(self.bound, self.place.value, name, node.span, self.variables)

    def attribute(self, node: tree.Reference, name: str) -> tuple[str, Kind]:
        """The input column of an attribute, and its kind; `time` is always the time column."""
        if name == "time":
            return self.schema.time, Kind.TIME if self.schema.axis.timestamp else Kind.INT
        kind = self.schema.kind(name)
        if kind is None:
            where = node.attribute_span or node.span
            owner = self.bound.type_of(node.variable)
            raise BindError(f"{owner} has no attribute '{name}'", where, hint=did_you_mean(name, self.schema.names))
        return name, kind

    def check_index(self, node: tree.Reference) -> None:
        if self.place is ExpressionPlace.CONDITION:
            return
        if node.index in (tree.Index.NEXT, tree.Index.CURRENT, tree.Index.PREVIOUS):
            raise BindError(f"'{write_expression(node)}' stands only in conditions", node.span)
        if node.index is tree.Index.EACH and node.variable in self.kleene:
            name = node.variable
            raise BindError(
                f"'{node.variable}' can bind several events of a match: say which",
                node.span,
                hint=f"use {name}[first], {name}[last], or an aggregate such as max({name}[].{node.attribute})",
            )

    # --------------------------------------------------------------------------------------- operators

    def negated(self, node: tree.Unary) -> nodes.Expr:
        operand = self.bind(node.operand)
        if not operand.kind.numeric and operand.kind is not Kind.DURATION:
            raise BindError(f"'-' does not go before {article(operand.kind)}", node.span)
        return nodes.Negate(operand, operand.kind)

    def binary(self, node: tree.Binary) -> nodes.Expr:
        left, right = self.operands(node.left, node.right)
        if node.operator in ("+", "-", "*", "/", "%"):
            if self.place is ExpressionPlace.RANK:
                return self.arithmetic_of_preference(node, left, right)
            kind = arithmetic_kind(node.operator, left.kind, right.kind, node.span)
            return nodes.Arithmetic(node.operator, left, right, kind)
        left, right = (
            time_constant(left, right, self.schema, node.left.span),
            time_constant(right, left, self.schema, node.right.span),
        )
        check_comparable(node.operator, left.kind, right.kind, node.span)
        return nodes.Comparison(node.operator, left, right)  # type: ignore[arg-type]

    def arithmetic_of_preference(self, node: tree.Binary, left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
        """Arithmetic in which a duration beside a number is its seconds, and so is a difference of integer times."""
        if left.kind.numeric or right.kind.numeric:
            left, right = in_seconds(left), in_seconds(right)
        kind = arithmetic_kind(node.operator, left.kind, right.kind, node.span)
        found = nodes.Arithmetic(node.operator, left, right, kind)  # type: ignore[arg-type]
        of_times = is_integer_time(left, self.schema) and is_integer_time(right, self.schema)
        return ticks_in_seconds(found, self.schema.axis) if node.operator == "-" and of_times else found

    def operands(self, left: tree.Expression, right: tree.Expression) -> tuple[nodes.Expr, nodes.Expr]:
        """Both sides. A duration beside a timestamp counts microseconds, whatever the stream's own time counts."""
        if isinstance(right, tree.DurationLiteral):
            other = self.bind(left)
            return other, self.duration(right, other.kind)
        if isinstance(left, tree.DurationLiteral):
            other = self.bind(right)
            return self.duration(left, other.kind), other
        one, other = self.numbers((left, right))
        return one, other

    def numbers(self, written: Sequence[tree.Expression]) -> tuple[nodes.Expr, ...]:
        """Operands that meet. Beside a decimal, what is written in figures is exact: 0.1 + 0.2 is 0.3."""
        bound = tuple(self.bind(node) for node in written)
        if self.place is ExpressionPlace.RANK and any(expr.kind.numeric for expr in bound):
            bound = tuple(map(in_seconds, bound))
        if self.exact or not any(expr.kind is Kind.DECIMAL for expr in bound):
            return bound
        return tuple(self.exactly(node, expr) for node, expr in zip(written, bound, strict=True))

    def exactly(self, node: tree.Expression, bound: nodes.Expr) -> nodes.Expr:
        """The operand as a decimal, if only its figures make a double of it."""
        again = replace(self, exact=True).bind(node) if bound.kind is Kind.FLOAT else bound
        return again if again.kind is Kind.DECIMAL else bound

    def duration(self, node: tree.DurationLiteral, beside: Kind) -> nodes.Expr:
        if beside not in (Kind.TIME, Kind.DURATION):
            return self.bind(node)
        microseconds = replace(self.schema, axis=TimeAxis.timestamps())
        return nodes.Constant(bind_ticks(microseconds, node), Kind.DURATION)

    def string(self, node: tree.Expression, what: str) -> nodes.Expr:
        expr = self.bind(node)
        if expr.kind not in (Kind.STRING, Kind.NULL):
            raise BindError(f"{what} takes a string, not {article(expr.kind)}", node.span)
        return expr

    # --------------------------------------------------------------------------------------- functions

    def call(self, node: tree.Call) -> nodes.Expr:
        if node.name == PROBABILITY:
            return bind_probability(node, self.schema, in_return=self.place is ExpressionPlace.RETURN)
        if node.name in AGGREGATES and len(node.arguments) == 1:
            return self.aggregate(node, node.arguments[0])
        if node.name in OF_SEVERAL and node.arguments:  # min and max of one argument are aggregates
            arguments = self.numbers(node.arguments)
            kind = common_kind(tuple(argument.kind for argument in arguments), node.name, node.span)
            return nodes.Function(OF_SEVERAL[node.name], arguments, kind)
        if node.name not in FUNCTIONS:
            raise BindError(f"unknown function '{node.name}'", node.span, hint=hint_for(node, FUNCTIONS))
        if node.name == "count" and not node.arguments:
            raise BindError("count of what?", node.span, hint="write COUNT(*)")
        most = 2 if node.name == "round" else 1
        if not 1 <= len(node.arguments) <= most:
            raise BindError(
                f"{node.name} takes {'1 or 2 arguments' if most == 2 else '1 argument'}, not {len(node.arguments)}",
                node.span,
            )
        if node.name == "duration":
            return self.extent(node)
        if node.name in STRING_FUNCTIONS:
            return nodes.Function(node.name, (self.string(node.arguments[0], node.name),), STRING_FUNCTIONS[node.name])
        return self.numeric_function(node)

    def numeric_function(self, node: tree.Call) -> nodes.Expr:
        arguments = tuple(self.bind(argument) for argument in node.arguments)
        if self.place is ExpressionPlace.RANK:
            arguments = tuple(map(in_seconds, arguments))
        first = arguments[0].kind
        if not first.numeric and not (first is Kind.DURATION and node.name == "abs"):
            raise BindError(f"{node.name} takes a number, not {article(first)}", node.span)
        if len(arguments) == 2:
            if not isinstance(arguments[1], nodes.Constant) or arguments[1].kind is not Kind.INT:
                raise BindError("the digits of round are a whole number", node.arguments[1].span)
            return nodes.Function("round", arguments, Kind.DECIMAL if first is Kind.DECIMAL else Kind.FLOAT)
        return nodes.Function(node.name, arguments, NUMERIC_FUNCTIONS[node.name] or first)

    def extent(self, node: tree.Call) -> nodes.Expr:
        argument = node.arguments[0]
        if not isinstance(argument, tree.Reference) or argument.attribute is not None:
            raise BindError("duration takes a variable, as in duration(b)", node.span)
        self.check_variable(argument)
        extent = nodes.Extent(argument.variable, self.duration_kind)
        if self.place is ExpressionPlace.RANK and not self.schema.axis.timestamp:
            return ticks_in_seconds(extent, self.schema.axis)
        return extent

    def aggregate(self, node: tree.Call, argument: tree.Expression) -> nodes.Expr:
        if isinstance(argument, tree.Star):
            if node.name != "count":
                raise BindError(f"{node.name}(*) means nothing", node.span, hint="only COUNT takes *")
            return self.total(node, None)
        if not isinstance(argument, tree.Reference):
            raise BindError(
                f"{node.name} takes the events of a variable",
                node.span,
                hint=f"write {node.name}(b[].x) or {node.name.upper()}(E.x)",
            )
        if argument.index is tree.Index.EACH:
            return self.total(node, argument)
        if argument.index not in (tree.Index.ALL, tree.Index.BEFORE):
            raise BindError(
                f"{node.name} takes many events, this is one", node.span, hint=f"write {argument.variable}[]"
            )
        self.check_variable(argument)
        before = argument.index is tree.Index.BEFORE
        if before and self.place is not ExpressionPlace.CONDITION:
            raise BindError("'[..i-1]' stands only in conditions", node.span)
        column, kind = self.aggregated(node, argument)
        return nodes.Aggregate(node.name, argument.variable, column, before, kind)  # type: ignore[arg-type]

    def aggregated(self, node: tree.Call, argument: tree.Reference) -> tuple[str | None, Kind]:
        """The column below an aggregate (None: the events themselves) and the aggregate's kind."""
        if argument.attribute is None:
            if node.name != "count":
                raise BindError(
                    f"{node.name} needs an attribute", node.span, hint=f"write {argument.variable}.x inside"
                )
            return None, Kind.INT
        column, kind = self.attribute(argument, argument.attribute)
        if node.name == "count":
            return column, Kind.INT
        if node.name in ("sum", "avg") and not kind.numeric:
            raise BindError(f"{node.name} takes numbers, not {article(kind)}", node.span)
        if kind in (Kind.BOOL, Kind.OTHER):
            raise BindError(f"{node.name} does not go over {article(kind)}", node.span)
        return column, Kind.FLOAT if node.name == "avg" else kind

    def total(self, node: tree.Call, argument: tree.Reference | None) -> nodes.Expr:
        """An aggregate over all matches: of a variable, or of every event of a type."""
        if self.place not in (ExpressionPlace.RETURN, ExpressionPlace.HAVING):
            of_match = tree.Reference(argument.variable, tree.Index.ALL, argument.attribute) if argument else None
            inside = f"{node.name}({write_expression(of_match) if of_match else 'b[]'})"
            raise BindError(
                f"'{write_expression(node)}' is an aggregate over all matches and stands only in RETURN and HAVING",
                node.span,
                hint=f"inside one match, write {inside}",
            )
        text = write_expression(node)
        if argument is None:
            return nodes.Total("count", None, None, self.total_kind(Kind.INT), text)
        seen = [atom for atom in self.bound.atoms_in(0) if atom.variable in self.variables]
        positions = [a.position for a in seen if a.variable == argument.variable]
        positions = positions or [a.position for a in seen if a.type == argument.variable]
        if not positions:
            self.check_variable(argument)
        column, kind = self.aggregated(node, argument)
        return nodes.Total(node.name, tuple(positions), column, self.total_kind(kind), text)  # type: ignore[arg-type]

    def total_kind(self, kind: Kind) -> Kind:
        """The kind of an aggregate over all matches: where time is imprecise, an expected value."""
        return Kind.FLOAT if self.schema.imprecise else kind

    # --------------------------------------------------------------------------------------- durations

    @property
    def duration_kind(self) -> Kind:
        return Kind.DURATION if self.schema.axis.timestamp else Kind.INT


def bind_ticks(schema: Schema, length: tree.Length | tree.DurationLiteral) -> int:
    """A duration in ticks of the stream's time, or an error where it is not a whole number of them."""
    amount, unit, span = length.amount, length.unit, length.span
    if unit is None and schema.axis.timestamp:
        raise BindError(
            "a plain number is not a duration where the time column holds timestamps",
            span,
            hint=f"write a unit: {amount} s",
        )
    ticks = schema.axis.ticks(amount, unit)
    if ticks is None:
        raise BindError(
            f"{float(amount):g} {unit or ''} is not a whole number of the stream's time unit".replace("  ", " "),
            span,
            hint=f"choose a longer duration, or a finer unit of the time column: {option('time_unit', 'ms')}",
        )
    return ticks


def _not_a_value(variable: str, span: Span | None) -> BindError:
    return BindError(f"'{variable}' is a variable, not a value", span, hint=f"name an attribute: {variable}.time")


def _literal(node: tree.Literal, *, exact: bool) -> nodes.Constant:
    kinds = {bool: Kind.BOOL, int: Kind.INT, Decimal: Kind.DECIMAL, str: Kind.STRING}
    if isinstance(node.value, Decimal) and not exact:
        return nodes.Constant(float(node.value), Kind.FLOAT)
    return nodes.Constant(node.value, kinds[type(node.value)])
