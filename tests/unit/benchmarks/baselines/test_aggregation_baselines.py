"""Baselines are what benchmarks check answers by, so they are checked themselves: by the definitions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.aggregation.kernels import RISING, RUNS, SEQUENCE
from benchmarks.baselines import aggregation as baselines
from benchmarks.cases.events import keyed_events, same_rows, stream
from benchmarks.engines.end_to_end import COUNTED, expected_counts
from benchmarks.harness.planned import Planned, planned

import trendloom as tl

EVENTS = 90
AB = {"A": 0.5, "B": 0.5}


def by_definition(case: Planned, text: str, table: Any) -> list[int]:
    """Matches by span, 0 where a window has none."""
    rows = tl.run(text, table, engine="reference").to_pylist()
    counts = {row["window_start"]: int(row["COUNT(*)"]) for row in rows}
    return [counts.get(int(start), 0) for start in case.spans.start]


def test_walks_count_sequences() -> None:
    text, table = SEQUENCE.format(within=12, slide=12), stream(EVENTS, AB)
    case = planned(text, table)
    fits, spans, expected = case.block.fits[0], case.spans, by_definition(case, text, table)
    assert baselines.walk(fits, spans.low, spans.high).tolist() == expected
    assert baselines.exact(baselines.walk_wide(fits, spans.low, spans.high)).tolist() == expected


def test_lanes_count_sequences_of_overlapping_windows() -> None:
    text, table = SEQUENCE.format(within=12, slide=4), stream(EVENTS, AB)
    case = planned(text, table)
    found = baselines.walk_lanes(case.block.fits[0], case.spans.low, case.spans.high, 3)
    assert found.tolist() == by_definition(case, text, table)


def test_wide_walk_is_exact_beyond_64_bits() -> None:
    fits = np.array([1] * 100 + [2], np.uint8)
    assert baselines.exact(baselines.walk_wide(fits, np.array([0]), np.array([101])))[0] == 2**100 - 1


def test_walk_on_counts_across_chunks() -> None:
    fits = np.random.default_rng(1).integers(1, 3, 5_000).astype(np.uint8)
    state, open_, closed = baselines.start_of_walk(), 0, 0
    for chunk in np.split(fits, 5):
        baselines.walk_on(state, chunk)
    for word in fits:
        open_, closed = (2 * open_ + 1, closed) if word == 1 else (open_, closed + open_)
    assert baselines.log_of_walk(state) == pytest.approx(
        len(str(closed)) - 1 + np.log10(float(str(closed)[:15]) / 1e14)
    )


@pytest.mark.parametrize("count", [1, 2, 9])
def test_rising_subsequences(count: int) -> None:
    price = np.random.default_rng(2).integers(0, 6, count).astype(float)  # some are equal
    chosen = [some for size in range(1, count + 1) for some in combinations(price, size)]
    expected = sum(all(a < b for a, b in pairwise(some)) for some in chosen)
    assert baselines.increasing_by_scan(price) == expected
    for logarithm in (baselines.log_increasing, baselines.log_increasing_by_scan):
        assert logarithm(price) == pytest.approx(np.log10(expected))


def test_rising_subsequences_beyond_doubles() -> None:
    price = np.arange(2_000.0)
    expected = 2_000 * np.log10(2.0)  # every set of events but the empty one
    assert baselines.log_increasing(price) == pytest.approx(expected)
    assert baselines.log_increasing_by_scan(price) == pytest.approx(expected)


@pytest.mark.parametrize("semantics", ["skip-till-next-match", "contiguous"])
def test_runs(semantics: str) -> None:
    text = RUNS.format(semantics=semantics).replace("1000", "30")
    shares = {"A": 0.5, "B": 0.3, "C": 0.2} if semantics == "contiguous" else AB
    table = stream(EVENTS, shares)
    case = planned(text, table)
    found = baselines.runs(case.block.fits[0], case.spans.low, case.spans.high)
    assert found.tolist() == by_definition(case, text, table)


@pytest.mark.parametrize(
    ("semantics", "by_hand"),
    [("skip-till-next-match", baselines.rising_next), ("contiguous", baselines.rising_contiguous)],
)
def test_rising_runs(semantics: str, by_hand: Callable[..., Any]) -> None:
    text = RISING.format(semantics=semantics).replace("1000", "30")
    table = stream(EVENTS, {"S": 1.0})
    case = planned(text, table)
    found = by_hand(case.block.columns["price"].values, case.spans.low, case.spans.high)
    assert found.tolist() == by_definition(case, text, table)


def test_expected_counts_of_keys() -> None:
    table = keyed_events(200, 5)
    found = tl.run(COUNTED.format(within=40), table, engine="reference")
    assert same_rows(found, expected_counts(table, 40).cast(found.schema))
