"""Confidences and time ranges are those of all worlds: exactly in fractions, within the stated bound in doubles."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kernels.imprecise.confidence.worlds_of_signatures import Case, signatures_of, some_cases

from trendloom.kernels.imprecise.confidence.chances import _in_doubles as in_doubles
from trendloom.kernels.imprecise.confidence.chances import chances, exact_chances, rounding_error

KINDS = {
    "in order": some_cases(),
    "one gap each": some_cases(most_rivals=3),
    "several gaps": some_cases(most_rivals=3, several_gaps=True),
    "excuses": some_cases(most_rivals=4, several_gaps=True, excuses=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_as_in_all_worlds(kind: str) -> None:
    @settings(max_examples=300, deadline=None)
    @given(KINDS[kind])
    def check(case: Case) -> None:
        signatures, block = signatures_of([case])
        found = exact_chances(signatures, block)[0]
        expected = case.answer()
        assert found[0] == (0 if expected is None else expected[0])
        if expected is not None:
            assert found[1:] == expected[1:]

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_doubles_keep_their_bound(kind: str) -> None:
    @settings(max_examples=100, deadline=None)
    @given(KINDS[kind], st.sampled_from([None, Fraction(1, 9), Fraction(1, 2), Fraction(1)]))
    def check(case: Case, threshold: Fraction | None) -> None:
        signatures, block = signatures_of([case], grain=10)
        found, kept = chances(signatures, block, threshold)
        expected = case.answer()
        if expected is None:
            assert not kept[0]
            assert found.confidence[0] == 0
            return
        weights = in_doubles(signatures, block)
        error = abs(Fraction(float(weights.confidence[0])) - expected[0])
        assert error <= Fraction(float(rounding_error(weights.roundings)[0])) * expected[0]
        assert (found.low[0], found.high[0]) == (10 * expected[1], 10 * expected[2])
        assert bool(kept[0]) == (threshold is None or expected[0] >= threshold)

    check()
