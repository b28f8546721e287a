"""Statistics of events equal what counting by hand gives; those of a sample are close to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough

from trendloom.logical.bind import bind
from trendloom.logical.statistics import Origin, Statistics
from trendloom.options import Options
from trendloom.runtime.reading import for_queries, load, queries_of
from trendloom.runtime.statistics import distinct_in_all, sampled_rows, statistics_of_events

QUERY = """
    RETURN k, COUNT(*)  PATTERN SEQ(A a, B b)  WHERE [k] AND a.x > 2 AND a.x < b.x  GROUP BY k, g  WITHIN 10 SLIDE 5
"""
ROWS = st.lists(
    st.tuples(
        st.sampled_from("ABC"), st.integers(0, 20), st.sampled_from([1, 2, 3, None]), st.sampled_from("uv"),
        st.one_of(st.none(), st.integers(0, 6)),
    ),
    min_size=1,
    max_size=40,
)  # fmt: skip


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = {"type": pa.string(), "time": pa.int64(), "k": pa.int64(), "g": pa.string(), "x": pa.int64()}
    return pa.table({name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(kinds.items())})


def statistics(query: str, table: pa.Table, **options: Any) -> Statistics:
    (parsed,) = queries_of(query)
    events = load(table, for_queries(Options(), (parsed,)))
    return statistics_of_events(bind(parsed, events.schema), events, **options)


def share_of_pairs(rows: list[tuple[Any, ...]]) -> float | None:
    """An A with x > 2 and the next later B of its key; `a.x < b.x`."""
    good, pairs = 0, 0
    for kind, time, key, group, x in rows:
        if kind != "A" or key is None or x is None or x <= 2:
            continue
        later = [row for row in rows if row[0] == "B" and row[2] == key and row[3] == group and row[1] > time]
        if not later:
            continue
        nearest = [row for row in later if row[1] == min(row[1] for row in later)]
        if len(nearest) > 1:
            return None  # which of them is next is not said
        pairs += 1
        good += nearest[0][4] is not None and x < nearest[0][4]
    return good / pairs if pairs else None


@thorough(amount(100))
@given(ROWS)
def test_of_all_events_they_are_exact(rows: list[tuple[Any, ...]]) -> None:
    found = statistics(QUERY, table_of(rows))
    assert found.origin is Origin.EVENTS
    assert found.events == len(rows)
    assert found.types == {kind: sum(row[0] == kind for row in rows) for kind in sorted({row[0] for row in rows})}
    assert (found.first, found.last) == (min(row[1] for row in rows), max(row[1] for row in rows))
    keys = [(row[2], row[3]) for row in rows if row[2] is not None]
    if keys:
        spread = found.keys["k", "g"]
        assert spread.distinct == len(set(keys))
        assert spread.greatest == pytest.approx(max(map(keys.count, keys)) / len(keys))
    assert found.values.get("x", 0) == len({row[4] for row in rows if row[4] is not None})
    first = [row for row in rows if row[0] == "A" and row[2] is not None and row[4] is not None and row[4] > 2]
    second = [row for row in rows if row[0] == "B" and row[2] is not None]
    assert found.fitting == {0: len(first), 1: len(second)}
    assert found.relevant == len(first) + len(second)
    share = share_of_pairs(rows)
    if share is not None:
        assert found.passing[0, 1] == pytest.approx(share)


def test_a_sample_is_close() -> None:
    number = np.random.default_rng(7)
    size = 200_000
    table = pa.table(
        {
            "type": number.choice(list("ABC"), size),
            "time": np.sort(number.integers(0, 50_000, size)),
            "k": number.integers(0, 500, size),
            "g": number.choice(list("uv"), size),
            "x": number.integers(0, 10, size),
        }
    )
    whole, part = statistics(QUERY, table, most=size), statistics(QUERY, table, most=20_000)
    assert (whole.origin, part.origin) == (Origin.EVENTS, Origin.SAMPLE)
    assert len(sampled_rows(size, 20_000)) <= 20_000
    assert (part.events, part.first, part.last) == (whole.events, whole.first, whole.last)
    for exact, close in (
        *((whole.types[kind], part.types[kind]) for kind in "ABC"),
        *((whole.fitting[position], part.fitting[position]) for position in (0, 1)),
        (whole.keys["k", "g"].distinct, part.keys["k", "g"].distinct),
        (whole.passing[0, 1], part.passing[0, 1]),
    ):
        assert close == pytest.approx(exact, rel=0.1)
    assert part == statistics(QUERY, table, most=20_000)


def test_rows_of_a_sample_lie_all_over_the_stream() -> None:
    rows = sampled_rows(1_000_000, 6400)
    assert len(rows) == 6400
    assert (rows[0], rows[-1]) == (0, 999_999)
    assert np.diff(rows).max() < 2 * 1_000_000 / 64
    for total in (6401, 6463, 7000, 12_799):
        assert np.diff(sampled_rows(total, 6400)).min() == 1
    assert sampled_rows(5, 6400).tolist() == [0, 1, 2, 3, 4]


def test_nothing_is_known_of_no_events() -> None:
    found = statistics("PATTERN SEQ(A a, B b) WHERE a.x < b.x", table_of([]))
    assert (found.events, found.first, found.span, dict(found.passing)) == (0, None, None, {})


def test_imprecise_times_leave_types() -> None:
    table = pa.table({"type": ["A", "B"], "time_low": [1, 2], "time_high": [2, 3]})
    (query,) = queries_of("PATTERN SEQ(A a, B b) CONFIDENCE >= 0.5")
    events = load(table, Options(time_low="time_low", time_high="time_high"))
    found = statistics_of_events(bind(query, events.schema), events)
    assert found.types == {"A": 1, "B": 1}
    assert dict(found.fitting) == {}


def test_distinct_values_are_never_more_than_events() -> None:
    assert distinct_in_all(np.ones(50, np.int64), 60) == 60
    assert distinct_in_all(np.array([3, 2]), 5) == 2
    assert distinct_in_all(np.array([10, 10, 10]), 3000) == 3
