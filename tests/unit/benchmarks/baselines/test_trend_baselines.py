"""The algorithms of the papers find what the definition says: on random streams with ties, with and without windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.baselines import matches as cloning
from benchmarks.baselines.trend_columns import Columns, Found, check_columns, rising_columns
from benchmarks.baselines.trends import baseline_trends, exhaustive_partitioning, sase_stack_trends
from benchmarks.cases.trends import CLASSES, KITES, MICRO, check_kites, microbench
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough

import trendloom as tl

QUICK = thorough(amount(20))
RISES = "RETURN COMPLETE TRENDS PATTERN Stock S+ WHERE [company] AND S.price < NEXT(S).price"
WINDOWS = st.one_of(st.just((None, None)), st.tuples(st.integers(2, 9), st.integers(1, 6)))
ALGORITHMS = {"all kept": baseline_trends, "stack": sase_stack_trends}


Rows = list[tuple[Any, ...]]


@st.composite
def streams(draw: st.DrawFn, names: str, kinds: list[pa.DataType], *parts: st.SearchStrategy[Any]) -> pa.Table:
    """Rows in no order, some at one time; more often many than few, because trends need many."""
    row = st.tuples(*parts)
    rows: Rows = draw(st.one_of(st.lists(row, max_size=3), *[st.lists(row, min_size=6, max_size=9)] * 3))
    order = draw(st.permutations(range(len(rows))))
    gaps = draw(st.lists(st.sampled_from([0, 1, 1, 2]), min_size=len(rows), max_size=len(rows)))
    times = np.cumsum(np.array(gaps, np.int64))[np.array(order, np.int64)]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    arrays = {n: pa.array(list(c), k) for n, c, k in zip(names.split(), columns, kinds, strict=True)}
    return pa.table({**arrays, "time": pa.array(times), "id": np.arange(len(rows))})


def deposits() -> st.SearchStrategy[pa.Table]:
    bank, status = st.integers(0, 2), st.sampled_from(["uncovered"] * 4 + ["covered"])
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.string()]
    return streams("type source destination status", kinds, st.just("Check"), bank, bank, status)


def prices() -> st.SearchStrategy[pa.Table]:
    company, price = st.sampled_from([0, 0, 0, 1]), st.integers(0, 6).map(lambda number: number / 2)
    return streams("type company price", [pa.string(), pa.int64(), pa.float64()], st.just("Stock"), company, price)


def steps() -> st.SearchStrategy[pa.Table]:
    letter, task, value = st.sampled_from("AABBBBCC"), st.sampled_from([0, 0, 0, 1]), st.integers(0, 4)
    return streams("type task val", [pa.string(), pa.int64(), pa.int64()], letter, task, value)


def window(within: int | None, slide: int | None) -> str:
    return "" if within is None else f" WITHIN {within}" + ("" if slide is None else f" SLIDE {slide}")


def by_definition(text: str, table: pa.Table, *, windowed: bool) -> Counter[Any]:
    rows = tl.run(text, table, engine="reference").to_pylist()
    return Counter((row["window_start"] if windowed else 0, tuple(e["id"] for e in row["events"])) for row in rows)


def given_out(found: Found, events: Any) -> Counter[Any]:
    """Trends by the ids of their events and the start of their window; totals are checked on the way."""
    lists = found.lists()
    assert (found.trends, found.trend_events) == (len(lists), sum(map(len, lists)))
    assert found.checksum == sum(map(sum, lists))
    starts = np.repeat(events.start, found.by_range).tolist()
    return Counter((start, tuple(events.rows[list(one)].tolist())) for start, one in zip(starts, lists, strict=True))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_complete_trends_of_equality(name: str) -> None:
    @QUICK
    @given(deposits(), WINDOWS)
    def compare(table: pa.Table, span: tuple[int | None, int | None]) -> None:
        columns = check_columns(table, *span)
        expected = by_definition(KITES + window(*span), table, windowed=span[0] is not None)
        assert given_out(ALGORITHMS[name](columns), columns) == expected

    compare()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_complete_trends_of_rising_values(name: str) -> None:
    @QUICK
    @given(prices(), WINDOWS)
    def compare(table: pa.Table, span: tuple[int | None, int | None]) -> None:
        columns = rising_columns(table, "company", "price", *span)
        expected = by_definition(RISES + window(*span), table, windowed=span[0] is not None)
        assert given_out(ALGORITHMS[name](columns), columns) == expected

    compare()


@pytest.mark.parametrize("make", [lambda: check_kites(7, 4, 2, lag=3), lambda: check_kites(24, 3, 3, stretch=3)])
@pytest.mark.parametrize("buffer", [1, 1 << 20])
def test_both_find_the_same_in_longer_streams(make: Callable[[], pa.Table], buffer: int) -> None:
    columns: Columns = check_columns(make(), 20, 4)
    one, other = (algorithm(columns, buffer=buffer) for algorithm in ALGORITHMS.values())
    assert one.trends > 100
    assert (one.trends, one.trend_events, one.checksum) == (other.trends, other.trend_events, other.checksum)
    assert one.by_range.tolist() == other.by_range.tolist()


def test_too_many_trends_to_keep_is_an_error() -> None:
    with pytest.raises(MemoryError, match="more trends than"):
        baseline_trends(check_columns(check_kites(9, 3, 3)), most_cells=10_000)


# ------------------------------------------------------------------------------------------------------- run cloning

RULES: dict[str, dict[str, Any]] = {
    "a.time >= 0": {},
    "b[i].val >= b[i-1].val": {"b_rule": cloning.NOT_LESS},
    CLASSES["true-value consistent"]: {"b_rule": cloning.ABOVE_MAX},
    CLASSES["inconsistent"]: {"b_rule": cloning.ABOVE_AVG},
    CLASSES["false-value consistent"]: {"c_rule": cloning.BELOW_MAX},
    "a.task = c.task AND c.val < max(b[].val)": {"c_rule": cloning.BELOW_MAX | cloning.SAME_TASK},
    "[task]": {"by_task": True},
    "b.val > 1": {"above": 1.0},
}


@pytest.mark.parametrize("condition", RULES)
def test_cloned_runs_find_all_matches(condition: str) -> None:
    rules = {name: value for name, value in RULES[condition].items() if name.endswith("_rule")}
    local = {name: value for name, value in RULES[condition].items() if not name.endswith("_rule")}

    @QUICK
    @given(steps(), st.integers(2, 9), st.one_of(st.none(), st.integers(1, 4)))
    def compare(table: pa.Table, within: int, slide: int | None) -> None:
        text = MICRO.format(condition=condition, within=window(within, slide).removeprefix(" WITHIN "))
        events = cloning.steps(table, within, slide, **local)
        found = cloning.run_cloning_matches(events, **rules)
        assert given_out(found, events) == by_definition(text, table, windowed=slide is not None)

    compare()


def test_expired_runs_are_removed_and_matches_stay_the_same() -> None:
    table = microbench(3_000, shares=(2, 5, 3))
    events = cloning.steps(table, 12)
    found = cloning.run_cloning_matches(events, b_rule=cloning.NOT_LESS, buffer=1 << 20, most_runs=5_000)
    text = MICRO.format(condition="b[i].val >= b[i-1].val", within=12)
    rows = tl.run(f"RETURN a.id, count(b[]), c.id {text}", table)
    lists = found.lists()
    assert len(lists) == len(rows) > 5_000
    shown = Counter((one[0], len(one) - 2, one[-1]) for one in lists)
    assert shown == Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    assert all(table["val"][a].as_py() <= table["val"][b].as_py() for one in lists for a, b in pairwise(one[1:-1]))


def test_runs_double_with_every_event() -> None:
    table = pa.table({"type": ["A"] + ["B"] * 10, "time": range(11), "task": [0] * 11, "val": [0] * 11})
    found = cloning.run_cloning_matches(cloning.steps(table, 100))
    assert (found.built, found.trends) == (1 + 2**10 - 1, 0)


def test_too_many_runs_is_an_error() -> None:
    table = pa.table({"type": ["A"] + ["B"] * 20, "time": range(21), "task": [0] * 21, "val": [0] * 21})
    with pytest.raises(MemoryError, match="runs are alive"):
        cloning.run_cloning_matches(cloning.steps(table, 100), most_runs=10_000)


# ------------------------------------------------------------------------------------------------------------ plans


def costs(cuts: list[int], matrix: Any) -> float:
    return float(sum(matrix[i, j] for i, j in pairwise([0, *cuts, len(matrix) - 1])))


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("limit", [0.0, 40.0, 120.0, 1e9])
def test_exhaustive_search_finds_the_best_plan(size: int, limit: float) -> None:
    random = np.random.default_rng(size)
    cpu, mem = (random.integers(1, 100, (size + 1, size + 1)).astype(float) for _ in range(2))
    plans = [list(cuts) for count in range(size) for cuts in combinations(range(1, size), count)]
    fitting = [costs(plan, cpu) for plan in plans if costs(plan, mem) <= limit]
    found = exhaustive_partitioning(cpu, mem, limit)
    assert (found is None) == (not fitting)
    if found is not None:
        assert found in plans
        assert costs(found, mem) <= limit
        assert costs(found, cpu) == min(fitting)
