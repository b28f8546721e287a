"""Syntax tree to canonical text: `parse(write(tree)) == tree`.

Brackets stand only where the tree needs them, names are in backquotes only where they must be. The text of an
expression also names the columns of results, so it is part of the language and does not change lightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from trendloom.frontend import tree
from trendloom.frontend.tql.keywords import AGGREGATES, PROBABILITY, write_name, write_string
from trendloom.frontend.tree import Index
from trendloom.model.selection import Semantics, Trends

# How tightly an expression binds; an operand that binds less than its place requires stands in brackets.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _MINUS, _ATOM = range(8)

_ARITHMETIC = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


def write(queries: tree.Query | Sequence[tree.Query]) -> str:
    """The canonical text of one query or of a workload."""
    if isinstance(queries, tree.Query):
        return _write_query(queries)
    return "\n\n".join(_write_query(query) for query in queries)


def _write_query(query: tree.Query) -> str:
    clauses = list(_clauses(query))
    if query.name is None:
        return "\n".join(clauses)
    return "\n  ".join([f"QUERY {write_name(query.name, reserved_allowed=True)}:", *clauses])


def _clauses(query: tree.Query) -> Iterable[str]:
    """The clauses in the order of the language's description; defaults are left out."""
    if query.returns is not Trends.ALL:
        returns = query.returns
        yield "RETURN " + (returns.value if isinstance(returns, Trends) else ", ".join(map(_item, returns)))
    yield "PATTERN " + write_pattern(query.pattern)
    if query.semantics is not Semantics.ANY:
        yield "SEMANTICS " + query.semantics.value
    if query.where is not None:
        yield "WHERE " + write_expression(query.where)
    if query.group_by:
        yield "GROUP BY " + _attributes(query.group_by)
    if query.having is not None:
        yield "HAVING " + write_expression(query.having)
    if query.within is not None:
        slide = query.within.slide
        yield f"WITHIN {write_length(query.within.within)}" + (f" SLIDE {write_length(slide)}" if slide else "")
    if query.rank_by is not None:
        yield _rank(query.rank_by)
    if query.confidence is not None:
        yield f"CONFIDENCE >= {_decimal(query.confidence)}"


def _item(item: tree.Item) -> str:
    text = write_expression(item.expression)
    return text if item.alias is None else f"{text} AS {write_name(item.alias, reserved_allowed=True)}"


def write_length(length: tree.Length | tree.DurationLiteral) -> str:
    """The canonical text of a duration."""
    return _decimal(length.amount) + (f" {length.unit}" if length.unit else "")


def _rank(rank: tree.RankBy) -> str:
    preference = _expressions(rank.preferences)
    if isinstance(rank.preference, tree.Merge):
        preference = f"MERGE({rank.preference.function}, {preference})"
    direction, overall = " DESC" if rank.descending else "", " OVERALL" if rank.overall else ""
    return f"RANK BY {preference}{direction} LIMIT {rank.limit}{overall}"


def _decimal(value: Fraction) -> str:
    """An exact decimal. Only numbers that somebody could have written have one."""
    digits = next((n for n in range(value.denominator.bit_length()) if 10**n % value.denominator == 0), None)
    if digits is None:
        raise ValueError(f"{value} has no finite decimal text")
    text = str((value * 10**digits).numerator).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}" if digits else text


# ---------------------------------------------------------------------------------------------- patterns


def write_pattern(pattern: tree.Pattern) -> str:
    """The canonical text of a pattern."""
    match pattern:
        case tree.Event():
            return _event(pattern)
        case tree.Seq(parts) | tree.Or(parts) | tree.And(parts):
            return f"{type(pattern).__name__.upper()}({', '.join(_operand(part) for part in parts)})"
        case tree.Not(inner):
            return f"NOT {write_pattern(inner)}"
        case tree.Exists(variable, inner):
            return f"EXISTS {write_name(variable)} ({_operand(inner)})"
        case tree.Repeat(inner):
            text = write_pattern(inner)
            return (f"({text})" if isinstance(inner, tree.Not) else text) + _repetition(pattern)
        case tree.OperandWithin():
            return f"({_operand(pattern)})"


def _operand(pattern: tree.Pattern) -> str:
    """A pattern where its own WITHIN needs no brackets."""
    if not isinstance(pattern, tree.OperandWithin):
        return write_pattern(pattern)
    return f"{write_pattern(pattern.pattern)} WITHIN {write_length(pattern.within)}"


def _event(event: tree.Event) -> str:
    text = write_name(event.type) + (f" {write_name(event.variable)}" if event.variable is not None else "")
    return text if event.predicate is None else f"({text}: {write_expression(event.predicate)})"


