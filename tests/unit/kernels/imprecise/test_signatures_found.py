"""The search against all worlds: every signature that matches in some world, with all that its chance depends on."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.unit.kernels.imprecise.imprecise_cases import ANY, NEXT, imprecise_cases
from tests.unit.kernels.imprecise.worlds_by_hand import (
    Chance,
    ImpreciseCase,
    by_points,
    by_worlds,
    found_by_search,
)

from trendloom.errors import BindError, PlanError

CALM = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def chances_found(case: ImpreciseCase, chunk: int) -> dict[object, Chance]:
    """What the search finds, with chances by brute force."""
    try:
        found = list(found_by_search(case, chunk))
    except (BindError, PlanError):
        assume(False)
        raise
    assert len({name for name, _ in found}) == len(found), "a signature was found twice"
    chances = {name: by_points(case, name, rivals) for name, rivals in found}
    return {name: chance for name, chance in chances.items() if chance is not None}


@CALM
@given(imprecise_cases(ANY), st.sampled_from([1, 7, 1 << 18]))
def test_any_match(case: ImpreciseCase, chunk: int) -> None:
    assert chances_found(case, chunk) == by_worlds(case)


@CALM
@given(imprecise_cases(NEXT), st.sampled_from([1, 7, 1 << 18]))
def test_next_match(case: ImpreciseCase, chunk: int) -> None:
    assert chances_found(case, chunk) == by_worlds(case)
