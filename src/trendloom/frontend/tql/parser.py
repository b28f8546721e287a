"""Text to syntax tree: the entry points of the language.

The grammar is compiled at the first parse and kept (about a tenth of a second, once); importing this module does not
even load Lark. Trees are frozen, so those of the last texts are kept, too: a workbench, a stream and a test parse the
same ones again and again. `syntax_errors` explains why a text is not a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from trendloom.errors import OptionError, ParseError
from trendloom.frontend.source import SourceText
from trendloom.frontend.tql.keywords import RESERVED
from trendloom.frontend.tree import Expression, Pattern, Query

if TYPE_CHECKING:
    from lark import Lark


_HEAD = re.compile(r"\bQUERY\s+(?:[^\W\d]\w*|`(?:[^`]|``)+`)\s*:", re.IGNORECASE)
_HIDDEN = re.compile(r"--[^\r\n]*|'(?:[^'\r\n]|'')*'")
"""Comments and strings, in which nothing begins."""


@dataclass(frozen=True)
class ParsedText:
    """The queries of a text that parse, and what is wrong with the others."""

    queries: tuple[Query, ...]
    errors: tuple[ParseError, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the text is a workload as it stands."""
        return not self.errors


def parse(text: str) -> tuple[Query, ...]:
    """The queries of a text: one without a name, or a workload of `QUERY name:` queries."""
    if not isinstance(text, str):
        raise _no_text(text)
    return cast("tuple[Query, ...]", _parse(text, "query_text"))


def parse_query(text: str) -> Query:
    """The one query of a text."""
    queries = parse(text)
    if len(queries) > 1:
        names = ", ".join(str(query.name) for query in queries)
        raise ParseError(
            f"Expected one query, found {len(queries)}", queries[1].span, hint=f"choose one of {names}", text=text
        )
    return queries[0]


def parse_expression(text: str) -> Expression:
    """A condition or value alone."""
    return cast(Expression, _parse(text, "expression"))


def parse_pattern(text: str) -> Pattern:
    """A pattern alone."""
    return cast(Pattern, _parse(text, "pattern"))


@lru_cache(maxsize=64)
def _parse(text: str, start: str) -> Any:
    from lark.exceptions import UnexpectedInput

    from trendloom.frontend.tql.build_tree import Builder
    from trendloom.frontend.tql.syntax_errors import explain

    source = SourceText(text)
    try:
        return Builder(source).build(_grammar().parse(text, start=start))
    except UnexpectedInput as failure:
        raise explain(_grammar(), start, source, failure) from None
    except RecursionError:
        message = "The query is nested too deeply to be read"
        raise ParseError(message, source.span(0, 1), text=source.text) from None


def _no_text(given: object) -> OptionError:
    hint = None
    if isinstance(given, PurePath):
        hint = "give its text: path.read_text()"
    elif isinstance(given, Iterable) and not isinstance(given, bytes):
        hint = "several queries are one text: QUERY first: ... QUERY second: ..."
    return OptionError(f"a query must be text, not of type {type(given).__name__}", hint=hint)


@cache
def _grammar() -> Lark:
    from lark import Lark

    grammar = resources.files("trendloom.frontend.tql").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar.replace("%RESERVED%", "|".join(RESERVED)),
        parser="lalr",
        lexer="contextual",
        start=["query_text", "expression", "pattern"],
        propagate_positions=True,
    )


# --------------------------------------------------------------------------------------------- query by query
#
# A block begins with `QUERY name:` and ends where the next one begins. Each is parsed by itself, at its place in the
# text, so that errors show the right line and one bad query spoils no other.


def parse_blocks(text: str) -> ParsedText:
    """All queries that parse and have a name of their own; a text in which queries cannot be separated is refused."""
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
    shown = _HIDDEN.sub(lambda hidden: " " * len(hidden.group()), text)
    begins = [head.start() for head in _HEAD.finditer(shown)]
    if not begins or shown[: begins[0]].strip("\ufeff \t\r\n"):
        return []
    return [re.sub(r"[^\r\n]", " ", text[:begin]) + text[begin:end] for begin, end in pairwise([*begins, len(text)])]