def _repetition(repeat: tree.Repeat) -> str:
    if repeat.spelling != "{}":
        return repeat.spelling
    if repeat.most is None:
        return f"{{{repeat.least},}}"
    return f"{{{repeat.least}}}" if repeat.least == repeat.most else f"{{{repeat.least},{repeat.most}}}"


# ------------------------------------------------------------------------------------------- expressions


def write_expression(expression: tree.Expression) -> str:
    """The canonical text of a condition or value."""
    return _write(expression, _OR)


def _write(expression: tree.Expression, place: int) -> str:
    """The text of an operand whose place requires a binding at least as tight as `place`."""
    text, binding = _text(expression)
    return text if binding >= place else f"({text})"


def _text(expression: tree.Expression) -> tuple[str, int]:
    """The text without outer brackets, and how tightly it binds."""
    match expression:
        case tree.Logical(operator, operands):
            binding = _AND if operator == "and" else _OR
            return f" {operator.upper()} ".join(_write(operand, binding + 1) for operand in operands), binding
        case tree.Unary("-", operand):
            return f"-{_write(operand, _ATOM)}", _MINUS  # `--` opens a comment: a minus under a minus is bracketed
        case tree.Unary(_, operand):
            if isinstance(operand, tree.In | tree.Between | tree.Like):
                return _test(operand, "NOT "), _COMPARE
            return f"NOT {_write(operand, _NOT)}", _NOT
        case tree.Binary(operator, left, right):
            # Comparisons do not chain, so both sides bind tighter; arithmetic groups to the left.
            binding = _ARITHMETIC.get(operator, _COMPARE)
            tighter = binding + 1
            first = _write(left, tighter if binding == _COMPARE else binding)
            return f"{first} {operator} {_write(right, tighter)}", binding
        case tree.In() | tree.Between() | tree.Like():
            return _test(expression, ""), _COMPARE
        case tree.IsNull(operand, negated):
            return f"{_write(operand, _SUM)} IS {'NOT ' if negated else ''}NULL", _COMPARE
        case _:
            return _atom(expression), _ATOM


def _test(test: tree.In | tree.Between | tree.Like, negation: str) -> str:
    operand = _write(test.operand, _SUM)
    match test:
        case tree.In(_, items):
            return f"{operand} {negation}IN ({_expressions(items)})"
        case tree.Between(_, low, high):
            return f"{operand} {negation}BETWEEN {_write(low, _SUM)} AND {_write(high, _SUM)}"
        case tree.Like(_, pattern):
            return f"{operand} {negation}LIKE {write_string(pattern)}"


def _atom(expression: tree.Expression) -> str:
    match expression:
        case tree.Literal(value):
            return _literal(value)
        case tree.DurationLiteral():
            return write_length(expression)
        case tree.Name(name):
            return write_name(name)
        case tree.Reference():
            return _reference(expression)
        case tree.Star():
            return "*"
        case tree.Call():
            return _call(expression)
        case tree.Equivalence(attributes):
            return f"[{_attributes(attributes)}]"
        case _:
            raise TypeError(f"not an expression: {expression!r}")


def _literal(value: int | Decimal | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Decimal):
        return repr(float(value)) if Decimal(repr(float(value))) == value else str(value)
    return write_string(value) if isinstance(value, str) else repr(value)


def _reference(reference: tree.Reference) -> str:
    text = write_name(reference.variable)
    if reference.index is Index.NEXT:
        text = f"NEXT({text})"
    elif reference.index is not Index.EACH:
        text += "[]" if reference.index is Index.ALL else f"[{reference.index.value}]"
    return text if reference.attribute is None else f"{text}.{write_name(reference.attribute, reserved_allowed=True)}"


def _call(call: tree.Call) -> str:
    name = write_name(call.name)
    return f"{name.upper() if _over_matches(call) else name}({_expressions(call.arguments)})"


def _over_matches(call: tree.Call) -> bool:
    """Whether a call aggregates over all matches, not inside one: then it is written in upper case."""
    if call.name not in (*AGGREGATES, PROBABILITY) or len(call.arguments) != 1:
        return False
    argument = call.arguments[0]
    return isinstance(argument, tree.Star) or (isinstance(argument, tree.Reference) and argument.index is Index.EACH)


def _expressions(expressions: Iterable[tree.Expression]) -> str:
    return ", ".join(write_expression(expression) for expression in expressions)


def _attributes(attributes: Iterable[str]) -> str:
    return ", ".join(write_name(attribute, reserved_allowed=True) for attribute in attributes)
