"""The queries of a text one by one, where the text as a whole does not parse: one bad query spoils no other.

A block begins with `QUERY name:` and ends where the next one begins. Each is parsed by itself, at its place in the
text, so that errors show the right line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from trendloom.errors import ParseError
from trendloom.frontend.tql.parser import parse
from trendloom.frontend.tql.tree import Query

HEAD = re.compile(r"\bQUERY\s+(?:[^\W\d]\w*|`(?:[^`]|``)+`)\s*:", re.IGNORECASE)
HIDDEN = re.compile(r"--[^\r\n]*|'(?:[^'\r\n]|'')*'")
"""Comments and strings, in which nothing begins."""


@dataclass(frozen=True)
class ParsedText:
    """The queries of a text that can be had, and what is wrong with the others."""

    queries: tuple[Query, ...]
    errors: tuple[ParseError, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the text is a workload as it stands."""
        return not self.errors


def parse_blocks(text: str) -> ParsedText:
    """All queries that parse and have a name of their own; a text in which queries cannot be told apart is refused."""
    try:
        return ParsedText(parse(text))
    except ParseError as error:
        blocks = _blocks(text)
        if not blocks:
            raise
        return _one_by_one(blocks, error)


def _one_by_one(blocks: list[str], whole: ParseError) -> ParsedText:
    found: list[Query] = []
    errors: list[ParseError] = []
    for block in blocks:
        try:
            found += parse(block)
        except ParseError as error:
            errors.append(error)
    names = [query.name for query in found]
    single = tuple(query for query in found if names.count(query.name) == 1)
    return ParsedText(single, tuple(errors) or (whole,))


def _blocks(text: str) -> list[str]:
    """The text of each query, with as many empty lines and blanks before it as it takes to keep it in its place."""
    shown = HIDDEN.sub(lambda hidden: " " * len(hidden.group()), text)
    begins = [head.start() for head in HEAD.finditer(shown)]
    if not begins or shown[: begins[0]].strip("\ufeff \t\r\n"):
        return []
    return [re.sub(r"[^\r\n]", " ", text[:begin]) + text[begin:end] for begin, end in pairwise([*begins, len(text)])]
