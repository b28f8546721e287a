"""A search for segments that ran out of time goes on, and whoever asks afterwards gets the better plan."""

from __future__ import annotations

from itertools import product

import pytest

from trendloom.kernels.shared.steps import CountedQuery, CountedStep
from trendloom.model.time import Window
from trendloom.planner.sharing import groups as sharing
from trendloom.planner.sharing.costs import Rates
from trendloom.planner.sharing.groups import SharingQuestion


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


@pytest.fixture(autouse=True)
def nothing_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SEARCHED", {})


def test_a_search_without_time_is_open_until_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MOST_SECONDS", 0.0)
    asked = question(WORDS)
    asked.segments()
    assert asked.is_open
    asked.search_on()
    found = question(WORDS).segments()
    assert {one.steps for one in found} == {one.letters for one in question(WORDS).choice(None).segments}
    assert found


def test_questions_that_are_alike_share_what_was_found() -> None:
    one, other = question(WORDS), question(WORDS)
    assert one.segments() == other.segments()
    assert len(sharing.SEARCHED) == 1


def test_prefixes_need_no_search() -> None:
    asked = question(["abc", "abd"])
    assert asked.segments() == ()
    assert not asked.is_open
    assert sharing.SEARCHED == {}
