"""Conditions and values: from Lark's parse tree to ours."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from lark import Token, Tree
from lark.tree import Meta

from trendloom.errors import ParseError, Span, did_you_mean
from trendloom.frontend.source import SourceText
from trendloom.frontend.tql.keywords import AGGREGATES, UNITS, closest_clause
from trendloom.frontend.tree import (
    And,
    Between,
    Binary,
    Call,
    DurationLiteral,
    Equivalence,
    Event,
    Exists,
    Expression,
    In,
    Index,
    IsNull,
    Like,
    Literal,
    Logical,
    Name,
    Not,
    OperandWithin,
    Or,
    Pattern,
    Reference,
    Repeat,
    Seq,
    Star,
    Unary,
    canonical_number,
)

# What every part of the builder needs: the place of a node in the text, names and numbers.
#
# Each form of the grammar has a method, which receives a node's `meta` (its offsets) and its children, already built.


Children = list[Any]

_OTHER_UNITS = {
    "m": "did you mean 'min' or 'ms'?",
    "mn": "did you mean 'min'?",
    "sec": "did you mean 's'?",
    "hr": "did you mean 'h'?",
    "week": "write days: 7 d",
    "month": "months differ in length; write days: 30 d",
    "quarter": "quarters differ in length; write days: 91 d",
    "year": "years differ in length; write days: 365 d",
    "ns": "times are kept to the microsecond: us",
    "nanosecond": "times are kept to the microsecond: us",
}
"""Units of other languages (singular), and what to write."""


@dataclass(frozen=True)
class Word:
    """A name without its backquotes, and its place."""

    text: str
    span: Span
    start: int


class PlaceBuilder:
    """Places, names and numbers of one text."""

    def __init__(self, source: SourceText) -> None:
        self.source = source

    def build(self, node: Tree[Token]) -> Any:
        """What the method for the form of a node makes of it; tokens are left as they are."""
        children = [self.build(child) if isinstance(child, Tree) else child for child in node.children]
        return getattr(self, node.data)(node.meta, children)

    def at(self, meta: Meta) -> Span:
        return self.source.span(meta.start_pos, meta.end_pos)

    def at_token(self, token: Token) -> Span:
        return self.source.span(token.start_pos or 0, token.end_pos or 0)

    def error(self, message: str, span: Span, hint: str | None = None) -> ParseError:
        return ParseError(message, span, hint=hint, text=self.source.text)

    def written(self, meta: Meta) -> str:
        """The text of a node on one line."""
        return " ".join(self.source.text[meta.start_pos : meta.end_pos].split())

    # -------------------------------------------------------------------------------------------- names

    def name(self, meta: Meta, children: Children) -> Word:
        (token,) = children
        text = unquoted(token, "`") if token.type == "QUOTED" else str(token)
        return Word(text, self.at_token(token), token.start_pos)

    attribute = name

    # ------------------------------------------------------------------------------------------ numbers

    def whole(self, token: Token, *, least: int, what: str, hint: str | None = None) -> int:
        if not token.isdigit():
            raise self.error(f"{what} is a whole number, not {token}", self.at_token(token), hint)
        count = self.integer(token)
        if count < least:
            raise self.error(f"{what} is at least {least}", self.at_token(token), hint)
        return count

    def integer(self, token: Token) -> int:
        return int(self.checked(token))

    def exact(self, token: Token) -> Fraction:
        return Fraction(self.checked(token))

    def checked(self, token: Token) -> Token:
        """A number that costs nothing to compute with: `1e999999999` as a fraction would fill the memory."""
        exponent = token.lower().partition("e")[2].lstrip("+-").lstrip("0")
        if len(token) > 1000 or len(exponent) > 3 or int(exponent or 0) > 400:
            raise self.error("This number is out of range", self.at_token(token), "numbers go up to about 1.8e308")
        return token

    def unit_of(self, token: Token) -> str:
        unit = UNITS.get(token.lower())
        if unit is not None:
            return unit
        raise self.error(f"'{token}' is not a unit of time", self.at_token(token), _unit_hint(str(token)))


def _unit_hint(word: str) -> str:
    habit = _OTHER_UNITS.get(word.lower().removesuffix("s"))
    if habit is not None:
        return habit
    clause = closest_clause(word)
    if clause is not None:
        return f"did you mean {clause}?"
    if re.fullmatch(r"[a-z]+\d+[a-z]+", word, re.IGNORECASE):
        return "a duration is one number and one unit: 90 min"
    close = did_you_mean(word, UNITS)
    return close if close and close.startswith("did") else "units are us, ms, s, min, h, d and their full words"


def unquoted(token: str, quote: str) -> str:
    return token[1:-1].replace(quote * 2, quote)


_INDEXES = {index.value: index for index in (Index.CURRENT, Index.PREVIOUS, Index.FIRST, Index.LAST, Index.BEFORE)} | {
    "": Index.ALL
}
_INTERVAL = re.compile(r"\s*(?P<amount>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(?P<unit>[^\W\d]+)?\s*")
_MEANT = {"0": "[first]", "1": "[first]", "-1": "[last]", "n": "[last]", "i+1": "NEXT(...)", "..": "[]", "*": "[]"}
"""Indexes of other languages."""

_TAKES_A_VARIABLE = AGGREGATES | {"duration"}


class ExpressionBuilder(PlaceBuilder):
    """One method per form of an expression."""

    def disjunction(self, meta: Meta, children: Children) -> Logical:
        return Logical("or", tuple(part for part in children if not isinstance(part, Token)), span=self.at(meta))

    def conjunction(self, meta: Meta, children: Children) -> Logical:
        return Logical("and", tuple(part for part in children if not isinstance(part, Token)), span=self.at(meta))

    def inverse(self, meta: Meta, children: Children) -> Unary:
        return Unary("not", children[1], span=self.at(meta))

    def compare(self, meta: Meta, children: Children) -> Binary:
        left, sign, right = children
        operator = "!=" if sign == "<>" else str(sign)
        return Binary(cast(Any, operator), left, right, span=self.at(meta))

    def in_list(self, meta: Meta, children: Children) -> In:
        operand, _, *items = children
        return In(operand, tuple(items), span=self.at(meta))

    def between(self, meta: Meta, children: Children) -> Between:
        operand, low, high = (child for child in children if not isinstance(child, Token))
        return Between(operand, low, high, span=self.at(meta))

    def like(self, meta: Meta, children: Children) -> Like:
        return Like(children[0], unquoted(children[-1], "'"), span=self.at(meta))

    def not_in_list(self, meta: Meta, children: Children) -> Unary:
        return self._denied(meta, self.in_list, [child for child in children if not _is_not(child)])

    def not_between(self, meta: Meta, children: Children) -> Unary:
        return self._denied(meta, self.between, children)

    def not_like(self, meta: Meta, children: Children) -> Unary:
        return self._denied(meta, self.like, children)

    def _denied(self, meta: Meta, build: Callable[[Meta, Children], Expression], children: Children) -> Unary:
        return Unary("not", build(meta, children), span=self.at(meta))

    def is_null(self, meta: Meta, children: Children) -> IsNull:
        return IsNull(children[0], span=self.at(meta))

    def is_not_null(self, meta: Meta, children: Children) -> IsNull:
        return IsNull(children[0], negated=True, span=self.at(meta))

    def add(self, meta: Meta, children: Children) -> Binary:
        return Binary("+", *children, span=self.at(meta))

    def subtract(self, meta: Meta, children: Children) -> Binary:
        return Binary("-", *children, span=self.at(meta))

    def multiply(self, meta: Meta, children: Children) -> Binary:
        return Binary("*", *children, span=self.at(meta))

    def divide(self, meta: Meta, children: Children) -> Binary:
        return Binary("/", *children, span=self.at(meta))

    def remainder(self, meta: Meta, children: Children) -> Binary:
        return Binary("%", *children, span=self.at(meta))

    def minus(self, meta: Meta, children: Children) -> Unary:
        return Unary("-", children[0], span=self.at(meta))

    def number(self, meta: Meta, children: Children) -> Literal:
        (token,) = children
        value = self.integer(token) if token.isdigit() else canonical_number(Decimal(self.checked(token)))
        if isinstance(value, Decimal) and math.isinf(float(value)):
            raise self.error("This number is out of range", self.at(meta), "numbers go up to about 1.8e308")
        return Literal(value, span=self.at(meta))

    def duration(self, meta: Meta, children: Children) -> DurationLiteral:
        amount, unit = children
        return DurationLiteral(self.exact(amount), self.unit_of(unit), span=self.at(meta))

    def interval(self, meta: Meta, children: Children) -> DurationLiteral:
        """`INTERVAL '10' MINUTE`, `INTERVAL '10 minutes'` and `INTERVAL 10 MINUTE`: SQL's way to write `10 min`."""
        _, written, unit = children
        text = unquoted(written, "'") if written.type == "STRING" else str(written)
        found = _INTERVAL.fullmatch(text)
        if found is None or (unit is None) == (found["unit"] is None):
            hint = "one number and one unit: INTERVAL '10' MINUTE, or simply 10 min"
            raise self.error(f"'{self.written(meta)}' is not a duration", self.at(meta), hint)
        word = Token.new_borrow_pos("NAME", found["unit"], written) if unit is None else unit
        amount = Token.new_borrow_pos("NUMBER", found["amount"], written)
        return DurationLiteral(self.exact(amount), self.unit_of(word), span=self.at(meta))

    def string(self, meta: Meta, children: Children) -> Literal:
        return Literal(unquoted(children[0], "'"), span=self.at(meta))

    def true(self, meta: Meta, children: Children) -> Literal:
        return Literal(True, span=self.at(meta))

    def false(self, meta: Meta, children: Children) -> Literal:
        return Literal(False, span=self.at(meta))

    def bare_name(self, meta: Meta, children: Children) -> Name:
        return Name(children[0].text, span=self.at(meta))

    def each_reference(self, meta: Meta, children: Children) -> Reference:
        variable, attribute = children
        return Reference(variable.text, Index.EACH, attribute.text, span=self.at(meta))

    def indexed_reference(self, meta: Meta, children: Children) -> Reference:
        variable, index, attribute = children
        if attribute is None and index not in (Index.ALL, Index.BEFORE):
            raise self._no_attribute(meta)
        return Reference(variable.text, index, attribute.text if attribute else None, span=self.at(meta))

    def next_reference(self, meta: Meta, children: Children) -> Reference:
        _, variable, attribute = children
        if attribute is None:
            raise self._no_attribute(meta)
        return Reference(variable.text, Index.NEXT, attribute.text, span=self.at(meta))

    def _no_attribute(self, meta: Meta) -> ParseError:
        written = self.written(meta)
        return self.error(f"'{written}' is an event, not a value", self.at(meta), f"name an attribute: {written}.x")

    def index(self, meta: Meta, children: Children) -> Index:
        written = "".join(children).lower()
        if written not in _INDEXES:
            meant = f"did you mean {_MEANT[written]}? There is" if written in _MEANT else "write"
            hint = f"{meant} [i], [i-1], [first], [last], [] or [..i-1]"
            raise self.error(f"'[{''.join(children)}]' says no event of a variable", self.at(meta), hint)
        return _INDEXES[written]

    def call(self, meta: Meta, children: Children) -> Call:
        function, *arguments = children
        name = function.text.lower()
        if name in _TAKES_A_VARIABLE and len(arguments) == 1 and isinstance(arguments[0], Name):
            bare = arguments[0]
            arguments = [Reference(bare.name, Index.EACH, None, span=bare.span)]
        return Call(name, tuple(arguments), span=self.at(meta))

    def call_star(self, meta: Meta, children: Children) -> Call:
        return Call(children[0].text.lower(), (Star(span=self.at(meta)),), span=self.at(meta))

    def equivalence(self, meta: Meta, children: Children) -> Equivalence:
        return Equivalence(tuple(attribute.text for attribute in children), span=self.at(meta))


