"""Estimates by statistics on uniform data: within a factor of what a run gives, which is stated for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.engines.measured_run import arranged
from trendloom.logical.bind import bind
from trendloom.logical.statistics import KeySpread, Statistics
from trendloom.options import Options
from trendloom.planner.request import Estimate
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import for_queries, load, queries_of
from trendloom.runtime.statistics import statistics_of_events


def uniform(size: int, keys: int, seed: int = 1, span: int = 10_000) -> pa.Table:
    number = np.random.default_rng(seed)
    return pa.table(
        {
            "type": number.choice(list("ABC"), size),
            "time": np.sort(number.choice(span, size, replace=False)),
            "k": number.integers(0, keys, size),
            "x": number.random(size),
        }
    )


def estimate(query: str, table: pa.Table, statistics: Statistics | None = None) -> Estimate:
    (parsed,) = queries_of(query)
    events = load(table, for_queries(Options(), (parsed,)))
    plan = bind(parsed, events.schema)
    known = statistics_of_events(plan, events) if statistics is None else statistics
    found = plan_query(plan, statistics=known).chosen.estimate
    assert found is not None
    return found


QUERIES = {
    "SEQ(A a, B b) WITHIN 500": 1.1,
    "SEQ(A a, B b, C c) WITHIN 300": 1.2,
    "SEQ(A a, B b)": 1.1,
    "SEQ(A a, B b) WHERE [k] WITHIN 1000": 1.2,
    "SEQ(A a, B b) WHERE a.x < b.x WITHIN 500": 1.2,
    "SEQ(A a, B b) WHERE a.x < 0.2 AND [k] WITHIN 1000": 1.5,
    "SEQ(A a, B b) WITHIN 500 SLIDE 100": 1.1,
    "SEQ(A a, B b) WITHIN 20000 SLIDE 5000": 1.1,
    "SEQ(A a, B+ b[], C c) WHERE [k] WITHIN 1000": 2,
    "A a+ WHERE [k] AND a.x < NEXT(a).x WITHIN 2000": 3,  # what is above is seldom far below what comes next
    "SEQ(A a, (B b | C c)) WITHIN 300": 1.1,
    "SEQ(A a, B b) SEMANTICS skip-till-next-match WHERE [k] WITHIN 300": 1.2,
    "SEQ(A a, B b, C c) SEMANTICS skip-till-next-match": 1.2,
    "SEQ(A a, B b) SEMANTICS skip-till-next-match WHERE a.x < b.x WITHIN 50": 1.5,
    "SEQ(A a, B b) SEMANTICS skip-till-next-match WITHIN 50 SLIDE 25": 1.5,
    "SEQ(A a, B b) SEMANTICS contiguous": 1.2,
    "SEQ(A a, B b, C c) SEMANTICS contiguous WHERE [k]": 1.5,
}


@pytest.mark.parametrize("pattern", QUERIES)
def test_matches_are_within_a_factor(pattern: str) -> None:
    table = uniform(1000, 10)
    actual = tl.run(f"PATTERN {pattern}", table).num_rows
    found = estimate(f"PATTERN {pattern}", table)
    assert found.results is not None
    assert not found.at_most
    assert actual / QUERIES[pattern] <= found.results <= actual * QUERIES[pattern]


def test_a_large_key_counts() -> None:
    table = uniform(1000, 100)
    table = table.set_column(2, "k", pa.array(np.where(np.arange(1000) % 2, 0, table["k"].to_numpy())))
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 1000"
    found = estimate(query, table).results
    assert found == pytest.approx(tl.run(query, table).num_rows, rel=0.2)


def test_numbers_beyond_doubles_are_infinite() -> None:
    table = pa.table({"type": ["A"] * 3000, "time": list(range(3000))})
    assert estimate("PATTERN A a+", table).results == float("inf")
    table = table.slice(0, 60)
    assert estimate("PATTERN A a+", table).results == pytest.approx(2.0**60 - 1)


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, NOT C c, B b) WITHIN 100",
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 100",
        "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[]) WITHIN 100",
        "RETURN COMPLETE TRENDS PATTERN SEQ(A a, B+ b[]) WITHIN 100",
        "RETURN k, COUNT(*) PATTERN SEQ(A a, B b) GROUP BY k WITHIN 100 SLIDE 50",
        "RETURN k, COUNT(*) PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x + b.x GROUP BY k WITHIN 100 SLIDE 50",
    ],
)
def test_what_others_decide_is_at_most_so_much(query: str) -> None:
    table = uniform(600, 5)
    found = estimate(query, table)
    assert found.at_most
    assert found.results is not None
    assert found.results * 1.2 >= tl.run(query, table).num_rows


def test_groups_and_windows_are_counted() -> None:
    table = uniform(1000, 5)
    query = "RETURN k, COUNT(*) PATTERN A a GROUP BY k WITHIN 1000 SLIDE 500"
    assert estimate(query, table).results == tl.run(query, table).num_rows == 5 * 21
    assert estimate("RETURN COUNT(*) PATTERN A a", table).results == 1


@pytest.mark.parametrize(
    ("where", "factor"),
    [
        ("", 1.1),
        ("WHERE m.x < NEXT(m).x", 1.5),
        ("WHERE m.x < NEXT(m).x WITHIN 1000", 1.5),
        ("WHERE [k] AND m.x < NEXT(m).x WITHIN 3000", 1.5),
        ("WHERE m.k = NEXT(m).k WITHIN 300", 2),
    ],
)
def test_edges_of_a_trend_graph_are_within_a_factor(where: str, factor: float) -> None:
    query, table = f"RETURN COMPLETE TRENDS PATTERN A m+ {where}", uniform(3000, 10)
    physical, block = arranged(query, table, Options())
    built = physical.kernel.describe(physical.kernel.step(physical.kernel.start(), block, None)[1])
    assert built is not None
    edges = estimate(query, table).further["edges"]
    assert built.numbers["edges"] / factor <= edges <= built.numbers["edges"] * factor


def test_what_is_unknown_stays_unknown() -> None:
    table = uniform(100, 5)
    bare: dict[str, Any] = {"events": 100.0, "first": 0, "last": 9999}
    found = estimate("PATTERN SEQ(A a, B b)", table, Statistics(**bare))
    assert (found.events, found.results, found.bytes) == (None, None, None)
    fitting = {0: 30.0, 1: 30.0}
    assert estimate("PATTERN SEQ(A a, B b)", table, Statistics(**bare, fitting=fitting)).results is not None
    query = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND [k]"
    assert estimate(query, table, Statistics(**bare, fitting=fitting)).results is None
    keys = {("k",): KeySpread(5.0)}
    assert estimate(query, table, Statistics(**bare, fitting=fitting, keys=keys)).results is None
    known = Statistics(**bare, fitting=fitting, keys=keys, passing={(0, 1): 0.5})
    assert estimate(query, table, known).results is not None


def test_without_statistics_nothing_is_estimated() -> None:
    (query,) = queries_of("PATTERN SEQ(A a, B b)")
    assert plan_query(bind(query, load(uniform(10, 2), Options()).schema)).chosen.estimate is None
