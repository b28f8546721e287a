"""The query text and the places in it: offsets to lines and columns, and a rough scan into words.

Lines are those of `str.splitlines`, which is also how errors draw them, so tabs, CRLF and odd line breaks cannot move a
caret. The scan is independent of the grammar; it serves error messages and never fails.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from trendloom.errors import Span

_LEXEMES = re.compile(
    r"""(?P<skip>[\s\ufeff]+|--[^\r\n]*)
    |(?P<string>'(?:[^']|'')*')
    |(?P<open_string>')
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<open_quoted>`)
    |(?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<mark>\.\.|<=|>=|<>|!=|[-+*/%(){}\[\],;:.?!~|<>=])
    |(?P<unknown>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Lexeme:
    """A word, number, string or sign of the text. `kind` 'end' is the empty one after the last."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class SourceText:
    """A query text and the line and column of each of its characters."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _line_starts(self) -> list[int]:
        lengths = [len(line) for line in self.text.splitlines(keepends=True)]
        return [0, *accumulate(lengths)]

    def span(self, start: int, end: int) -> Span:
        """The place of text[start:end]; its length stops at the end of the first line."""
        starts = self._line_starts
        line = max(1, min(bisect_right(starts, start), len(starts) - 1))
        first = starts[line - 1]
        shown = self.text[first : starts[line]] if line < len(starts) else ""
        room = len(shown.rstrip()) - (start - first)
        return Span(line, start - first + 1, max(1, min(end - start, room)))

    def offset(self, span: Span) -> int:
        """Where a span starts in the text."""
        return self._line_starts[span.line - 1] + span.column - 1

    def lexemes(self, start: int = 0) -> list[Lexeme]:
        """The words and signs from an offset on, spaces and comments left out, closed by the 'end' lexeme."""
        found = [
            Lexeme(str(match.lastgroup), match.group(), match.start())
            for match in _LEXEMES.finditer(self.text, start)
            if match.lastgroup != "skip"
        ]
        return [*found, Lexeme("end", "", found[-1].end if found else start)]
