"""Restrictions of imprecise time, checked before anything runs, and the binding of PROBABILITY(*).

A match of imprecise time is a sequence of events with a probability. Forms that need the exact times of events, or the
dependencies between matches, have no meaning there or no algorithm that is quicker than trying every world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set

from trendloom.errors import BindError, Span, option
from trendloom.expr.nodes import Expr, Total
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend import tree
from trendloom.frontend.tql.keywords import PROBABILITY
from trendloom.frontend.tql.printer import write_expression
from trendloom.logical.bind.patterns import Bound
from trendloom.logical.plan import Condition
from trendloom.model.schema import Kind, Schema
from trendloom.model.selection import Semantics, Trends
from trendloom.pattern import algebra

ROW_COLUMNS = ("confidence", "time_low", "time_high")
"""The columns that rows of matches have behind their own: how likely, and between which times."""


def requires_imprecise_time(query: tree.Query) -> bool:
    """Whether a query makes sense for imprecise time only."""
    return query.confidence is not None or any(_probabilities(query))


def _probabilities(query: tree.Query) -> Iterator[tree.Call]:
    return (call for call in tree.nodes_of(query.returns, tree.Call) if call.name == PROBABILITY)


def refuse_imprecise(query: tree.Query, schema: Schema) -> None:
    """Refuse forms of a query that do not go with imprecise time."""
    if query.semantics is Semantics.CONTIGUOUS:
        raise _refused("contiguous", query.clause("SEMANTICS"), "use skip-till-any-match or skip-till-next-match")
    _refuse_pattern(query.pattern)
    if query.rank_by is not None:
        raise _refused("RANK BY", query.rank_by.span, "CONFIDENCE >= 0.9 keeps the likely matches; sort the rows by it")
    if query.returns in (Trends.COMPLETE, Trends.COLLAPSED):
        assert isinstance(query.returns, Trends)
        raise _refused(f"RETURN {query.returns.value}", query.clause("RETURN"), "RETURN TRENDS")
    if query.having is not None:
        raise _refused("HAVING", query.clause("HAVING"), "filter the rows afterwards")
    _refuse_totals(query)
    _refuse_times(query, schema)


def _refused(what: str, span: Span | None, hint: str) -> BindError:
    return BindError(f"{what} does not go with imprecise time", span, hint=hint)


# ------------------------------------------------------------------------------------------------- the pattern


def _refuse_pattern(pattern: tree.Pattern) -> None:
    match pattern:
        case tree.Or():
            raise _refused("OR", pattern.span, "write a query for each of its parts")
        case tree.And():
            raise _refused("AND", pattern.span, "write a SEQ for each order")
        case tree.Exists():
            raise _refused("EXISTS", pattern.span, "leave EXISTS out: its events then are part of the match")
        case tree.Not() if not isinstance(pattern.pattern, tree.Event):
            raise _refused("NOT of anything but one event", pattern.span, "e.g. SEQ(A a, NOT B b, C c)")
        case tree.Repeat() if not _is_single(pattern.pattern):
            inside = any(tree.nodes_of(pattern.pattern, tree.Repeat))
            what = "a repetition inside a repetition" if inside else "a repetition of more than one component"
            raise _refused(what, pattern.span, "repeat single events: A+ a[]")
        case tree.Seq(parts):
            for part in parts:
                _refuse_pattern(part)
        case tree.OperandWithin(operand):
            _refuse_pattern(operand)


def _is_single(pattern: tree.Pattern) -> bool:
    """One event, in whatever brackets."""
    if isinstance(pattern, tree.Seq) and len(pattern.parts) == 1:
        return _is_single(pattern.parts[0])
    return isinstance(pattern, tree.Event)


# ---------------------------------------------------------------------------------------- values and conditions


def _refuse_totals(query: tree.Query) -> None:
    for call in tree.nodes_of(query.returns, tree.Call):
        of = call.arguments[0] if len(call.arguments) == 1 else None
        if call.name in ("avg", "min", "max") and isinstance(of, tree.Reference) and of.index is tree.Index.EACH:
            hint = f"inside one match, write {call.name}({of.variable}[].x)"
            raise _refused(f"{call.name.upper()} over all matches", call.span, f"use COUNT or SUM; {hint}")


def _refuse_times(query: tree.Query, schema: Schema) -> None:
    """Refuse conditions and values that need the time of an event, and partitions by it."""
    names = {"time", schema.time}
    hint = "the order of the pattern and WITHIN say when events happen; bounds and errors in columns may be used"
    used = (query.pattern, query.where, query.returns)
    for reference in tree.nodes_of(used, tree.Reference):
        if reference.attribute in names:
            raise _refused(f"'{write_expression(reference)}', the time of an event,", reference.span, hint)
    for call in tree.nodes_of(used, tree.Call):
        if call.name == "duration":
            raise _refused(f"'{write_expression(call)}'", call.span, hint)
    for key in tree.nodes_of(query.where, tree.Equivalence):
        for name in names.intersection(key.attributes):
            raise _refused(f"a partition by '{name}', the time of an event,", key.span, "name another attribute")
    for name in names.intersection(query.group_by):
        raise _refused(f"GROUP BY {name}, the time of an event,", query.clause("GROUP BY"), "name another attribute")


def refuse_second_columns(query: tree.Query, partition: Sequence[str]) -> None:
    """Refuse partition attributes that are called like the columns that rows of matches have anyway."""
    for name in ROW_COLUMNS:
        if name in partition:
            raise BindError(
                f"the result would have two columns named '{name}'",
                query.clause("GROUP BY") if name in query.group_by else query.clause("WHERE"),
                hint=f"rename the attribute: matches of imprecise time have a column '{name}' of their own",
            )


def refuse_under_next(bound: Bound, expr: Expr, scopes: Sequence[int], span: Span | None) -> None:
    """Refuse conditions that are still open when the next event is chosen, because each world chooses its own."""
    shape = shape_of(expr)
    if shape.whole:
        raise _refused(
            f"a condition on all events of {_listed(shape.whole)} under skip-till-next-match",
            span,
            "compare neighbours (b[i-1].x), or use skip-till-any-match",
        )
    for scope in filter(None, scopes):
        end = max(atom.position for atom in bound.atoms_in(scope))
        outside = shape.variables - bound.variables(scope)
        late = {atom.variable for atom in bound.atoms_in(0) if atom.position > end and atom.variable in outside}
        if late:
            raise _refused(
                f"a NOT that depends on {_listed(late)}, bound after it, under skip-till-next-match",
                span,
                "compare it with what is bound before it, or use skip-till-any-match",
            )


def _listed(names: Set[str]) -> str:
    return " and ".join(f"'{name}'" for name in sorted(names))


# ---------------------------------------------------------------------------------------- at least one match


def bind_probability(call: tree.Call, schema: Schema, *, in_return: bool) -> Total:
    """PROBABILITY(*): how likely there is a match at all in a group and window."""
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], tree.Star):
        raise BindError(
            "PROBABILITY is that of at least one match, and takes nothing but *", call.span, hint="write PROBABILITY(*)"
        )
    if not schema.imprecise:
        raise missing_imprecise_time("PROBABILITY", call.span)
    if not in_return:
        raise BindError(
            "PROBABILITY(*) stands only in RETURN", call.span, hint="CONFIDENCE >= 0.9 keeps likely matches"
        )
    return Total(PROBABILITY, None, None, Kind.FLOAT, write_expression(call))


def missing_imprecise_time(what: str, span: Span | None) -> BindError:
    """The error of a query for probabilities where time is precise."""
    return BindError(
        f"{what} needs a stream with imprecise time",
        span,
        hint=f"name the columns of the bounds with {option('time_low')} and {option('time_high')}, or give "
        f"{option('time_error')}",
    )


def refuse_probability(
    query: tree.Query, bound: Bound, conditions: Sequence[Condition], partition: Sequence[str]
) -> None:
    """Refuse PROBABILITY(*) where matches depend on each other, so that every world would have to be tried."""
    call = next(_probabilities(query), None)
    reason = _obstacle(query, bound, conditions, partition) if call is not None else None
    if call is not None and reason is not None:
        raise BindError(
            f"the probability of at least one match cannot be computed here: {reason}",
            call.span,
            hint="COUNT(*), the expected number of matches, can; where it is small, the probability is hardly smaller",
        )


def _obstacle(query: tree.Query, bound: Bound, conditions: Sequence[Condition], partition: Sequence[str]) -> str | None:
    assert bound.pattern is not None
    if query.confidence is not None:
        return "CONFIDENCE leaves matches out"
    if bound.parent:
        return "the pattern has a NOT"
    repeated = [kind for kind, count in Counter(atom.type for atom in bound.atoms).items() if count > 1]
    if repeated:
        return f"an event of type '{repeated[0]}' fits more than one place of the pattern"
    if not any(_required(bound.pattern)):
        return "no component of the pattern must happen"
    for condition in conditions:
        shape = shape_of(condition.expr)
        if shape.variables and shape.local is None:
            return f"'{condition.text}' is not a condition on one event alone"
    if set(query.group_by) != set(partition):
        missing = ", ".join(name for name in partition if name not in query.group_by)
        return f"a group has several partitions, as GROUP BY does not name {missing}"
    return None


def _required(pattern: algebra.Pattern) -> Iterator[algebra.Atom]:
    """The components that every match binds."""
    if isinstance(pattern, algebra.Atom):
        yield pattern
    elif not isinstance(pattern, algebra.Maybe):
        for part in algebra.parts(pattern):
            yield from _required(part)