def _is_not(child: Any) -> bool:
    return isinstance(child, Token) and child.type == "NOT"


# Patterns: from Lark's parse tree to ours.


class PatternBuilder(PlaceBuilder):
    """One method per form of a pattern."""

    def event(self, meta: Meta, children: Children) -> Event:
        type_, *variable = children
        return Event(type_.text, variable[0].text if variable else None, span=self.at(meta))

    def restricted_event(self, meta: Meta, children: Children) -> Event:
        type_, *variable, predicate = children
        return Event(type_.text, variable[0].text if variable else None, predicate, span=self.at(meta))

    def seq_pattern(self, meta: Meta, children: Children) -> Seq:
        return Seq(tuple(children[1:]), span=self.at(meta))

    def or_pattern(self, meta: Meta, children: Children) -> Or:
        return Or(tuple(part for part in children if not isinstance(part, Token)), span=self.at(meta))

    def or_pattern_call(self, meta: Meta, children: Children) -> Or:
        return Or(self._several("OR", meta, children[1:]), span=self.at(meta))

    def and_pattern_call(self, meta: Meta, children: Children) -> And:
        return And(self._several("AND", meta, children[1:]), span=self.at(meta))

    def _several(self, word: str, meta: Meta, parts: Children) -> tuple[Pattern, ...]:
        if len(parts) < 2:
            raise self.error(f"{word} needs two parts or more", self.at(meta), f"{word}(p, q), or the one part alone")
        return tuple(parts)

    def not_pattern(self, meta: Meta, children: Children) -> Not:
        return Not(children[-1], span=self.at(meta))

    def exists_pattern(self, meta: Meta, children: Children) -> Exists:
        _, variable, pattern = children
        return Exists(variable.text, pattern, span=self.at(meta))

    def operand_within(self, meta: Meta, children: Children) -> OperandWithin:
        pattern, _, length = children
        return OperandWithin(pattern, length, span=self.at(meta))

    def plus(self, meta: Meta, children: Children) -> Repeat:
        return Repeat(children[0], 1, None, "+", span=self.at(meta))

    def star(self, meta: Meta, children: Children) -> Repeat:
        return Repeat(children[0], 0, None, "*", span=self.at(meta))

    def maybe(self, meta: Meta, children: Children) -> Repeat:
        return Repeat(children[0], 0, 1, "?", span=self.at(meta))

    def exactly(self, meta: Meta, children: Children) -> Repeat:
        pattern, written = children
        count = self.whole(written, least=0, what="A repetition")
        return self._braces(meta, pattern, count, count)

    def at_least(self, meta: Meta, children: Children) -> Repeat:
        pattern, least = children
        return self._braces(meta, pattern, self.whole(least, least=0, what="A repetition"), None)

    def from_to(self, meta: Meta, children: Children) -> Repeat:
        pattern, least, most = children
        count = self.whole(least, least=0, what="A repetition"), self.whole(most, least=0, what="A repetition")
        if count[1] < count[0]:
            raise self.error(
                f"{{{least},{most}}} ends before it begins", self.at_token(least), f"did you mean {{{most},{least}}}?"
            )
        return self._braces(meta, pattern, *count)

    def _braces(self, meta: Meta, pattern: Pattern, least: int, most: int | None) -> Repeat:
        if most == 0:
            raise self.error(
                "A pattern repeated zero times is nothing", self.at(meta), "leave it out, or write '?' or '*'"
            )
        return Repeat(pattern, least, most, "{}", span=self.at(meta))

    def named_repeat(self, meta: Meta, children: Children) -> Repeat:
        pattern, variable = children
        return cast(Repeat, replace(self._bound(pattern, variable, meta), span=self.at(meta)))

    def _bound(self, pattern: Pattern, variable: Word, meta: Meta) -> Pattern:
        """The repeated pattern with the variable given to its one event."""
        if isinstance(pattern, Repeat):
            return replace(pattern, pattern=self._bound(pattern.pattern, variable, meta))
        if isinstance(pattern, Event) and pattern.variable is None and pattern.predicate is None:
            return replace(pattern, variable=variable.text)
        raise self.error(
            f"'{variable.text}[]' must follow a plain type with its repetition",
            variable.span,
            f"Type+ {variable.text}[], or (Type {variable.text}: condition)+",
        )

    def missing_brackets_mistake(self, meta: Meta, children: Children) -> Pattern:
        variable = children[1]
        clause = closest_clause(variable.text)
        if clause:
            raise self.error(f"Unknown clause '{variable.text}'", variable.span, f"did you mean {clause}?")
        repeated = self.source.text[meta.start_pos : variable.start].strip()
        name = variable.text
        raise self.error(
            f"'{self.written(meta)}': after a repetition, a variable is written {name}[]",
            variable.span,
            f"a comma between {repeated} and {name}? Or {repeated} {name}[]?",
        )

    def missing_repeat_mistake(self, meta: Meta, children: Children) -> Pattern:
        type_, variable = (child.text for child in children)
        raise self.error(
            f"'{self.written(meta)}' has no repetition, so it is one event",
            self.at(meta),
            f"one event: {type_} {variable}; several: {type_}+ {variable}[]",
        )
