"""How many random cases a property is tried on: some that are the same in every run, or many new ones.

`make test` looks at the same ones each time, `make test-deep` at as many as TRENDLOOM_EXAMPLES says: a number, or how
many times the usual ones ("10x").
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

MORE = os.environ.get("TRENDLOOM_EXAMPLES")
DEEPER = 10
"""How many times as far a deep run goes where there are no examples to count."""

Drawn = TypeVar("Drawn")
Kept = TypeVar("Kept")


def amount(usual: int) -> int:
    """How many cases where `usual` ones are for every day."""
    if MORE is None:
        return usual
    return usual * int(MORE[:-1]) if MORE.endswith("x") else int(MORE)


def rounds(usual: int) -> int:
    """How many rounds of a loop, or seeds, where `usual` ones are for every day."""
    return DEEPER * usual if MORE else usual


def at_least(share: float, cases: int) -> float:
    """The fewest of so many cases that must have something of which, by design, about this share has it.

    Chance may take two standard deviations of it; none at all is never enough.
    """
    usual = share * cases
    return max(1.0, usual - 2 * usual**0.5)


def thorough(examples: int) -> settings:
    """Settings for that many cases, whatever time they take."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=not MORE)


class Enough(Exception):
    """Raised in a search for cases when there are as many as are wanted."""


def first_cases(
    drawn: st.SearchStrategy[Drawn], keep: Callable[[Drawn], Kept | None], count: int, *, seed: int, most: int
) -> list[Kept]:
    """What `keep` makes of the first `count` cases that it does not refuse with None, of `most` that are drawn.

    They are the same in every run, for tests where a case costs seconds.
    """
    found: list[Kept] = []

    @hypothesis.seed(seed)
    @settings(thorough(most), database=None, phases=[Phase.generate], report_multiple_bugs=False, derandomize=False)
    @given(drawn)
    def collect(case: Drawn) -> None:
        if len(found) < count and (kept := keep(case)) is not None:
            found.append(kept)
        if len(found) == count:
            raise Enough

    with suppress(Enough):
        collect()
    return found
