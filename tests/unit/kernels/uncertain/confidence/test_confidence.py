"""Confidences and time ranges are those of all worlds: exactly in fractions, within the stated bound in doubles."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kernels.uncertain.confidence.worlds_of_signatures import (
    Case,
    Imprecise,
    block_of,
    excused_cases,
    imprecise,
    signatures_of,
    some_cases,
)

from trendloom.errors import RunError
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.uncertain.confidence.confidence import _in_doubles as in_doubles
from trendloom.kernels.uncertain.confidence.confidence import confidences_of, exact_confidence, rounding_error
from trendloom.kernels.uncertain.confidence.in_order import prefix_error, prefix_masses, surely_below
from trendloom.kernels.uncertain.confidence.quiet_gaps import MOST_AT_ONCE
from trendloom.kernels.uncertain.signatures import Signatures


def exact_confidences(signatures: Signatures, block: IntervalBlock) -> list[tuple[Fraction, int, int]]:
    """The exact confidence of each signature, and the first and last point it covers."""
    return [exact_confidence(signatures, block, number) for number in range(len(signatures))]


KINDS = {
    "in order": some_cases(),
    "one gap each": some_cases(most_rivals=3),
    "several gaps": some_cases(most_rivals=3, several_gaps=True),
    "excuses": excused_cases(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_as_in_all_worlds(kind: str) -> None:
    @settings(max_examples=300, deadline=None)
    @given(KINDS[kind])
    def check(case: Case) -> None:
        signatures, block = signatures_of([case])
        found = exact_confidences(signatures, block)[0]
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
        found, kept = confidences_of(signatures, block, threshold)
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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(KINDS["several gaps"], KINDS["excuses"]), min_size=2, max_size=4))
def test_signatures_of_a_chunk_do_not_disturb_each_other(cases: list[Case]) -> None:
    alike = [case for case in cases if (case.span, case.window is None) == (cases[0].span, cases[0].window is None)]
    signatures, block = signatures_of(alike)
    found, kept = confidences_of(signatures, block, None)
    for number, case in enumerate(alike):
        expected = case.answer()
        assert bool(kept[number]) == (expected is not None)
        if expected is not None:
            assert found.confidence[number] == pytest.approx(float(expected[0]), rel=1e-12)
            assert (found.low[number], found.high[number]) == expected[1:]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(imprecise(0, 3), imprecise(1, 3), imprecise(2, 4)), min_size=1, max_size=2),
    st.sampled_from([None, 2, 4, 7]),
    st.sampled_from([[], [(0, 4)], [(0, 4), (1, 5)]]),
)
def test_signatures_that_begin_alike_share_sums(
    some: list[tuple[Imprecise, ...]], span: int | None, windows: list[tuple[int, int]]
) -> None:
    """All choices of one event for each place, so that neighbours have their first one or two events in common."""
    by_place = list(zip(*some, strict=True))
    count = len(some)
    chosen = list(itertools.product(range(count), repeat=3))
    numbers = [[place * count + one for place, one in enumerate(choice)] for choice in chosen]
    span = None if windows else span
    taken = [windows[number % len(windows)] if windows else None for number in range(len(chosen))]
    positions = np.zeros(3 * len(chosen), np.int32)
    matches = Matches(np.arange(0, 3 * len(chosen) + 1, 3), np.concatenate(numbers), positions)
    together = Signatures(matches, np.array(taken) if windows else None, span, None)
    found, kept = confidences_of(together, block_of(list(itertools.chain.from_iterable(by_place))), None)
    for number, choice in enumerate(chosen):
        events = tuple(by_place[place][one] for place, one in enumerate(choice))
        expected = Case(events, span=span, window=taken[number]).answer()
        assert bool(kept[number]) == (expected is not None)
        if expected is not None:
            assert found.confidence[number] == pytest.approx(float(expected[0]), rel=1e-12)
            assert (found.low[number], found.high[number]) == expected[1:]


def alike(low: int, high: int) -> Imprecise:
    """An event whose points are equally likely."""
    return Imprecise(low, (1,) * (high - low + 1), False)


A1, B3, C2, C4 = alike(1, 5), alike(3, 5), alike(3, 5), alike(4, 8)


@pytest.mark.parametrize(
    ("case", "confidence", "times"),
    [
        (Case((A1, B3, C2), span=4), Fraction(1, 9), (1, 5)),
        (Case((A1, B3, C4), span=4), Fraction(3, 25), (1, 7)),
        (Case((A1, B3, C2), (C4,), ((0, 2, True, 0, 0),), span=4), Fraction(8, 75), (1, 5)),
        (Case((A1, B3, C4), (C2,), ((0, 2, True, 0, 0),), span=4), Fraction(1, 9), (1, 7)),
    ],
)
def test_the_figure_of_the_thesis(case: Case, confidence: Fraction, times: tuple[int, int]) -> None:
    """Zhang, figure 3.1: a rival at the very time of an event is not between two, so 8/75 and not 17/225."""
    assert exact_confidences(*signatures_of([case])) == [(confidence, *times)]


def test_a_span_raises_the_first_bound() -> None:
    case = Case((alike(1, 10), alike(8, 8)), span=4)
    assert exact_confidences(*signatures_of([case])) == [(Fraction(3, 10), 5, 8)]


def test_what_is_certain_is_one_and_not_almost() -> None:
    late = alike(200, 206)
    case = Case((alike(0, 20), alike(21, 30), alike(40, 46)), (late,), ((0, 1, True, 0, 0),), span=50)
    found, kept = confidences_of(*signatures_of([case]), Fraction(1))
    assert found.confidence.tolist() == [1.0]
    assert kept.all()


@pytest.mark.parametrize("parts", [3, 7, 10, 21, 49])
def test_a_confidence_at_the_threshold_is_kept(parts: int) -> None:
    """In doubles many of these sums fall a little short of the share, or exceed it."""
    cases = [Case((alike(0, parts - 1), alike(number, number))) for number in range(1, parts)]
    for number in range(1, parts):
        _, kept = confidences_of(*signatures_of(cases), Fraction(number, parts))
        assert kept.tolist() == [other >= number for other in range(1, parts)]


def test_numbers_too_small_for_doubles() -> None:
    """All of 120 events but the last must lie where they hardly ever do: 2^-1190 is above zero, but not as a double."""
    events = tuple(Imprecise(number, (1, *([0] * (129 - number)), 2**10 - 1), True) for number in range(120))
    signatures, block = signatures_of([Case(events)])
    found, kept = confidences_of(signatures, block, None)
    assert exact_confidences(signatures, block) == [(Fraction(1, 2**1190), 0, 130)]
    assert (kept.tolist(), found.low.tolist(), found.high.tolist()) == ([True], [0], [130])
    assert not confidences_of(signatures, block, Fraction(1, 2**1000))[1].any()


def test_small_numbers_that_are_summed_away() -> None:
    """A product of the least probabilities would not be a double, but the confidence is a large one."""
    events = tuple(Imprecise(10 * number, (1, *([0] * 8), 2**10 - 1), True) for number in range(120))
    signatures, block = signatures_of([Case((*events, alike(10 * 119 + 1, 10 * 119 + 1)))])
    found, kept = confidences_of(signatures, block, None)
    assert (found.confidence[0], kept[0]) == (2.0**-10, True)
    assert (found.low[0], found.high[0]) == (0, 10 * 119 + 1)


def test_more_rivals_at_once_than_there_may_be() -> None:
    events = (alike(0, 3), alike(3, 6), alike(6, 9))
    for count in (MOST_AT_ONCE, MOST_AT_ONCE + 1):
        rows = tuple((rival, gap, True, 0, 0) for rival in range(count) for gap in (1, 2))
        signatures, block = signatures_of([Case(events, (alike(3, 5),) * count, rows)])
        if count == MOST_AT_ONCE:
            assert 0 < confidences_of(signatures, block, None)[0].confidence[0] < 1
        else:
            with pytest.raises(RunError, match="more than 12 events") as found:
                confidences_of(signatures, block, None)
            assert "grain" in str(found.value.hint)


def test_rivals_that_never_meet_share_a_bit() -> None:
    events = tuple(alike(10 * number, 10 * number + 4) for number in range(20))
    rivals = tuple(alike(10 * number - 2, 10 * number + 6) for number in range(1, 19))
    rows = tuple((rival, gap, True, 0, 0) for rival in range(18) for gap in (rival + 1, rival + 2))
    signatures, block = signatures_of([Case(events, rivals, rows)])
    found, _ = confidences_of(signatures, block, None)
    ((exact, low, high),) = exact_confidences(signatures, block)
    assert found.confidence[0] == pytest.approx(float(exact), rel=1e-12)
    assert (low, high) == (0, 194)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(imprecise(0, 4), imprecise(2, 4), imprecise(3, 4)), min_size=1, max_size=3))
def test_prefixes_bound_what_grows_out_of_them(some: list[tuple[Imprecise, ...]]) -> None:
    events = list(itertools.chain.from_iterable(some))
    block = block_of(events)
    vectors, sums = prefix_masses(block, None, np.arange(0, len(events), 3))
    assert sums == pytest.approx(np.ones(len(some)))
    for length in (2, 3):
        before = sums
        vectors, sums = prefix_masses(block, vectors, np.arange(length - 1, len(events), 3))
        expected = [answer[0] if (answer := Case(own[:length]).answer()) else Fraction(0) for own in some]
        error = prefix_error(block, length)
        assert all(abs(float(want) - got) <= error * float(want) for want, got in zip(expected, sums, strict=True))
        assert (sums <= before * (1 + error)).all()
        for want in filter(None, expected):
            below = surely_below(sums, want, error)
            assert not any(own >= want for own, is_below in zip(expected, below, strict=True) if is_below)
