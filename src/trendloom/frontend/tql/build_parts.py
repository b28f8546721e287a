"""Conditions and values: from Lark's parse tree to ours."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

from lark import Token
from lark.tree import Meta

from trendloom.errors import ParseError
from trendloom.frontend.tql.build_places import Children, PlaceBuilder, unquoted
from trendloom.frontend.tql.keywords import AGGREGATES
from trendloom.frontend.tql.tree import (
    Between,
    Binary,
    Call,
    DurationLiteral,
    Equivalence,
    Expression,
    In,
    Index,
    IsNull,
    Like,
    Literal,
    Logical,
    Name,
    Reference,
    Star,
    Unary,
    canonical_number,
)

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
