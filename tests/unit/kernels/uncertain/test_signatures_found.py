"""The search against all worlds: every signature that matches in some world, with all that its chance depends on."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.unit.kernels.uncertain.imprecise_cases import ANY, NEXT, cases_of, imprecise_cases
from tests.unit.kernels.uncertain.worlds_by_hand import (
    Chance,
    ImpreciseCase,
    by_points,
    by_worlds,
    found_by_search,
    prepared,
)

from trendloom.errors import BindError, PlanError
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.uncertain.chunked import ChunkedSearch, Extensions
from trendloom.kernels.uncertain.depth_first import DepthFirstSearch, can_search_depth_first
from trendloom.kernels.uncertain.kernel import check_supported, span_in_points
from trendloom.kernels.uncertain.signatures import PartialSignatures

CALM = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


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


EXCUSES = [
    "SEQ(A+ a[], NOT C n, B b)",
    "SEQ(A+ a[], NOT C n, B b, A c)",
    "SEQ(A a, (B b)?, NOT C n, A c)",
    "SEQ(A+ a[], NOT (C n: n.x > a.x), B b)",
    "SEQ(A+ a[], NOT C n, B* b[], NOT B m, A c)",
    "SEQ(A+ a[], NOT B n, A b)",
]
"""Under skip-till-next-match, an event of the NOT keeps others from extending a run."""


@CALM
@given(imprecise_cases(ANY), st.sampled_from([1, 7, 1 << 18]))
def test_any_match(case: ImpreciseCase, chunk: int) -> None:
    assert chances_found(case, chunk) == by_worlds(case)


@CALM
@given(imprecise_cases(NEXT), st.sampled_from([1, 7, 1 << 18]))
def test_next_match(case: ImpreciseCase, chunk: int) -> None:
    assert chances_found(case, chunk) == by_worlds(case)


@pytest.mark.parametrize("pattern", EXCUSES)
def test_excuses(pattern: str) -> None:
    @settings(CALM, max_examples=30)
    @given(cases_of(f"PATTERN {pattern} SEMANTICS {NEXT}"))
    def check(case: ImpreciseCase) -> None:
        assert chances_found(case, 1 << 18) == by_worlds(case)

    check()


def test_an_event_of_a_not_excuses_a_follower() -> None:
    """Between two of A an event of B does no harm if one of C lies before it."""
    times = [("A", 0, 0), ("C", 1, 3), ("B", 2, 3), ("A", 5, 5), ("B", 6, 6)]
    events = tuple(
        {"id": n, "type": t, "low": low, "high": high, "x": 1, "k": 1} for n, (t, low, high) in enumerate(times)
    )
    case = ImpreciseCase(f"PATTERN SEQ(A+ a[], NOT C n, B b) SEMANTICS {NEXT}", events)
    rivals = {rival for _, rivals in found_by_search(case) for rival in rivals}
    assert any(rival.excuses for rival in rivals)
    assert any(rival.excused_by for rival in rivals)
    assert chances_found(case, 1 << 18) == by_worlds(case)


@CALM
@given(st.sampled_from([ANY, NEXT]).flatmap(imprecise_cases), st.sampled_from([Fraction(1, 3), Fraction(1, 2), 1]))
def test_threshold_leaves_out_nothing_likely(case: ImpreciseCase, threshold: Fraction) -> None:
    likely = {name: chance for name, chance in by_worlds(case).items() if chance.confidence >= threshold}
    assume(likely)
    try:
        found = list(found_by_search(case, 7, Fraction(threshold)))
    except (BindError, PlanError):
        assume(False)
        raise
    chances = {name: by_points(case, name, rivals) for name, rivals in found}
    assert likely == {name: chances.get(name) for name in likely}


def test_threshold_prunes_while_matching() -> None:
    """Two events of equal intervals are in order in less than half of the worlds."""
    events = tuple({"id": n, "type": kind, "low": 0, "high": 4, "x": 1, "k": 1} for n, kind in enumerate("AB"))
    for where in ("", " WHERE a.x = b.x"):
        case = ImpreciseCase(f"PATTERN SEQ(A a, B b){where}", events)
        assert len(list(found_by_search(case, threshold=Fraction(2, 5)))) == 1
        assert not list(found_by_search(case, threshold=Fraction(41, 100)))


@CALM
@given(imprecise_cases(ANY, negation=False), st.sampled_from([1, 5, 1 << 18]))
def test_walk_finds_what_growth_finds(case: ImpreciseCase, chunk: int) -> None:
    try:
        spec, block = prepared(case)
        check_supported(Automaton(spec))
    except (BindError, PlanError):
        assume(False)
        raise
    tests = Extensions(Automaton(spec.without_rules()), block, span_in_points(spec.window, block.grain))
    assert can_search_depth_first(tests)
    assert rows_of(DepthFirstSearch(tests, chunk).complete()) == rows_of(ChunkedSearch(tests, chunk).complete())


def rows_of(chunks: Iterable[PartialSignatures]) -> list[tuple[int, ...]]:
    """All that is known of partial signatures, in one order."""
    found = []
    for chunk in chunks:
        columns = (chunk.paths.events, chunk.paths.steps, chunk.least[:, None], chunk.latest[:, None])
        found += [tuple(row) for row in np.concatenate(columns, axis=1).tolist()]
    return sorted(found)
