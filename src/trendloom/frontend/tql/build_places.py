"""What every part of the builder needs: the place of a node in the text, names and numbers.

Each form of the grammar has a method, which receives a node's `meta` (its offsets) and its children, already built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lark import Token, Tree
from lark.tree import Meta

from trendloom.errors import ParseError, Span, did_you_mean
from trendloom.frontend.tql.keywords import UNITS, closest_clause
from trendloom.frontend.tql.source import Source

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

    def __init__(self, source: Source) -> None:
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
