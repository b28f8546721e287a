"""The words of the language: which are reserved, the clauses, and how names and strings are written.

Reserved words cannot be types or variables unless they stand in backquotes; functions, units, `first`, `last`, `i` and
`MERGE` are ordinary names that mean something in their places only.
"""

from __future__ import annotations

import difflib
import re
from typing import Final

from trendloom.model.selection import Semantics
from trendloom.model.time import MICROSECONDS, UNIT_WORDS

RESERVED = (
    "RETURN", "PATTERN", "SEMANTICS", "WHERE", "GROUP", "BY", "HAVING", "WITHIN", "SLIDE", "RANK", "LIMIT",
    "CONFIDENCE", "QUERY", "SEQ", "NOT", "OR", "AND", "EXISTS", "NEXT", "IN", "BETWEEN", "IS", "NULL", "LIKE", "TRUE",
    "FALSE", "AS", "ASC", "DESC", "TRENDS", "COMPLETE", "COLLAPSED",
)  # fmt: skip

CLAUSES = (
    "RETURN", "PATTERN", "SEMANTICS", "WHERE", "GROUP BY", "HAVING", "WITHIN", "RANK BY", "CONFIDENCE",
)  # fmt: skip
"""The clauses in the order in which the printer writes them."""

AGGREGATES = frozenset({"count", "min", "max", "sum", "avg"})
"""Functions that also exist over all matches; printed in upper case there."""

PROBABILITY: Final = "probability"
"""The function that exists over all matches only, as PROBABILITY(*)."""

UNITS: dict[str, str] = (
    {short: short for short in MICROSECONDS}
    | UNIT_WORDS
    | {word + "s": short for word, short in UNIT_WORDS.items()}
)  # fmt: skip
"""Every spelling of a unit (lower case) to its short name."""

SEMANTICS: dict[str, Semantics] = {semantics.value: semantics for semantics in Semantics}

_PLAIN = re.compile(r"[^\W\d]\w*")
_RESERVED = re.compile("|".join(RESERVED), re.IGNORECASE)
_SQL_HABITS = {"SELECT": "RETURN", "MATCH": "PATTERN", "FILTER": "WHERE", "WINDOW": "WITHIN"}
_CLAUSE_HEADS = {clause.split()[0]: clause for clause in CLAUSES} | {
    "GROUPBY": "GROUP BY", "RANKBY": "RANK BY", "SLIDE": "SLIDE", "LIMIT": "LIMIT", "QUERY": "QUERY",
}  # fmt: skip


def is_reserved(word: str) -> bool:
    """Whether a plain word is a keyword, in the lexer's sense of ignoring case."""
    return _RESERVED.fullmatch(word) is not None


def write_name(name: str, *, reserved_allowed: bool = False) -> str:
    """A name as it must be written: in backquotes where it is not a plain word, or a reserved one."""
    if _PLAIN.fullmatch(name) and (reserved_allowed or not is_reserved(name)):
        return name
    return "`" + name.replace("`", "``") + "`"


def write_string(text: str) -> str:
    """A text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def closest_clause(word: str) -> str | None:
    """The clause that somebody who wrote `word` probably meant; None where it resembles none, or is one."""
    upper = word.upper()
    if upper in _SQL_HABITS:
        return _SQL_HABITS[upper]
    close = difflib.get_close_matches(upper, _CLAUSE_HEADS, n=1, cutoff=0.7)
    return _CLAUSE_HEADS[close[0]] if close and not is_reserved(word) else None
