"""Complete trends by the graph are those of the definition: for every plan, memory limit, window and way to cut.

The examples are the same in every run; `TRENDLOOM_EXAMPLES=5000` looks further, with new ones each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough
from tests.property.compare import rows_of

import trendloom as tl
from trendloom.engines.local import stream_of
from trendloom.kernels.trends import complete as trends_kernel
from trendloom.kernels.trends import edges as linked_edges
from trendloom.kernels.trends.complete import TrendGraphKernel, TrendsOfGraph, trends_of
from trendloom.kernels.trends.graph import WalkPlan
from trendloom.kernels.trends.partition import branch_and_bound, greedy
from trendloom.kernels.trends.walk import Chunks, one_by_one, pieces_of, stitched
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.runtime.blocks import build_block
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of

EXAMPLES = amount(30)
CONDITIONS = (
    "",
    "a.x < NEXT(a).x",
    "a.x <= NEXT(a).x",
    "a.x > NEXT(a).x",
    "a[i].x >= a[i-1].x",
    "a.x = NEXT(a).y",
    "a.x < NEXT(a).y",
    "a.y >= NEXT(a).x",
    "a.x != NEXT(a).y",
    "a.x = NEXT(a).y AND a.y >= NEXT(a).x",
    "a.x < NEXT(a).y AND a.y < NEXT(a).x",
    "abs(a.x - NEXT(a).y) < 2",
    "a.x + NEXT(a).x < 4 AND a.x <= NEXT(a).y",
    "a.x = NEXT(a).x AND a.y > 0",
)
TESTED_LAST = (
    "count(a[]) > 2",
    "count(a[]) >= 3 AND max(a[].y) > 1",
    "2 < count(a[].x)",
    "min(a[].x) < 1",
    "max(a[].x) - min(a[].y) >= 2",
    "duration(a) > 3 s",
    "count(a[]) > 3 OR max(a[].x) > 2",
    "-min(a[].x) + count(a[]) >= 2",
)
TESTED_ON_ALL = (
    "count(a[]) < 3",
    "count(a[]) = 2",
    "sum(a[].x) > 3",
    "avg(a[].y) >= 1",
    "max(a[].x) + min(a[].x) > 2",
    "min(a[].x) > 0",
    "NOT count(a[]) < 3",
    "a[first].x < a[last].x",
)
WINDOWS = ("", "WITHIN 5", "WITHIN 3", "WITHIN 5 SLIDE 2", "WITHIN 6 SLIDE 1", "WITHIN 3 SLIDE 4", "WITHIN 4 SLIDE 4")


@st.composite
def streams(draw: st.DrawFn, most: int = 11) -> pa.Table:
    """Few values and times, so that there are ties, cycles and gaps; NULLs; events of another type."""
    size = draw(st.integers(0, most))
    small = st.integers(0, 3)
    columns: dict[str, Any] = {
        "type": [draw(st.sampled_from("AAAAAB")) for _ in range(size)],
        "time": [draw(st.integers(-2, 9)) for _ in range(size)],
        "x": [draw(st.one_of(small, small, small, st.none())) for _ in range(size)],
        "y": [draw(small) for _ in range(size)],
        "k": [draw(st.integers(0, 1)) for _ in range(size)],
        "id": list(range(size)),
    }
    kinds = {"type": pa.string()}
    return pa.table({name: pa.array(values, kinds.get(name, pa.int64())) for name, values in columns.items()})


@st.composite
def queries(draw: st.DrawFn) -> str:
    conjuncts = [draw(st.sampled_from(CONDITIONS)), draw(st.sampled_from(["", "", "[k]"]))]
    where = " AND ".join(one for one in conjuncts if one)
    return f"RETURN COMPLETE TRENDS PATTERN A a+ {f'WHERE {where}' if where else ''} {draw(st.sampled_from(WINDOWS))}"


@contextmanager
def asked_for(plan: WalkPlan, memory: int, worth: float = 0.0) -> Iterator[None]:
    """The engine with this plan and memory, and no work too small for a plan."""

    def planned(spec: Any, block: Any, _: int | None = None) -> TrendsOfGraph:
        return trends_of(replace(spec, plan=plan), block, memory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trends_kernel, "trends_of", planned)
        patch.setattr(trends_kernel, "WORTH_PLANNING", worth)
        yield


def graph_of(query: str, events: pa.Table) -> TrendsOfGraph:
    loaded = load(events, Options())
    physical = plan_query(bind(queries_of(query)[0], loaded.schema))
    assert isinstance(physical.kernel, TrendGraphKernel), "the query is not served by the graph"
    return trends_of(physical.kernel.graph, build_block(physical, stream_of(physical, loaded))[0])


@thorough(EXAMPLES)
@given(queries(), streams(), st.sampled_from(["", "x", "y,x"]))
def test_every_plan_gives_the_trends_of_the_reference(query: str, events: pa.Table, order: str) -> None:
    expected = tl.run(query, events, engine="reference", order=order)
    for plan in WalkPlan:
        for memory in (1 << 30, 3_000, 0):
            with asked_for(plan, memory):
                found = tl.run(query, events, order=order)
            assert rows_of(found) == rows_of(expected), f"{plan} within {memory} bytes"
    backwards = events.take(pa.array(range(len(events))[::-1], pa.int64()))
    assert tl.run(query, backwards, order=order).num_rows == expected.num_rows


@pytest.mark.parametrize("conditions", [TESTED_LAST, TESTED_ON_ALL])
def test_conditions_on_the_whole_of_a_trend(conditions: tuple[str, ...]) -> None:
    """Some are tested on the complete trends of the pattern, others on every match, before complete ones are picked."""

    @thorough(EXAMPLES)
    @given(queries(), st.sampled_from(conditions), streams(9))
    def compare(query: str, condition: str, events: pa.Table) -> None:
        joined = query.replace("WHERE", f"WHERE ({condition}) AND") if "WHERE" in query else (
            query.replace("A a+", f"A a+ WHERE ({condition})")
        )  # fmt: skip
        kernel = plan_query(bind(queries_of(joined)[0], load(events, Options()).schema)).kernel
        by_graph = isinstance(kernel, TrendGraphKernel)
        assert by_graph == (conditions is TESTED_LAST), joined
        assert rows_of(tl.run(joined, events)) == rows_of(tl.run(joined, events, engine="reference")), joined

    compare()


@thorough(EXAMPLES)
@given(queries(), streams(8), st.data())
def test_every_way_to_cut_gives_the_same_trends(query: str, events: pa.Table, data: st.DataObject) -> None:
    all_ = graph_of(query, events)
    if len(all_.starts) == 0:
        return
    expected = listed(one_by_one(all_.graph, all_.starts, Chunks()))
    low, high = int(all_.starts[0]), len(all_.graph)
    inner = range(low + 1, high)
    for count in range(len(inner) + 1):
        for cuts in data.draw(st.lists(st.sampled_from(list(combinations(inner, count))), min_size=1, max_size=3)):
            pieces = pieces_of(all_.graph, np.array([low, *cuts, high]))
            found = listed(stitched(all_.graph, pieces, all_.starts, Chunks(most=3, size=3)))
            assert found == expected, cuts


def listed(chunks: Iterator[tuple[Any, Any]]) -> list[tuple[int, ...]]:
    found = []
    for offsets, events in chunks:
        found += [tuple(events[a:b].tolist()) for a, b in pairwise(offsets)]
    assert len(set(found)) == len(found), "a trend was given out twice"
    return sorted(found)


@thorough(EXAMPLES)
@given(queries(), streams())
def test_the_count_before_the_start_is_right(query: str, events: pa.Table) -> None:
    assert graph_of(query, events).count() == tl.run(query, events).num_rows


@thorough(EXAMPLES)
@given(st.sampled_from(CONDITIONS[5:]), streams(), st.booleans())
def test_edges_are_those_that_no_longer_path_replaces(condition: str, events: pa.Table, marks: bool) -> None:
    query = f"RETURN COMPLETE TRENDS PATTERN A a+ WHERE {condition}"
    with pytest.MonkeyPatch.context() as patch:
        if marks and "abs" not in condition and "+" not in condition:
            patch.setattr(linked_edges, "MOST_BITS", 0)
        patch.setattr(linked_edges, "MOST_PAIRS", 5)
        graph = graph_of(query, events).graph
    pairs = tl.run(f"RETURN TRENDS PATTERN A a+ WHERE {condition}", events, engine="reference").to_pylist()
    numbers = graph.block.row.tolist()
    ids = events["id"].to_pylist()
    at = {ids[row]: number for number, row in enumerate(numbers)}
    related = {tuple(at[e["id"]] for e in row["events"]) for row in pairs if len(row["events"]) == 2}
    reached = reachable(related, len(numbers))
    kept = {(e, f) for e, f in related if not any((e, g) in related and (g, f) in reached for g in range(len(numbers)))}
    edges = graph.lists
    sources = [(int(e), f) for f in range(len(graph)) for e in edges.source[edges.into[f] : edges.into[f + 1]]]
    targets = [(e, int(f)) for e in range(len(graph)) for f in edges.target[edges.begin[e] : edges.begin[e + 1]]]
    assert sorted(sources) == sorted(targets) == sorted(kept)


def reachable(related: set[tuple[int, ...]], size: int) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = {(e, f) for e, f in related}
    for g in range(size):
        found |= {(e, f) for e in range(size) for f in range(size) if (e, g) in found and (g, f) in found}
    return found


# ------------------------------------------------------------------------------------------- partitioning


@st.composite
def costs(draw: st.DrawFn) -> tuple[Any, Any, float]:
    cuts = draw(st.integers(1, 8))
    number = st.integers(0, 12)
    cpu, mem = (np.full((cuts + 1, cuts + 1), np.inf) for _ in range(2))
    for i, j in combinations(range(cuts + 1), 2):
        cpu[i, j], mem[i, j] = draw(number), draw(number)
    return cpu, mem, float(draw(st.integers(0, 40)))


def total(matrix: Any, plan: list[int]) -> float:
    bounds = [0, *plan, len(matrix) - 1]
    return float(sum(matrix[a, b] for a, b in pairwise(bounds)))


@thorough(EXAMPLES)
@given(costs())
def test_branch_and_bound_finds_the_optimum(case: tuple[Any, Any, float]) -> None:
    cpu, mem, limit = case
    inner = range(1, len(cpu) - 1)
    plans = [list(cuts) for count in range(len(cpu)) for cuts in combinations(inner, count)]
    best = min((total(cpu, plan) for plan in plans if total(mem, plan) <= limit), default=None)
    found = branch_and_bound(cpu, mem, limit)
    if best is None:
        assert found is None
    else:
        assert found is not None
        assert total(mem, found) <= limit
        assert total(cpu, found) == best
    quick = greedy(cpu, mem, limit)
    assert quick is None or (total(mem, quick) <= limit and best is not None and total(cpu, quick) >= best)
