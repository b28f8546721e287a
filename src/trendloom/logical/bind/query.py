"""Bind a query to a schema: a syntax tree becomes a logical plan, or an error that shows where it is wrong.

Order matters for good messages: pattern, partition, conditions, window, output, ranking; then warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from trendloom.errors import BindError, QueryWarning, Span, did_you_mean
from trendloom.expr.nodes import Attribute, Expr, Group, Total, Which, walk
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend import tree
from trendloom.frontend.source import SourceText
from trendloom.frontend.tql.keywords import AGGREGATES, write_name
from trendloom.frontend.tql.printer import write_expression, write_length
from trendloom.logical.bind.expressions import ExpressionPlace, Typer, bind_ticks
from trendloom.logical.bind.imprecise_time import (
    ROW_COLUMNS,
    missing_imprecise_time,
    refuse_imprecise,
    refuse_probability,
    refuse_second_columns,
    refuse_under_next,
)
from trendloom.logical.bind.patterns import (
    Attached,
    Bound,
    bind_pattern,
    error_of_conjunct,
    usable_variables,
)
from trendloom.logical.bind.ranking import bind_operand_windows, bind_ranking, known_of
from trendloom.logical.bind.types import column_scale
from trendloom.logical.plan import RANK, Aggregation, Condition, Output, Plan, Projection, Ranking, Scan, Value
from trendloom.model.schema import RESERVED, Kind, Schema
from trendloom.model.selection import Semantics, Trends
from trendloom.model.time import Window
from trendloom.pattern.algebra import scopes_of
from trendloom.pattern.template import adjacent_variables, ambiguous_types, plural_variables

Leaf = TypeVar("Leaf", Attribute, Group, Total)

FoundWarnings = Iterator[tuple[str, Span | None, str | None]]
"""Message, place and hint of each warning."""


def conjuncts(node: tree.Expression | None) -> Iterator[tree.Expression]:
    """The operands of the top-level ANDs as written, brackets removed."""
    if isinstance(node, tree.Logical) and node.operator == "and":
        for operand in node.operands:
            yield from conjuncts(operand)
    elif node is not None:
        yield node


class QueryBinding:
    """One binding under way."""

    def __init__(self, query: tree.Query, schema: Schema) -> None:
        self.query, self.schema = query, schema
        self.bound: Bound = bind_pattern(query.pattern)
        assert self.bound.pattern is not None
        self.pattern = self.bound.pattern
        self.kleene = plural_variables(self.pattern)
        self.check_types()
        if schema.imprecise:
            refuse_imprecise(query, schema)
        self.check_semantics()
        self.partition = self.bind_partition()

    def plan(self) -> Plan:
        conditions = (*self.where(), *self.attached())
        output = self.output()
        window = self.window(output)
        plan = Plan(
            query=self.query,
            schema=self.schema,
            pattern=self.pattern,
            semantics=self.query.semantics,
            conditions=conditions,
            partition=self.partition,
            group_by=self.query.group_by,
            window=window,
            output=output,
            hidden=frozenset(self.bound.hidden),
            kleene=self.kleene,
            scan=Scan(self.schema.names),
            ranking=self.ranking(output, conditions),
            operand_windows=bind_operand_windows(self.query, self.schema, self.bound, window),
            confidence=self.confidence(),
        )
        if self.schema.imprecise:
            refuse_probability(self.query, self.bound, conditions, self.partition)
        return replace(plan, warnings=warnings_of(plan))

    # ------------------------------------------------------------------------------- pattern and streams

    def check_types(self) -> None:
        listed = self.schema.types
        for event in tree.nodes_of(self.query.pattern, tree.Event):
            if listed is not None and event.type not in listed:
                raise BindError(f"unknown event type '{event.type}'", event.span, hint=did_you_mean(event.type, listed))

    def check_semantics(self) -> None:
        if self.query.semantics is Semantics.ANY:
            return
        for conjunction in _positive_conjunctions(self.query.pattern):
            raise BindError(
                f"AND means nothing under {self.query.semantics.value}",
                conjunction.span,
                hint="AND needs skip-till-any-match",
            )
        if self.query.returns in (Trends.COMPLETE, Trends.COLLAPSED):
            raise BindError(
                f"RETURN {self.query.returns.value} needs skip-till-any-match",
                self.query.clause("RETURN"),
                hint="leave SEMANTICS out, or RETURN TRENDS",
            )

    def bind_partition(self) -> tuple[str, ...]:
        names: list[str] = []
        for node in conjuncts(self.query.where):
            if isinstance(node, tree.Equivalence):
                names.extend(self.key(name, node.span) for name in node.attributes if name not in names)
        names.extend(self.key(n, self.query.clause("GROUP BY")) for n in self.query.group_by if n not in names)
        if len(set(self.query.group_by)) < len(self.query.group_by):
            raise BindError("GROUP BY names an attribute twice", self.query.clause("GROUP BY"))
        return tuple(dict.fromkeys(names))

    def key(self, name: str, span: Span | None) -> str:
        kind = self.schema.kind(name)
        if kind is None:
            raise BindError(f"the events have no attribute '{name}'", span, hint=did_you_mean(name, self.schema.names))
        if kind is Kind.OTHER:
            raise BindError(f"'{name}' cannot partition the stream: its values cannot be compared", span)
        return name

    # ---------------------------------------------------------------------------------------- conditions

    def typer(self, place: ExpressionPlace) -> Typer:
        variables = frozenset(atom.variable for atom in self.bound.atoms)
        groups: tuple[str, ...] = ()
        if place is not ExpressionPlace.CONDITION:
            variables = self.bound.variables(0) - frozenset(self.bound.hidden)
            groups = self.query.group_by if place is ExpressionPlace.HAVING else self.partition
        return Typer(place, self.schema, self.bound, variables, self.kleene, groups)

    def where(self) -> Iterator[Condition]:
        typer = self.typer(ExpressionPlace.CONDITION)
        for node in conjuncts(self.query.where):
            if isinstance(node, tree.Equivalence):
                continue
            self.check_not_a_key(node)
            expr = typer.condition(node)
            check_shape(expr, node)
            used = shape_of(expr).variables
            scopes = [scope for scope in self.bound.scopes if self.restricts(used, scope)]
            if not scopes:
                raise error_of_conjunct(self.bound, used, node.span)
            self.check_decided(expr, scopes, node)
            text = write_expression(node)
            yield from (Condition(expr, scope, None, text) for scope in scopes)

    def check_not_a_key(self, node: tree.Expression) -> None:
        """`WHERE card` is written for `WHERE [card]`."""
        if isinstance(node, tree.Name) and self.schema.kind(node.name) is not None:
            name = write_name(node.name, reserved_allowed=True)
            raise BindError(
                f"'{node.name}' alone is not a condition",
                node.span,
                hint=f"the same {name} in all events of a match: [{name}]",
            )

    def restricts(self, used: frozenset[str], scope: int) -> bool:
        """A conjunct restricts each scope that binds one of its variables and sees them all."""
        if not used:
            return scope == 0
        return used <= self.bound.visible(scope) and bool(used & self.bound.variables(scope))

    def attached(self) -> Iterator[Condition]:
        for attached in self.bound.attached:
            usable = usable_variables(self.bound, attached)
            typer = replace(self.typer(ExpressionPlace.CONDITION), variables=usable, component=attached)
            for node in conjuncts(attached.predicate):
                expr = typer.condition(node)
                check_shape(expr, node)
                self.check_decided(expr, [attached.around.scope], node)
                part = self.innermost_part(attached, shape_of(expr).variables)
                yield Condition(expr, attached.around.scope, part, write_expression(node))

    def check_decided(self, expr: Expr, scopes: Sequence[int], node: tree.Expression) -> None:
        if self.schema.imprecise and self.query.semantics is Semantics.NEXT:
            refuse_under_next(self.bound, expr, scopes, node.span)

    def innermost_part(self, attached: Attached, used: frozenset[str]) -> int | None:
        """The innermost Kleene part around a component that holds all the variables of its predicate."""
        return next((part for part in reversed(attached.around.parts) if used <= self.bound.members[part]), None)

    # ------------------------------------------------------------------------------------ window, output

    def window(self, output: Output) -> Window:
        clause = self.query.within
        if clause is None:
            return Window()
        within = bind_ticks(self.schema, clause.within)
        if clause.slide is not None:
            return Window(within, bind_ticks(self.schema, clause.slide))
        return Window(within, within if isinstance(output, Aggregation) else None)

    def output(self) -> Output:
        returns = self.query.returns
        if isinstance(returns, Trends):
            self.refuse_for_matches()
            if returns is Trends.COLLAPSED and "matches" in self.partition:
                raise BindError(
                    "the result would have two columns named 'matches'",
                    self.query.clause("RETURN"),
                    hint="rename the attribute: collapsed trends have a column 'matches' of their own",
                )
            return returns
        typer = self.typer(ExpressionPlace.RETURN)
        bound = [(item, typer.bind(item.expression)) for item in returns]
        inside = [item for item, expr in bound if shape_of(expr).variables]
        if any(_leaves(expr, Total) for _, expr in bound):
            if inside:
                written = write_expression(inside[0].expression)
                raise BindError(
                    f"'{written}' is of one match and stands beside aggregates over all matches",
                    inside[0].span,
                    hint="use [] for aggregates inside a match, or an aggregate over matches here too",
                )
            return self.aggregation(bound)
        self.refuse_for_matches()
        return Projection(self.values(bound, (*self.partition, *(ROW_COLUMNS if self.schema.imprecise else ()))))

    def refuse_for_matches(self) -> None:
        """Refuse HAVING, and columns of the same name, where rows are matches."""
        if self.query.having is not None:
            raise BindError(
                "HAVING needs aggregates over matches in RETURN",
                self.query.clause("HAVING"),
                hint="to filter matches, use WHERE",
            )
        if self.schema.imprecise:
            refuse_second_columns(self.query, self.partition)

    def aggregation(self, bound: list[tuple[tree.Item, Expr]]) -> Aggregation:
        for item, expr in bound:
            for group in _leaves(expr, Group):
                if group.column not in self.query.group_by:
                    raise BindError(
                        f"'{group.column}' must be in GROUP BY to stand beside aggregates over matches",
                        item.span,
                        hint=f"add GROUP BY {group.column}",
                    )
        return Aggregation(self.values(bound, self.query.group_by), self.having())

    def having(self) -> Expr | None:
        """The condition on rows of aggregates; columns that RETURN names with AS may be named here."""
        clause, returns = self.query.having, self.query.returns
        if clause is None or isinstance(returns, Trends):
            return None
        aliases = {item.alias: item.expression for item in returns if item.alias is not None}
        typer = replace(self.typer(ExpressionPlace.HAVING), aliases=aliases)
        for node in conjuncts(clause):
            if shape_of(typer.condition(node)).variables:
                raise BindError(
                    f"'{write_expression(node)}' is of one match, and HAVING chooses rows of aggregates over matches",
                    node.span,
                    hint="conditions on a match stand in WHERE; here, use an aggregate over matches such as MAX(a.x)",
                )
        return typer.condition(clause)

    def values(self, bound: list[tuple[tree.Item, Expr]], given: tuple[str, ...]) -> tuple[Value, ...]:
        """The named values, without the attributes that every row carries anyway."""
        names, values = [*given, "window_start", "window_end"], []
        names += [RANK] if self.query.rank_by is not None else []
        for item, expr in bound:
            if isinstance(expr, Group) and item.alias is None:
                continue
            if expr.kind is Kind.OTHER and not isinstance(expr, Attribute):
                raise BindError("this value cannot be computed with", item.span)
            name = item.alias or write_expression(item.expression)
            if name in names or name in RESERVED:
                raise BindError(f"the result would have two columns named '{name}'", item.span, hint="name one with AS")
            names.append(name)
            values.append(Value(name, expr, expr.kind, column_scale(expr, self.schema, "this value", item.span)))
        return tuple(values)

    def ranking(self, output: Output, conditions: tuple[Condition, ...]) -> Ranking | None:
        if self.query.rank_by is None:
            return None
        known = known_of(self.pattern, self.kleene, conditions, self.schema.time)
        return bind_ranking(self.query, self.query.rank_by, self.typer(ExpressionPlace.RANK), output, known)

    def confidence(self) -> Fraction | None:
        if self.query.confidence is not None and not self.schema.imprecise:
            raise missing_imprecise_time("CONFIDENCE", self.query.clause("CONFIDENCE"))
        return self.query.confidence


def check_shape(expr: Expr, node: tree.Expression) -> None:
    """NEXT takes one variable inside and at most one outside; `[i]` counts one variable."""
    names: dict[Which, set[str]] = {which: set() for which in Which}
    for leaf in _leaves(expr, Attribute):
        names[leaf.which].add(leaf.variable)
    counted = {shape.index for shape in (shape_of(part) for part in walk(expr)) if shape.index is not None}
    if len(counted) > 1:
        raise BindError("[i] counts one variable in a conjunct", node.span, hint="split the conjunct")
    if not names[Which.NEXT]:
        return
    if len(names[Which.NEXT]) > 1 or len(names[Which.EACH]) > 1:
        raise BindError(
            "NEXT takes one variable inside and at most one outside", node.span, hint="split the conjunct with AND"
        )
    if counted:
        raise BindError("NEXT and [i] do not go into one conjunct", node.span)


def _leaves(expr: Expr, kind: type[Leaf]) -> list[Leaf]:
    return [node for node in walk(expr) if isinstance(node, kind)]


def _positive_conjunctions(pattern: tree.Pattern) -> Iterator[tree.And]:
    if isinstance(pattern, tree.And):
        yield pattern
    if not isinstance(pattern, tree.Not):
        for part in tree.parts(pattern):
            yield from _positive_conjunctions(part)


# ------------------------------------------------------------------------------------------------ warnings
#
# Allowed, but probably not meant: ambiguous patterns, NEXT that never applies, types without events, and `sum(b.x)`
# where `sum(b[].x)` was probably meant.


def warnings_of(plan: Plan) -> tuple[QueryWarning, ...]:
    """All warnings of a bound query, in the order of its clauses."""
    found = (*_absent_types(plan), *_ambiguity(plan), *_idle_next(plan), *_totals_in_small_letters(plan))
    return tuple(QueryWarning(*warning, plan.query.text) for warning in found)


def _absent_types(plan: Plan) -> FoundWarnings:
    present, first = plan.schema.present, dict[str, tree.Event]()
    for event in tree.nodes_of(plan.query.pattern, tree.Event):
        first.setdefault(event.type, event)
    for name, event in first.items():
        if present is not None and name not in present:
            hint = did_you_mean(name, present) if present else None
            yield f"the events have no type '{name}'", event.span, hint


def _ambiguity(plan: Plan) -> FoundWarnings:
    word = ambiguous_types(plan.pattern)
    if word is not None:
        yield (
            f"ambiguous pattern: the events {' '.join(word)} match it in more than one way, each counted",
            plan.query.clause("PATTERN"),
            "two matches may hold the same events at different places of the pattern",
        )


def _idle_next(plan: Plan) -> FoundWarnings:
    scopes = dict(scopes_of(plan.pattern))
    for condition in plan.conditions:
        pair = shape_of(condition.expr).pair
        if pair is not None and pair not in adjacent_variables(scopes[condition.scope]):
            yield (
                f"'{condition.text}' is always true: events of {pair[0]} and {pair[1]} are never adjacent",
                plan.query.clause("WHERE"),
                "NEXT speaks of events next to each other in the match",
            )


def _totals_in_small_letters(plan: Plan) -> FoundWarnings:
    """`sum(b.x)` beside WITHIN alone: over all matches of a window, where `sum(b[].x)` is of one match."""
    query = plan.query
    if query.within is None or query.within.slide is not None or isinstance(query.returns, Trends):
        return
    for call in tree.nodes_of(query.returns, tree.Call):
        match call:
            case tree.Call(name, (tree.Reference(variable, tree.Index.EACH) as of,)) if name in AGGREGATES:
                written = _written(call, query.text)
                if variable in plan.kleene and written[:1].islower():
                    inside = write_expression(tree.Call(name, (replace(of, index=tree.Index.ALL),)))
                    yield (
                        f"'{written}' is over all matches, so each row is of a window of "
                        f"{write_length(query.within.within)}, and the windows do not overlap",
                        call.span,
                        f"of one match: {inside}; over all matches, in capitals: {write_expression(call)}",
                    )


def _written(node: tree.Call, text: str | None) -> str:
    """The text of a node in the query: capitals are not part of the tree."""
    if node.span is None or text is None:
        return ""
    start = SourceText(text).offset(node.span)
    return text[start : start + node.span.length]
