"""Patterns, conditions and values: from Lark's parse tree to ours."""

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
from trendloom.frontend import tree
from trendloom.frontend.source import SourceText
from trendloom.frontend.tql.keywords import AGGREGATES, UNITS, closest_clause
from trendloom.frontend.tree import Index, canonical_number

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
    """What every builder needs: the place of a node in the text, names and numbers.

    Each form of the grammar has a method, which receives a node's `meta` (its offsets) and its children, already built.
    """

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


_INDEXES: dict[str, Index] = {"": Index.ALL} | {
    index.value: index for index in (Index.CURRENT, Index.PREVIOUS, Index.FIRST, Index.LAST, Index.BEFORE)
}
_INTERVAL = re.compile(r"\s*(?P<amount>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(?P<unit>[^\W\d]+)?\s*")
_MEANT = {"0": "[first]", "1": "[first]", "-1": "[last]", "n": "[last]", "i+1": "NEXT(...)", "..": "[]", "*": "[]"}
"""Indexes of other languages."""

_TAKES_A_VARIABLE = AGGREGATES | {"duration"}


class ExpressionBuilder(PlaceBuilder):
    """One method per form of an expression."""

    def logical(self, meta: Meta, children: Children) -> tree.Logical:
        operator = cast(Any, children[1].lower())
        return tree.Logical(operator, tuple(children[::2]), span=self.at(meta))

    def inverse(self, meta: Meta, children: Children) -> tree.Unary:
        return tree.Unary("not", children[1], span=self.at(meta))

    def binary(self, meta: Meta, children: Children) -> tree.Binary:
        left, sign, right = children
        return tree.Binary(cast(Any, "!=" if sign == "<>" else str(sign)), left, right, span=self.at(meta))

    def in_list(self, meta: Meta, children: Children) -> tree.Expression:
        operand, negation, _, *items = children
        return self._denied(negation, tree.In(operand, tuple(items), span=self.at(meta)))

    def between(self, meta: Meta, children: Children) -> tree.Expression:
        operand, negation, _, low, _, high = children
        return self._denied(negation, tree.Between(operand, low, high, span=self.at(meta)))

    def like(self, meta: Meta, children: Children) -> tree.Expression:
        operand, negation, _, pattern = children
        return self._denied(negation, tree.Like(operand, unquoted(pattern, "'"), span=self.at(meta)))

    def _denied(self, negation: Token | None, test: tree.Expression) -> tree.Expression:
        return test if negation is None else tree.Unary("not", test, span=test.span)

    def null_test(self, meta: Meta, children: Children) -> tree.IsNull:
        operand, _, negation, _ = children
        return tree.IsNull(operand, negation is not None, span=self.at(meta))

    def minus(self, meta: Meta, children: Children) -> tree.Unary:
        return tree.Unary("-", children[0], span=self.at(meta))

    def number(self, meta: Meta, children: Children) -> tree.Literal:
        (token,) = children
        value = self.integer(token) if token.isdigit() else canonical_number(Decimal(self.checked(token)))
        if isinstance(value, Decimal) and math.isinf(float(value)):
            raise self.error("This number is out of range", self.at(meta), "numbers go up to about 1.8e308")
        return tree.Literal(value, span=self.at(meta))

    def duration(self, meta: Meta, children: Children) -> tree.DurationLiteral:
        amount, unit = children
        return tree.DurationLiteral(self.exact(amount), self.unit_of(unit), span=self.at(meta))

    def interval(self, meta: Meta, children: Children) -> tree.DurationLiteral:
        """`INTERVAL '10' MINUTE`, `INTERVAL '10 minutes'` and `INTERVAL 10 MINUTE`: SQL's way to write `10 min`."""
        _, written, unit = children
        text = unquoted(written, "'") if written.type == "STRING" else str(written)
        found = _INTERVAL.fullmatch(text)
        if found is None or (unit is None) == (found["unit"] is None):
            hint = "one number and one unit: INTERVAL '10' MINUTE, or simply 10 min"
            raise self.error(f"'{self.written(meta)}' is not a duration", self.at(meta), hint)
        word = Token.new_borrow_pos("NAME", found["unit"], written) if unit is None else unit
        amount = Token.new_borrow_pos("NUMBER", found["amount"], written)
        return tree.DurationLiteral(self.exact(amount), self.unit_of(word), span=self.at(meta))

    def string(self, meta: Meta, children: Children) -> tree.Literal:
        return tree.Literal(unquoted(children[0], "'"), span=self.at(meta))

    def boolean(self, meta: Meta, children: Children) -> tree.Literal:
        return tree.Literal(children[0].type == "TRUE", span=self.at(meta))

    def bare_name(self, meta: Meta, children: Children) -> tree.Name:
        return tree.Name(children[0].text, span=self.at(meta))

    def each_reference(self, meta: Meta, children: Children) -> tree.Reference:
        variable, attribute = children
        return tree.Reference(variable.text, Index.EACH, attribute.text, span=self.at(meta))

    def indexed_reference(self, meta: Meta, children: Children) -> tree.Reference:
        variable, index, attribute = children
        if attribute is None and index not in (Index.ALL, Index.BEFORE):
            raise self._no_attribute(meta)
        return tree.Reference(variable.text, index, attribute.text if attribute else None, span=self.at(meta))

    def next_reference(self, meta: Meta, children: Children) -> tree.Reference:
        _, variable, attribute = children
        if attribute is None:
            raise self._no_attribute(meta)
        return tree.Reference(variable.text, Index.NEXT, attribute.text, span=self.at(meta))

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

    def call(self, meta: Meta, children: Children) -> tree.Call:
        function, *arguments = children
        name = function.text.lower()
        if name in _TAKES_A_VARIABLE and len(arguments) == 1 and isinstance(arguments[0], tree.Name):
            bare = arguments[0]
            arguments = [tree.Reference(bare.name, Index.EACH, None, span=bare.span)]
        return tree.Call(name, tuple(arguments), span=self.at(meta))

    def call_star(self, meta: Meta, children: Children) -> tree.Call:
        return tree.Call(children[0].text.lower(), (tree.Star(span=self.at(meta)),), span=self.at(meta))

    def equivalence(self, meta: Meta, children: Children) -> tree.Equivalence:
        return tree.Equivalence(tuple(attribute.text for attribute in children), span=self.at(meta))


