"""Few rows are handled in plain NumPy, and give what the compiled functions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.spans import spans_between
from trendloom.kernels.aggregate.type_grained import event_kinds as kinds
from trendloom.kernels.aggregate.type_grained.type_grained import pieces_of
from trendloom.kernels.columns import segments
from trendloom.kernels.columns import small as few
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import encode_keys
from trendloom.kernels.columns.sort import sort_by_key_and_time, sorted_times
from trendloom.model.schema import Kind
from trendloom.model.time import Window

TIMES = st.integers(-20, 20) | st.sampled_from([2**40, -(2**40)])
ANY = TIMES | st.sampled_from([2**63 - 1, -(2**63)])


def both(monkeypatch: pytest.MonkeyPatch, call: Any) -> tuple[Any, Any]:
    """What a call gives in NumPy, and compiled."""
    found = call()
    with monkeypatch.context() as patched:
        patched.setattr(few, "FEW", -1)
        patched.setattr(kinds, "FEW", -1)
        return found, call()


def same(pair: tuple[Any, Any]) -> bool:
    one, other = pair
    if one is None or other is None:
        return one is other
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, zip(one, other, strict=True)))
    return bool(np.array_equal(one, other)) and np.asarray(one).dtype == np.asarray(other).dtype


@pytest.fixture(scope="module")
def patch() -> Any:
    with pytest.MonkeyPatch.context() as found:
        yield found


@given(st.lists(st.tuples(st.integers(0, 3), ANY), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_order(patch: pytest.MonkeyPatch, rows: list[tuple[int, int]]) -> None:
    key, time = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    assert same(both(patch, lambda: sorted_times(key, time, 4)))
    assert same(both(patch, lambda: sort_by_key_and_time(key, time, 4)))
    assert same(both(patch, lambda: sort_by_key_and_time(None, time, 1)))


@given(st.lists(st.tuples(ANY, st.integers(0, 2), st.booleans()), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_keys(patch: pytest.MonkeyPatch, rows: list[tuple[int, int, bool]]) -> None:
    wide, narrow, valid = (np.array(column) for column in zip(*rows, strict=True))
    columns = [Vector(Kind.INT, wide, valid), Vector(Kind.INT, narrow, None)]
    for some in (columns, columns[:1], columns[1:]):
        found, compiled = both(patch, lambda some=some: encode_keys(some))
        assert same(((found.codes, found.rows), (compiled.codes, compiled.rows)))
        assert found.count == compiled.count


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    keys = draw(st.lists(st.lists(TIMES, min_size=1, max_size=8), max_size=4))
    time = np.array([one for key in keys for one in sorted(key)], np.int64)
    starts = np.cumsum([0, *map(len, keys)]).astype(np.int64)
    word = draw(st.sampled_from([np.uint8, np.uint32, np.uint64]))
    fits = np.array([draw(st.integers(0, 7)) for _ in time], word)
    return Block(starts, time, np.arange(len(time)), {}, (fits,), (0, 1, 2))


@given(blocks(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_ties_windows_and_panes(patch: pytest.MonkeyPatch, block: Block, within: int, slide: int, least: int) -> None:
    starts, time = block.key_starts, block.time
    assert same(both(patch, lambda: segments.tie_ends(starts, time)))
    assert same(both(patch, lambda: segments.tie_starts(segments.tie_ends(starts, time))))
    spans = both(patch, lambda: spans_between(starts, time, Window(within, slide), least))
    assert same(tuple((one.key, one.start, one.low, one.high) for one in spans))  # type: ignore[arg-type]
    assert same(both(patch, lambda: pieces_of(block, slide)))
    found, compiled = both(patch, lambda: kinds.kinds_of(block))
    assert same(((found.code, found.own, found.union), (compiled.code, compiled.own, compiled.union)))
    assert (found.tied, found.positions) == (compiled.tied, compiled.positions)


@given(blocks(), st.lists(st.tuples(st.integers(0, 10), TIMES), max_size=10))
@settings(max_examples=60, deadline=None)
def test_searches(patch: pytest.MonkeyPatch, block: Block, asked: list[tuple[int, int]]) -> None:
    some = [(key % block.keys, time) for key, time in asked if block.keys]
    key, wanted = np.array([k for k, _ in some], np.int64), np.array([t for _, t in some], np.int64)
    assert same(both(patch, lambda: block.not_before(key, wanted)))


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=6), st.lists(st.integers(0, 20), max_size=8))
@settings(max_examples=60, deadline=None)
def test_segments(patch: pytest.MonkeyPatch, lists: list[list[bool]], asked: list[int]) -> None:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    flags = np.array([flag for one in lists for flag in one], np.bool_)
    assert same(both(patch, lambda: segments.first_where(offsets, flags)))
    assert same(both(patch, lambda: segments.last_where(offsets, flags)))
    rows = np.array([row % len(lists) for row in asked if lists], np.int64)
    into = np.r_[0, np.cumsum(np.diff(offsets)[rows])].astype(np.int64)
    for values in (np.arange(len(flags)), np.arange(len(flags), dtype=np.int32)):
        assert same(both(patch, lambda values=values: segments.gather_segments(offsets, values, rows, into)))
