"""Baselines of imprecise time find what the definition finds, world by world, and all find the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.baselines.imprecise import by_selectivity, from_any_state, in_order
from benchmarks.baselines.imprecise_confidences import Signatures, same_signatures
from benchmarks.baselines.imprecise_points import by_points
from benchmarks.cases.imprecise import (
    EXCLUSIVE,
    OVERLAPPING,
    Uncertain,
    moves,
    multiples,
    tool_moves,
    uncertain,
    values_in_turn,
)

import trendloom as tl

BASELINES = {
    "by points": by_points,
    "in the order of the pattern": in_order,
    "in another order": partial(in_order, order=np.array([2, 0, 1])),
    "from any state": from_any_state,
}
QUERY = """
RETURN a.id, b.id, c.id  PATTERN SEQ(E a, E b, E c)  SEMANTICS skip-till-{}-match
WHERE a.value % {} = 0 AND b.value % {} = 0 AND c.value % {} = 0  WITHIN {}
"""


def small(seed: int) -> pa.Table:
    """Events with intervals of one to three points."""
    random = np.random.default_rng(seed)
    low = np.sort(random.integers(0, 8, 7))
    high = low + random.integers(0, 3, 7)
    return pa.table({"low": low, "high": high, "type": ["E"] * 7, "id": range(7), "value": random.integers(2, 8, 7)})


def defined(events: pa.Table, semantics: str, numbers: tuple[int, ...], within: int) -> Signatures:
    rows = tl.run(
        QUERY.format(semantics, *numbers, within), events, engine="reference", time_low="low", time_high="high"
    ).to_pydict()
    ids = np.array([rows[f"{name}.id"] for name in "abc"], np.int64).T.reshape(-1, 3)
    return Signatures(ids, *(np.array(rows[name]) for name in ("confidence", "time_low", "time_high")))


def of_table(events: pa.Table, numbers: tuple[int, ...]) -> Uncertain:
    value, low, high = (events[name].to_numpy() for name in ("value", "low", "high"))
    return uncertain(low, high, [value % number == 0 for number in numbers], np.zeros(len(events), np.int64))


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("within", [3, 5, 20])
def test_any_match_is_as_defined(name: str, within: int) -> None:
    matches = 0
    for seed in range(4):
        events = small(seed)
        expected = defined(events, "any", (2, 3, 1), within)
        assert same_signatures(BASELINES[name](of_table(events, (2, 3, 1)), within), expected)
        matches += len(expected.events)
    assert matches


@pytest.mark.parametrize("name", BASELINES)
def test_next_match_is_as_defined(name: str) -> None:
    matches = 0
    for seed in range(4):
        events = small(seed)
        values = pa.array([[4, 3, 5][number % 3] for number in events["value"].to_pylist()])
        events = events.set_column(4, "value", values)
        expected = defined(events, "next", (4, 3, 5), 6)
        assert same_signatures(BASELINES[name](of_table(events, (4, 3, 5)), 6, following=True), expected)
        matches += len(expected.events)
    assert matches


def all_ways(stream: Uncertain, within: int, **options: Any) -> None:
    expected = in_order(stream, within, **options)
    assert len(expected.events)
    assert same_signatures(by_points(stream, within, **options), expected)
    assert same_signatures(from_any_state(stream, within, **options), expected)
    assert same_signatures(in_order(stream, within, by_selectivity(stream), **options), expected)


@pytest.mark.parametrize("numbers", [EXCLUSIVE[:3], OVERLAPPING[:3]])
def test_multiples(numbers: tuple[int, ...]) -> None:
    all_ways(multiples(values_in_turn(1_000, 3), numbers), 100)


def test_exclusive_numbers_exclude_each_other() -> None:
    value = np.arange(1, 1001)
    assert (sum((value % number == 0).astype(int) for number in EXCLUSIVE) <= 1).all()


def test_tools() -> None:
    events = tool_moves(200, tools=2)
    stream, ids = moves(events)
    assert sorted(ids) == list(range(200))
    all_ways(stream, 600, following=True)