_OF_PATTERNS: dict[str, Callable[..., tree.Pattern]] = {"SEQ": tree.Seq, "OR": tree.Or, "AND": tree.And}
_SIGNS = {"+": (1, None), "*": (0, None), "?": (0, 1)}


class PatternBuilder(PlaceBuilder):
    """One method per form of a pattern."""

    def event(self, meta: Meta, children: Children) -> tree.Event:
        type_, *variable = children
        return tree.Event(type_.text, variable[0].text if variable else None, span=self.at(meta))

    def restricted_event(self, meta: Meta, children: Children) -> tree.Event:
        type_, variable, predicate = children
        return tree.Event(type_.text, None if variable is None else variable.text, predicate, span=self.at(meta))

    def pattern_call(self, meta: Meta, children: Children) -> tree.Pattern:
        keyword, *parts = children
        word = keyword.type
        if word != "SEQ" and len(parts) < 2:
            raise self.error(f"{word} needs two parts or more", self.at(meta), f"{word}(p, q), or the one part alone")
        return _OF_PATTERNS[word](tuple(parts), span=self.at(meta))

    def or_pattern(self, meta: Meta, children: Children) -> tree.Or:
        return tree.Or(tuple(part for part in children if not isinstance(part, Token)), span=self.at(meta))

    def not_pattern(self, meta: Meta, children: Children) -> tree.Not:
        return tree.Not(children[-1], span=self.at(meta))

    def exists_pattern(self, meta: Meta, children: Children) -> tree.Exists:
        _, variable, pattern = children
        return tree.Exists(variable.text, pattern, span=self.at(meta))

    def operand_within(self, meta: Meta, children: Children) -> tree.OperandWithin:
        pattern, _, length = children
        return tree.OperandWithin(pattern, length, span=self.at(meta))

    def repeat(self, meta: Meta, children: Children) -> tree.Repeat:
        pattern, sign = children
        return tree.Repeat(pattern, *_SIGNS[sign], cast(Any, str(sign)), span=self.at(meta))

    def exactly(self, meta: Meta, children: Children) -> tree.Repeat:
        pattern, written = children
        return self._braces(meta, pattern, written, written)

    def at_least(self, meta: Meta, children: Children) -> tree.Repeat:
        pattern, least = children
        return self._braces(meta, pattern, least, None)

    def from_to(self, meta: Meta, children: Children) -> tree.Repeat:
        return self._braces(meta, *children)

    def _braces(self, meta: Meta, pattern: tree.Pattern, low: Token, high: Token | None) -> tree.Repeat:
        least = self.whole(low, least=0, what="A repetition")
        most = None if high is None else self.whole(high, least=0, what="A repetition")
        if most is not None and most < least:
            hint = f"did you mean {{{high},{low}}}?"
            raise self.error(f"{{{low},{high}}} ends before it begins", self.at_token(low), hint)
        if most == 0:
            hint = "leave it out, or write '?' or '*'"
            raise self.error("A pattern repeated zero times is nothing", self.at(meta), hint)
        return tree.Repeat(pattern, least, most, "{}", span=self.at(meta))

    def named_repeat(self, meta: Meta, children: Children) -> tree.Pattern:
        pattern, variable = children
        return replace(self._bound(pattern, variable), span=self.at(meta))

    def _bound(self, pattern: tree.Pattern, variable: Word) -> tree.Pattern:
        """The repeated pattern with the variable given to its one event."""
        if isinstance(pattern, tree.Repeat):
            return replace(pattern, pattern=self._bound(pattern.pattern, variable))
        if isinstance(pattern, tree.Event) and pattern.variable is None and pattern.predicate is None:
            return replace(pattern, variable=variable.text)
        raise self.error(
            f"'{variable.text}[]' must follow a plain type with its repetition",
            variable.span,
            f"Type+ {variable.text}[], or (Type {variable.text}: condition)+",
        )

    def missing_brackets_mistake(self, meta: Meta, children: Children) -> tree.Pattern:
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

    def missing_repeat_mistake(self, meta: Meta, children: Children) -> tree.Pattern:
        type_, variable = (child.text for child in children)
        raise self.error(
            f"'{self.written(meta)}' has no repetition, so it is one event",
            self.at(meta),
            f"one event: {type_} {variable}; several: {type_}+ {variable}[]",
        )
