"""Random workloads of counted sequences: every query has the rows that it has alone, which are those of the reference.

The examples are the same in every run; `make test-deep` looks further, with new ones each time.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough

import trendloom as tl
from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.interpreted import interpreted_only
from trendloom.kernels.shared import CountedQuery, CountedStep
from trendloom.kernels.shared.events import SweptQuery
from trendloom.kernels.shared.program import merge_queries
from trendloom.kernels.shared.sweep import sweep_queries
from trendloom.model.time import Window
from trendloom.options import Options
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import queries_of, schema_of_columns

EXAMPLES = amount(40)
TYPES = "ABCD"
WINDOWS = ("", "WITHIN 10 SLIDE 10", "WITHIN 10 SLIDE 3", "WITHIN 4 SLIDE 7", "WITHIN 5 SLIDE 1", "WITHIN 6 SLIDE 3")
SEMANTICS = ("", "", "", "SEMANTICS skip-till-next-match", "SEMANTICS contiguous")
GROUPS = {"": [""], "[k]": ["", "GROUP BY k"], "[k, g]": ["", "GROUP BY k", "GROUP BY g", "GROUP BY k, g"]}

NUMERIC = ("exact", "exact", "float", "log")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    count, last = draw(st.integers(0, 30)), draw(st.sampled_from([5, 30]))

    def column(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([draw(values) for _ in range(count)], kind)

    return pa.table(
        {
            "time": column(st.integers(-3, last), pa.int64()),
            "type": column(st.sampled_from(TYPES), pa.string()),
            "k": column(st.sampled_from([0, 1, None]), pa.int64()),
            "g": column(st.integers(0, 1), pa.int64()),
            "x": column(st.sampled_from([1, 2, 3, None]), pa.int64()),
            "y": column(st.sampled_from([-1.5, 0.25, 8.0, None]), pa.float64()),
        }
    )


@st.composite
def queries(draw: st.DrawFn, number: int) -> str:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))
    steps = [f"{kind} v{place}{draw(st.sampled_from(['', '', '+']))}" for place, kind in enumerate(types)]
    steps = [
        f"NOT {draw(st.sampled_from(TYPES))} n{place}, {step}" if place and draw(st.integers(0, 5)) == 0 else step
        for place, step in enumerate(steps)
    ]
    keys = draw(st.sampled_from([*GROUPS]))
    tests = [
        f"v{place}.x {draw(st.sampled_from(['>', '<=', '=']))} {draw(st.integers(1, 3))}"
        for place in range(len(types))
        if draw(st.integers(0, 3)) == 0
    ]
    where = " AND ".join([keys, *tests] if keys else tests)
    group = draw(st.sampled_from(GROUPS[keys]))
    values = [group.removeprefix("GROUP BY ")] if group else []
    values += ["COUNT(*)", *([f"COUNT({draw(st.sampled_from(types))})"] if draw(st.booleans()) else [])]
    for function in draw(st.lists(st.sampled_from(["SUM", "AVG", "MIN", "MAX", "COUNT"]), max_size=2, unique=True)):
        values.append(f"{function}({draw(st.sampled_from(types))}.{draw(st.sampled_from(['x', 'x', 'y']))})")
    return (
        f"QUERY q{number}: RETURN {', '.join(values)} PATTERN SEQ({', '.join(steps)}) "
        f"{draw(st.sampled_from(SEMANTICS))} {f'WHERE {where}' if where else ''} {group} "
        f"{draw(st.sampled_from(WINDOWS))}"
    )


@st.composite
def workloads(draw: st.DrawFn) -> list[str]:
    return [draw(queries(number)) for number in range(draw(st.sampled_from([2, 3, 3, 4, 6, 12])))]


def rows_of(found: pa.Table, name: str, columns: list[str]) -> list[dict[str, Any]]:
    return found.filter(pa.compute.equal(found["query"], name)).select(columns).to_pylist()


def alike(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    """Whether rows are equal, doubles as far as they depend on the order of additions."""
    if len(found) != len(wanted):
        return False
    return all(
        one == pytest.approx(other, rel=1e-12) if isinstance(other, float) else one == other
        for mine, yours in zip(found, wanted, strict=True)
        for one, other in zip(mine.values(), yours.values(), strict=True)
    )


def test_every_query_has_the_rows_that_it_has_alone() -> None:
    shared = 0

    @thorough(EXAMPLES)
    @given(workloads(), streams(), st.sampled_from([None, None, "x"]), st.sampled_from(NUMERIC))
    def compare(texts: list[str], events: pa.Table, order: str | None, numeric: str) -> None:
        nonlocal shared
        text = "\n".join(texts)
        planned_all = planned(queries_of(text), schema_of_columns(events.schema, Options()))
        shared += bool(planned_all.shared_groups)
        found = tl.run(text, events, order=order, numeric=numeric)
        for number, one in enumerate(texts):
            alone = tl.run(one, events, order=order, numeric=numeric).drop_columns(["query"])
            assert alike(rows_of(found, f"q{number}", alone.column_names), alone.to_pylist()), one
            if numeric == "exact":
                wanted = tl.run(one, events, engine="reference", order=order).drop_columns(["query"])
                assert alike(alone.to_pylist(), wanted.to_pylist()), one

    compare()
    assert shared >= at_least(0.4, EXAMPLES)


def text_of(count: int, steps: str = "A, B+, C") -> str:
    return "\n".join(f"QUERY q{n}: RETURN COUNT(*) PATTERN SEQ({steps}, {'CD'[n % 2]})" for n in range(count))


def test_numbers_beyond_the_sweep_are_counted_alone() -> None:
    events = pa.table({"time": range(90), "type": ["A", *["B"] * 87, "C", "D"]})
    big, small = "QUERY big: RETURN COUNT(*) PATTERN SEQ(A, B+, C)", "QUERY small: RETURN COUNT(*) PATTERN SEQ(A, C, D)"
    found = tl.run(f"{big}\n{small}", events)
    assert rows_of(found, "big", ["COUNT(*)"]) == [{"COUNT(*)": 2**87 - 1}]
    assert rows_of(found, "small", ["COUNT(*)"]) == [{"COUNT(*)": 1}]


def test_compiled_and_on_several_threads_as_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trendloom.runtime.parallel.LEAST", 100)
    monkeypatch.setattr("trendloom.kernels.shared.sweep.FIRST_ROWS", 50)
    count, draw = 600, random.Random(7)
    events = pa.table(
        {
            "time": [n // 3 for n in range(count)],
            "type": [draw.choice(TYPES) for _ in range(count)],
            "k": [draw.randrange(7) for _ in range(count)],
        }
    )
    windows = [(None, None), (100, 51), (100, 100), (30, 70)]
    queries = [
        CountedQuery(
            Window(*windows[n]), (CountedStep(0), CountedStep(1 + n % 3, repeats=True), CountedStep(1 + (n + 1) % 3))
        )
        for n in range(4)
    ]
    text = "\n".join(
        f"QUERY q{n}: RETURN k, COUNT(*) PATTERN SEQ(A, {'BCD'[n % 3]}+, {'CDB'[n % 3]}) WHERE [k] GROUP BY k "
        + ("" if within is None else f"WITHIN {within} SLIDE {slide}")
        for n, (within, slide) in enumerate(windows)
    )
    found = tl.run(text, events, threads=2)
    for number, one in enumerate(text.splitlines()):
        alone = tl.run(one, events).drop_columns(["query"])
        assert rows_of(found, f"q{number}", alone.column_names) == alone.to_pylist()
    merged = merge_queries(queries)
    block = block_of(events)
    compiled = sweep_queries(merged, block, {bit: bit for bit in range(len(TYPES))})
    with interpreted_only():
        interpreted = sweep_queries(merged, block, {bit: bit for bit in range(len(TYPES))})
        for one, other in zip(interpreted, compiled, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))
    assert sum(len(one.key) for one in interpreted) > 50


def parts(found: SweptQuery) -> list[Any]:
    return [found.key, found.start, *found.numbers, found.spilled]


def block_of(events: pa.Table) -> Block:
    """The events by k and time; bit n of an event is type n."""
    key, time = (events[name].to_numpy() for name in ("k", "time"))
    order = np.lexsort([time, key])
    types = np.array([TYPES.index(kind) for kind in events["type"].to_pylist()])
    starts = np.r_[0, np.cumsum(np.bincount(key))]
    return Block(starts, time[order], order, {}, (np.uint8(1) << types[order].astype(np.uint8),))


def test_explain_says_what_is_counted_together() -> None:
    shown = tl.explain(text_of(3), engine="local")
    assert "count q0, q1, q2 in one sweep over the events: 5 prefixes for 12 positions" in shown
    assert "after the other" not in shown
    more = tl.explain(text_of(2) + "\nQUERY rows: PATTERN A a", engine="local")
    assert "run one other query after the other" in more
