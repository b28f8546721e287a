"""Which kinds of values go together: the type rules of conditions and values, with errors that name both sides."""

from __future__ import annotations

from collections.abc import Collection

from trendloom.errors import BindError, Span
from trendloom.model.schema import Kind

NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT)
COMPARABLE = (Kind.STRING, Kind.TIME, Kind.DURATION)


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
