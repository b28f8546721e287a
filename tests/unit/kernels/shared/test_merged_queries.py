"""Patterns merged into a tree of prefixes, the examples of the paper on sharing, and kinds of events by a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.kernels.columns.block import Block
from trendloom.kernels.shared import CountedQuery, CountedStep, SharedSteps, families_of
from trendloom.kernels.shared.events import kinds_of
from trendloom.kernels.shared.program import merge_queries
from trendloom.kernels.shared.sweep import sweep_queries
from trendloom.model.time import Window
from trendloom.options import Options
from trendloom.planner.sharing.queries import counted_query
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import queries_of, schema_of_columns

TEN = Window(10, 5)


def query(window: Window, letters: str) -> CountedQuery:
    """A step for each letter; small ones repeat."""
    return CountedQuery(
        window, tuple(CountedStep("ABCD".index(letter.upper()), letter.islower()) for letter in letters)
    )


def test_prefixes_are_shared() -> None:
    merged = merge_queries([query(TEN, "ABC"), query(TEN, "ABD"), query(TEN, "Ab"), query(TEN, "CABC")])
    assert [cell.letter for cell in merged.cells] == [None, 0, 1, 2, 3, 1, 2, 0, 1, 2]
    assert merged.nodes == 9
    assert merge_queries([query(TEN, "ABC"), query(TEN, "DBC")]).nodes == 6
    assert merge_queries([query(TEN, "ABC"), query(TEN, "DBC")], backwards=True).nodes == 4


def test_windows_that_begin_at_the_same_times_are_a_family() -> None:
    alike = [query(TEN, "ABC"), query(Window(20, 5), "ABD"), query(Window(5, 5), "AB")]
    (family,) = families_of(alike)
    assert (family.grid, family.reach, family.lanes) == (5, 20, 4)
    assert merge_queries(alike).nodes == 4
    apart = [query(TEN, "ABC"), query(Window(7, 7), "ABD"), query(Window(), "ABC")]
    assert [one.lanes for one in families_of(apart)] == [2, 1, 1]
    backwards = [query(TEN, "ABC"), query(Window(7, 5), "ABC"), query(Window(20, 5), "ABC")]
    assert [one.windows for one in families_of(backwards, backwards=True)] == [
        (Window(7, 5),),
        (TEN, Window(20, 5)),
    ]


def test_what_comes_out_of_a_segment_may_enter_another() -> None:
    times = np.arange(8)
    block = Block(np.array([0, 8]), times, times, {}, (np.array([1, 2, 4, 8] * 2, np.uint8),))
    group = [query(Window(), "ABCD"), query(Window(), "ABCD")]
    halves = [SharedSteps(group[0].steps[at : at + 2], ((0, at), (1, at))) for at in (0, 2)]
    bits = {letter: letter for letter in range(4)}
    for segments in ([], halves[:1], halves[1:], halves):
        (found, _) = sweep_queries(merge_queries(group, segments=segments), block, bits)
        assert [numbers.tolist() for numbers in found.numbers] == [[5]]


def test_the_examples_of_the_paper() -> None:
    """Counts of (A, B) online, in windows that slide, and of (A, B, C, D) out of those of its halves: 5, 2 and 7."""
    pairs = pa.table({"type": list("ABABB"), "time": [1, 2, 3, 4, 5]})
    text = "QUERY all: RETURN COUNT(*) PATTERN SEQ(A, B)\nQUERY w: RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 4 SLIDE 1"
    found = tl.run(text, pairs).to_pylist()
    assert [row["COUNT(*)"] for row in found if row["query"] == "all"] == [5]
    assert [row["COUNT(*)"] for row in found if row["window_start"] == 2] == [2]
    quads = pa.table({"type": list("ABACBBDCD"), "time": [1, 2, 3, 3, 4, 5, 5, 7, 8]})
    text = "QUERY whole: RETURN COUNT(*) PATTERN SEQ(A, B, C, D)\nQUERY half: RETURN COUNT(*) PATTERN SEQ(A, B)"
    with pytest.warns(UserWarning, match="same time"):
        found = tl.run(text, quads).to_pylist()
    assert [row["COUNT(*)"] for row in found] == [7, 5]


@pytest.mark.parametrize(
    "query",
    [
        "RETURN COUNT(*) PATTERN SEQ(NOT C, A, B)",
        "RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B)",
        "RETURN COUNT(*) PATTERN SEQ(A a, NOT C c, B) WHERE c.x > a.x",
        "RETURN COUNT(*) PATTERN SEQ(A, B) SEMANTICS skip-till-next-match",
        "RETURN COUNT(*) PATTERN SEQ(A, OR(B, C))",
        "RETURN COUNT(*) PATTERN (SEQ(A, B))+",
        "RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 100 SLIDE 2",
        "RETURN COUNT(*) PATTERN A a+ WHERE a.x < NEXT(a).x",
        "PATTERN SEQ(A, B)",
    ],
)
def test_what_is_counted_alone(query: str) -> None:
    columns = pa.schema([("time", pa.int64()), ("type", pa.string()), ("x", pa.int64())])
    (physical,) = planned(queries_of(query), schema_of_columns(columns, Options())).queries
    assert counted_query(physical, {}) is None


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_kinds_are_those_that_sorting_finds(dtype: type[np.unsignedinteger]) -> None:
    some = np.random.default_rng(2).integers(0, 200, 50, np.uint64).astype(dtype) * dtype(np.iinfo(dtype).max // 255)
    words = some[np.random.default_rng(3).integers(0, len(some), 32_771)]
    codes, listed = kinds_of((words,))
    assert np.array(listed, dtype)[codes].tolist() == words.tolist()
    assert len(listed) == len(np.unique(words))


def test_kinds_of_more_bits_than_a_word_has() -> None:
    low, high = np.arange(600, dtype=np.uint64) % 3 << np.uint64(62), np.arange(600, dtype=np.uint8) % 4
    codes, listed = kinds_of((low, high))
    assert [listed[code] for code in codes] == [int(a) | int(b) << 64 for a, b in zip(low, high, strict=True)]
    assert len(listed) == 12
