"""Where a parse failed: the words around the place, what could have stood there, and an error that points at it.

What the checks in `diagnosis` and `habits` look at. Everything is read from a rough scan of the text, so nothing here
can fail in its turn. Cost: the scan, and one pass over it for each question.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trendloom.errors import ParseError
from trendloom.frontend.tql.expectation import expectation
from trendloom.frontend.tql.keywords import CLAUSES
from trendloom.frontend.tql.source import Lexeme, Source

CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLAUSE_WORDS = {clause.split()[0] for clause in CLAUSES} | {"SLIDE", "LIMIT", "QUERY"}


@dataclass(frozen=True)
class Failure:
    """The place where the parser gave up: the lexeme there, and the terminals of the grammar that would have done."""

    source: Source
    lexemes: tuple[Lexeme, ...]
    number: int
    accepted: frozenset[str]

    @property
    def found(self) -> Lexeme:
        return self.lexemes[self.number]

    def before(self, distance: int = 1) -> Lexeme:
        """An earlier lexeme; an empty one where there is none."""
        return self.lexemes[self.number - distance] if self.number >= distance else Lexeme("start", "", 0)

    def word(self, number: int) -> str:
        """A lexeme in upper case; the last one, which is empty, stands for all behind the end."""
        return self.lexemes[min(number, len(self.lexemes) - 1)].text.upper() if number >= 0 else ""

    @cached_property
    def open(self) -> tuple[Lexeme, ...]:
        """The brackets that are open at the failure, outermost first."""
        return unclosed(self.lexemes[: self.number])

    @cached_property
    def clause(self) -> str:
        """The first word of the clause in which the failure lies."""
        words = (lexeme.text.upper() for lexeme in reversed(self.lexemes[: self.number]) if is_clause(lexeme))
        return next((word for word in words if word not in ("SLIDE", "LIMIT")), "")

    @cached_property
    def expected(self) -> str:
        return expectation(self.accepted, clause=self.clause)

    def text(self, first: int, end: int) -> str:
        """What is written from one lexeme up to another, on one line."""
        if first >= min(end, len(self.lexemes)):
            return ""
        last = self.lexemes[min(end, len(self.lexemes)) - 1]
        return " ".join(self.source.text[self.lexemes[first].start : last.end].split())

    def error(self, message: str, hint: str | None = None, at: Lexeme | None = None) -> ParseError:
        place = at or self.found
        span = self.source.span(place.start, place.end)
        return ParseError(message, span, hint=hint, text=self.source.text)


def is_clause(lexeme: Lexeme) -> bool:
    """Whether a word opens a clause."""
    return lexeme.kind == "word" and lexeme.text.upper() in _CLAUSE_WORDS


def unclosed(lexemes: tuple[Lexeme, ...]) -> tuple[Lexeme, ...]:
    """The opening brackets that have no partner."""
    stack: list[Lexeme] = []
    for lexeme in lexemes:
        if lexeme.kind != "mark":
            continue
        if lexeme.text in CLOSING:
            stack.append(lexeme)
        elif stack and lexeme.text == CLOSING[stack[-1].text]:
            stack.pop()
    return tuple(stack)
