"""Where a parse failed: the words around the place, what was expected there, and an error that points at it.

Everything is read from a rough scan of the text, so nothing here can fail in its turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trendloom.errors import ParseError
from trendloom.frontend.source import Lexeme, SourceText
from trendloom.frontend.tql.keywords import CLAUSES

CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLAUSE_WORDS = {clause.split()[0] for clause in CLAUSES} | {"SLIDE", "LIMIT", "QUERY"}
_GROUPS = [
    # the words for a group, the terminals that must all be accepted for it, further terminals that belong to it
    ("a pattern", "SEQ NAME", "QUOTED LPAR EXISTS NOT BANG TILDE OR AND"),
    (
        "a value",
        "STRING NUMBER NAME",
        "QUOTED TRUE FALSE NEXT LPAR LSQB MINUS NOT STAR TRENDS COMPLETE COLLAPSED INTERVAL",
    ),
    ("a length such as 10 min", "MINUS NUMBER INTERVAL", ""),
    ("a whole number", "MINUS NUMBER", ""),
    ("i, i-1, first, last or ..i-1", "INDEX_MARK", "NAME NUMBER"),
    ("a name", "NAME QUOTED", ""),
    ("the name of a column", "ANY_NAME", "QUOTED"),
    ("one of skip-till-any-match, skip-till-next-match, contiguous", "SEMANTICS_NAME", ""),
    ("a unit of time", "NAME", ""),
    ("a repetition (+, *, ?, {n})", "QMARK LBRACE", "PLUS STAR VBAR OR LSQB"),
    ("an operator", "PLUS MINUS", "STAR SLASH PERCENT COMPARE IN NOT BETWEEN LIKE IS AND OR DOT LPAR LSQB"),
    ("AND, OR", "AND OR", ""),
    (
        "another clause",
        "PATTERN WHERE WITHIN",
        "RETURN SEMANTICS GROUP_BY HAVING RANK_BY CONFIDENCE QUERY SEMICOLON $END",
    ),
]

_SIGNS = {
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','",
    "SEMICOLON": "','", "COLON": "':'", "DOT": "'.'", "PLUS": "'+'", "MINUS": "'-'", "STAR": "'*'", "SLASH": "'/'",
    "PERCENT": "'%'", "QMARK": "'?'", "VBAR": "'|'", "BANG": "'!'", "TILDE": "'~'", "NUMBER": "a number",
    "STRING": "a string in single quotes", "COMPARE": "a comparison", "QUOTED": "a name", "$END": "the end",
    "GROUP_BY": "GROUP BY", "RANK_BY": "RANK BY",
}  # fmt: skip

_SPECIAL = {
    ("WHERE", "a value"): "a condition",
    ("HAVING", "a value"): "a condition",
    ("QUERY", "the name of a column"): "a name",
}
"""What groups are called in some clauses."""


def expectation(accepted: frozenset[str], *, clause: str) -> str:
    """The accepted terminals in words; in WHERE and HAVING a value is called a condition, and QUERY has a name."""
    rest = set(accepted)
    if "PATTERN" not in rest:
        rest.discard("WITHIN")  # of an operand: rarely meant inside brackets
    words = ["AND"] if "AND" in rest and not {"OR", "SEQ"} & rest else []
    for name, shown_by, others in _GROUPS:
        if rest.issuperset(shown_by.split()):
            words.append(_SPECIAL.get((clause, name), name))
            rest -= {*shown_by.split(), *others.split()}
    signs = sorted({_SIGNS.get(terminal, terminal) for terminal in rest})
    return _joined([*signs, *words]) if signs or words else "something else"


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


@dataclass(frozen=True)
class Failure:
    """The place where the parser gave up: the lexeme there, and the terminals of the grammar that would have done."""

    source: SourceText
    lexemes: tuple[Lexeme, ...]
    number: int
    accepted: frozenset[str]

    @property
    def found(self) -> Lexeme:
        return self.lexemes[self.number]

    @property
    def touching(self) -> str:
        """The lexeme at the failure, together with the next one if no space is between them: `&&`, `::`."""
        after = self.after()
        return self.found.text + after.text if self.found.end == after.start else self.found.text

    def before(self, distance: int = 1) -> Lexeme:
        """An earlier lexeme; an empty one where there is none."""
        return self.lexemes[self.number - distance] if self.number >= distance else Lexeme("start", "", 0)

    def after(self, distance: int = 1) -> Lexeme:
        """A later lexeme; the last one, which is empty, stands for all behind the end."""
        return self.lexemes[min(self.number + distance, len(self.lexemes) - 1)]

    def word(self, number: int) -> str:
        """A lexeme in upper case; the last one, which is empty, stands for all behind the end."""
        return self.lexemes[min(number, len(self.lexemes) - 1)].text.upper() if number >= 0 else ""

    @cached_property
    def open(self) -> tuple[Lexeme, ...]:
        """The brackets that are open at the failure, outermost first."""
        return unclosed(self.lexemes[: self.number])

    @property
    def opened(self) -> int:
        """The number of the innermost open bracket; -1: there is none."""
        return self.lexemes.index(self.open[-1]) if self.open else -1

    @cached_property
    def clause(self) -> str:
        """The first word of the clause in which the failure lies."""
        words = (lexeme.text.upper() for lexeme in reversed(self.lexemes[: self.number]) if is_clause(lexeme))
        return next((word for word in words if word not in ("SLIDE", "LIMIT")), "")

    @cached_property
    def expected(self) -> str:
        return expectation(self.accepted, clause=self.clause)

    def first(self, start: int, text: str, default: int) -> int:
        """The number of the first lexeme of a text from `start` on."""
        return next((n for n in range(start, len(self.lexemes)) if self.lexemes[n].text == text), default)

    def last(self, word: str) -> int:
        """The number of the last lexeme that is a word, up to the failure; there must be one."""
        return next(n for n in range(self.number, -1, -1) if self.word(n) == word)

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
