"""One bad query of a text spoils no other: blocks are told apart and parsed one by one, each at its place."""

from __future__ import annotations

import pytest

from trendloom.errors import ParseError
from trendloom.frontend.tql.parser import parse_blocks

GOOD = "QUERY a: PATTERN SEQ(A, B) WITHIN 5\n"
LAST = "QUERY c: PATTERN SEQ(A, C) WITHIN 5\n"


def names(text: str) -> list[str | None]:
    return [query.name for query in parse_blocks(text).queries]


def test_a_text_that_parses_is_taken_as_it_is() -> None:
    assert parse_blocks(GOOD + LAST).whole
    assert names(GOOD + LAST) == ["a", "c"]
    assert names("PATTERN A WITHIN 5") == [None]


def test_a_block_that_does_not_parse_leaves_the_others() -> None:
    found = parse_blocks(GOOD + "  QUERY b: PATTERN SEQ(A,\n" + LAST)
    assert [query.name for query in found.queries] == ["a", "c"]
    assert not found.whole
    (error,) = found.errors
    assert error.line in (2, 3)
    assert "QUERY b" in str(error) or "PATTERN SEQ(A," in str(error)


@pytest.mark.parametrize("hidden", ["-- QUERY x: it's a comment\n", "QUERY b: PATTERN A WHERE A.x = 'QUERY x:'\n"])
def test_nothing_begins_in_comments_and_strings(hidden: str) -> None:
    found = parse_blocks(GOOD + hidden + "QUERY d: PATTERN (\n" + LAST)
    assert "x" not in [query.name for query in found.queries]
    assert [query.name for query in found.queries][-1] == "c"
    assert len(found.errors) == 1


def test_names_given_twice_are_refused_and_the_others_stay() -> None:
    found = parse_blocks(GOOD + LAST + GOOD)
    assert [query.name for query in found.queries] == ["c"]
    (error,) = found.errors
    assert "Two queries are named 'a'" in str(error)


@pytest.mark.parametrize("text", ["", "-- nothing\n", "PATTERN", "garbage\n" + GOOD, "QUERY"])
def test_a_text_whose_queries_cannot_be_told_apart_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_blocks(text)
