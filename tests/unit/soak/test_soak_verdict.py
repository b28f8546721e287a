from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.soak.kills import KINDS, timetable
from tests.soak.report import Outcome, page
from tests.soak.verdict import judge

MIB = 1 << 20
FLAT = [(float(at), 200.0 * MIB) for at in range(1000)]


def test_what_grows_is_not_flat() -> None:
    slowly = [(at, value * (1 + at / 3000)) for at, value in FLAT]
    assert judge("memory", FLAT, 0, 1000, MIB).flat
    assert not judge("memory", slowly, 0, 1000, MIB).flat


def test_holes_and_the_warm_up_do_not_count() -> None:
    holes = [(at, 0 if at > 600 and at % 5 == 0 else value / 2 if at < 190 else value) for at, value in FLAT]
    assert judge("memory", holes, 0, 1000, MIB).growth == 1


def test_a_small_rise_of_something_small_is_noise() -> None:
    rising = [(at, 5.0 if at < 600 else 9.0) for at, _ in FLAT]
    assert judge("rows", rising, 0, 1000, noise=4).flat
    assert not judge("rows", rising, 0, 1000, noise=3).flat


def test_a_series_that_ends_is_no_proof() -> None:
    with pytest.raises(ValueError, match="next to nothing"):
        judge("memory", FLAT[:500], 0, 1000, MIB)


@pytest.mark.parametrize("kills", [8, 12])
def test_both_halves_of_a_run_see_the_same_kills(kills: int) -> None:
    times, kinds = zip(*timetable(kills, 1200, random.Random(3)), strict=True)
    assert sorted(times) == list(times)
    assert times[-1] < 1200
    assert Counter(kinds[: kills // 2]) == Counter(kinds[kills // 2 :])
    assert set(kinds) == set(KINDS)


@pytest.mark.parametrize(
    ("differences", "late_differ", "said"),
    [({}, False, "**Passed.**"), ({"m": (3, 0)}, False, "| m | 10 | 3 | 0 |"), ({}, True, "**FAILED.**")],
)
def test_the_report_says_what_is_lost(differences: dict[str, tuple[int, int]], late_differ: bool, said: str) -> None:
    verdicts = [judge("memory", FLAT, 0, 1000, MIB)]
    outcome = Outcome(20, 1000, 1, 0.0, 99, 2, {"m": 10}, differences, late_differ, [], [1.0, 2.0], verdicts)
    assert said in page(outcome)
    assert outcome.passed == ("Passed" in page(outcome))
