"""A search for segments that was limited can be made without a limit; the same question has the same answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from trendloom.kernels.shared.steps import CountedQuery, CountedStep
from trendloom.model.time import Window
from trendloom.planner.sharing.groups import SharingQuestion
from trendloom.planner.sharing.queries import Rates


def question(words: list[str]) -> SharingQuestion:
    """Queries in long windows with few START events, where counting per START event pays."""
    steps = [tuple(CountedStep(ord(letter) - ord("a")) for letter in word) for word in words]
    queries = tuple(CountedQuery(Window(1600, 50), some, (("m", 1),)) for some in steps)
    rates = Rates((10_000.0,) * 26, keys=5_000.0, span=20_000.0, known=True)
    return SharingQuestion(tuple(words), queries, tuple((letter, ()) for letter in range(26)), rates)


WORDS = [
    *(f"{letter}abcde{letter}" for letter in "klmnop"),
    *(f"{first}{second}abcde" for first, second in product("hij", "qrs")),
    *(f"{letter}cdefg{letter}" for letter in "qrstuv"),
    *(f"{first}{second}cdefg" for first, second in product("hij", "tuv")),
    *(f"{letter}abcdefg{letter}" for letter in "wxyz"),
]


def test_a_limited_search_is_open_and_one_without_a_limit_is_not() -> None:
    limited = replace(question(WORDS), limit=0)
    assert not limited.search.best
    found = limited.without_limit.search
    assert found.best
    assert {one.steps for one in found.segments} == {one.steps for one in question(WORDS).choice().segments}
    assert found.segments


def test_questions_that_are_alike_have_one_answer() -> None:
    assert question(WORDS).search is question(WORDS).search


def test_prefixes_need_no_search() -> None:
    found = replace(question(["abc", "abd"]), limit=0).search
    assert (found.segments, found.best) == ((), True)
