"""Remainders of EXISTS: each once per window, whatever the chunks, collisions of hashes, keys and steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough

import trendloom as tl
from trendloom.errors import RunError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.contract.pattern_spec import PatternPosition, PatternSpec
from trendloom.kernels.jit.interpreted import interpreted_only
from trendloom.kernels.match import exists as distinct
from trendloom.kernels.match import exists as kernel
from trendloom.kernels.match.exists import ExistsKernel, without_hidden
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import Window
from trendloom.runtime.planning import plan_query

SCHEMA = Schema((Column("type", Kind.STRING), Column("time", Kind.INT), Column("k", Kind.INT)))
HIDDEN = 1
Match = tuple[int, tuple[tuple[int, int], ...]]  # the start of its window, (event, position) of its entries


def pattern_spec() -> PatternSpec:
    places = tuple(PatternPosition("T", name, 0, (), ()) for name in "axb")
    return PatternSpec(places, (), Window(), hidden=frozenset({HIDDEN}))


def chunk(rows: list[Match], *, windows: bool) -> Matches:
    entries = [entry for _, row in rows for entry in row]
    return Matches(
        np.r_[0, np.cumsum([len(row) for _, row in rows])].astype(np.int64),
        np.array([event for event, _ in entries], np.int64),
        np.array([position for _, position in entries], np.int32),
        np.array([start for start, _ in rows], np.int64) if windows else None,
    )


def listed(matches: Matches) -> list[Match]:
    found = []
    for row in range(len(matches)):
        own = slice(matches.offsets[row], matches.offsets[row + 1])
        start = 0 if matches.window_start is None else int(matches.window_start[row])
        found.append((start, tuple(zip(matches.events[own].tolist(), matches.positions[own].tolist(), strict=True))))
    return found


def expected(rows: list[Match]) -> list[Match]:
    """The definition: without hidden entries, empty rows are none, equal ones are one; as they are first found."""
    left = [(start, tuple(entry for entry in row if entry[1] != HIDDEN)) for start, row in rows]
    return list(dict.fromkeys(row for row in left if row[1]))


ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=4).map(tuple)
ROWS = st.lists(st.tuples(st.integers(-2, 1), ENTRIES), max_size=30)


@thorough(amount(100))
@given(st.lists(ROWS, max_size=4), st.booleans())
def test_the_definition(chunks: list[list[Match]], windows: bool) -> None:
    if not windows:
        chunks = [[(0, row) for _, row in rows] for rows in chunks]
    found = list(without_hidden([chunk(rows, windows=windows) for rows in chunks], pattern_spec(), 1000))
    assert all(len(some) for some in found)
    assert listed(join(found)) == expected([row for rows in chunks for row in rows])


def test_rows_that_share_a_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(0, ((event, 0), (event + 1, HIDDEN), (event % 7 + 20, 2))) for event in range(40)] * 2
    monkeypatch.setattr(distinct, "_mixed", lambda code, _value: code & np.uint64(1))
    with interpreted_only():
        found = list(without_hidden([chunk(rows, windows=False)], pattern_spec(), 1000))
    assert listed(join(found)) == expected(rows)


def test_room_grows_with_the_remainders() -> None:
    rows = [(0, ((event // 2, 0), (event, HIDDEN), (event // 2 + 1, 2))) for event in range(5000)]
    found = list(without_hidden([chunk(rows[:10], windows=True), chunk(rows, windows=True)], pattern_spec(), 10_000))
    assert [len(some) for some in found] == [5, 2495]
    assert listed(join(found)) == expected(rows)


def test_too_many_matches_are_refused() -> None:
    rows = [(0, ((event, 0),)) for event in range(11)]
    with pytest.raises(RunError, match="more than 10 matches to look at for the remainders of EXISTS"):
        list(without_hidden([chunk(rows, windows=False)], pattern_spec(), 10))


def test_remainders_have_to_fit_the_memory() -> None:
    rows = [(0, ((event, 0),)) for event in range(100)]
    with pytest.raises(RunError, match="different remainders of EXISTS do not fit the memory"):
        list(without_hidden([chunk(rows, windows=False)], pattern_spec(), 1000, memory=1000))


# --------------------------------------------------------------------------------------------------- kernel


def kernel_of(query: str) -> Any:
    return plan_query(bind(parse_query(query), SCHEMA)).kernel


def test_the_moment_of_a_remainder() -> None:
    """Bare WITHIN: its first event may be the last of one match and the first of another."""
    bare, sliding = (kernel_of(f"PATTERN EXISTS x (SEQ(X x, A a)) WITHIN 5{slide}") for slide in ("", " SLIDE 2"))
    assert isinstance(bare, ExistsKernel)
    assert (bare.emission.certain, bare.emission.reach) == (Certain.FIRST, 2)
    assert sliding.emission.certain is Certain.WINDOW


@pytest.mark.parametrize("output", ["TRENDS", "COMPLETE TRENDS", "COLLAPSED TRENDS"])
def test_memory_reaches_the_remainders(output: str) -> None:
    found = kernel_of(f"RETURN {output} PATTERN EXISTS x (SEQ(A a, X x, B b))").within(12345)
    inner = found if isinstance(found, ExistsKernel) else found.search
    assert isinstance(inner, ExistsKernel)
    assert inner.memory == 12345


def stream(events: int, keys: int) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "type": random.choice(["A", "X", "B"], events),
            "time": np.sort(random.integers(0, events // 2, events)),
            "k": random.integers(0, keys, events),
        }
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("window", ["", "WITHIN 9", "WITHIN 9 SLIDE 4"])
def test_keys_are_looked_at_some_at_a_time(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "STRETCH", 32)
    query, events = f"PATTERN EXISTS x (SEQ(A a, X x, B b)) WHERE [k] {window}", stream(200, 9)
    assert tl.run(query, events, engine="local").equals(tl.run(query, events, engine="reference"))
