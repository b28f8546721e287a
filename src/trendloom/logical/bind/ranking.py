"""Bind RANK BY and the windows of operands: what is ranked, by which score, and which matches take part."""

from __future__ import annotations

from trendloom.errors import BindError, Span
from trendloom.expr.nodes import Expr
from trendloom.frontend import tree
from trendloom.frontend.tql.printer import write_length
from trendloom.logical.bind.expressions import Typer, bind_ticks
from trendloom.logical.bind.patterns import Bound
from trendloom.logical.bind.preferences import Known, normalised
from trendloom.logical.bind.types import common_kind, digits_after_point
from trendloom.logical.plan import RANK, Aggregation, OperandWindow, Output, Ranking
from trendloom.model.numbers import MOST_DIGITS
from trendloom.model.schema import Kind, Schema
from trendloom.model.selection import Trends
from trendloom.model.time import Window


def bind_ranking(query: tree.Query, clause: tree.RankBy, typer: Typer, output: Output, known: Known) -> Ranking:
    """The bound RANK BY, or an error that shows where it goes wrong."""
    _refuse_other_rows(clause, output)
    _refuse_second_rank(clause, typer.schema)
    merge: tree.Merge | None = None
    written: tuple[tree.Expression, ...]
    if isinstance(clause.preference, tree.Merge):
        merge, written = clause.preference, clause.preference.preferences
        _refuse_one_sequence(query.pattern, merge)
    else:
        written = (clause.preference,)
    preferences = tuple(normalised(typer.preference(node), known) for node in written)
    function = merge.function if merge else None
    kind, scale = _score(preferences, function, typer.schema, clause.span)
    return Ranking(preferences, function, clause.descending, clause.limit, clause.overall, kind, scale)


def _refuse_other_rows(clause: tree.RankBy, output: Output) -> None:
    if isinstance(output, Aggregation) or output in (Trends.COMPLETE, Trends.COLLAPSED):
        raise BindError(
            "RANK BY ranks matches: it goes with TRENDS or values of a match",
            clause.span,
            hint="RETURN TRENDS, or values such as a.x and sum(b[].x)",
        )


def _refuse_second_rank(clause: tree.RankBy, schema: Schema) -> None:
    if RANK in schema.names:
        raise BindError(
            "the events have a column named 'rank', and so have ranked matches",
            clause.span,
            hint="rename the column of the input",
        )


def _refuse_one_sequence(pattern: tree.Pattern, merge: tree.Merge) -> None:
    if not _joins_sequences(pattern):
        raise BindError(
            "MERGE merges the preferences of several sequences, and this pattern is one sequence",
            merge.span,
            hint="write one preference: RANK BY a.x + b.x; several sequences are joined by AND, OR or SEQ of SEQs",
        )


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
    digits = max(digits_after_point(expr, schema) for expr in preferences)
    if digits > MOST_DIGITS:
        raise BindError(
            f"the score would have {digits} digits after the point, and {MOST_DIGITS} are the most there are",
            span,
            hint="round what it is made of, as in round(a.x, 10)",
        )
    return kind, digits


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
        within = bind_ticks(schema, length.amount, length.unit, span)
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
