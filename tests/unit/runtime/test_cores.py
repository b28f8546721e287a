"""Several threads give the rows of one, in the same order: keys divided, time divided, and with what a caller hears."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, rounds, thorough

import trendloom as tl
from trendloom.engines.local import stream_of
from trendloom.errors import RunError
from trendloom.expr import arrays
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.runtime import match_rows as rows
from trendloom.runtime import parallel as cores
from trendloom.runtime import result_builder as giving
from trendloom.runtime.parallel import divided, made_ahead
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of
from trendloom.runtime.task import show

QUERIES = (
    "RETURN k, COUNT(*), SUM(b.x), MIN(b.x), AVG(b.x) PATTERN SEQ(A a+, B b) WHERE [k] GROUP BY k WITHIN 9 SLIDE 4",
    "RETURN COUNT(*), MAX(a.x) PATTERN A a+ WHERE [k] AND a.x < NEXT(a).x WITHIN 9 SLIDE 4",
    "RETURN COUNT(*) PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < c.x WITHIN 9 SLIDE 9",
    "RETURN COUNT(*) PATTERN A+ a[] WHERE [k] AND avg(a[].x) > 1 WITHIN 5 SLIDE 5",
    "PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match WHERE [k] WITHIN 9",
    "PATTERN SEQ(A a, NOT C c, B b) WHERE [k] WITHIN 6",
    "PATTERN SEQ(A a, B b, NOT C c) WHERE [k] WITHIN 6 SLIDE 3",
    "RETURN a.x, b.x PATTERN SEQ(A a, B b) SEMANTICS contiguous WHERE [k]",
    "RETURN COMPLETE TRENDS PATTERN A a+ WHERE [k] AND a.x < NEXT(a).x WITHIN 6",
    "RETURN COMPLETE TRENDS PATTERN SEQ(A a+, B b) WHERE [k] WITHIN 5 SLIDE 5",
    "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], C c) WHERE [k] WITHIN 9",
)


def events(seed: int, keys: int, count: int = 120, span: int = 90) -> pa.Table:
    draw = random.Random(seed)
    rows = [
        {
            "type": draw.choice("AABBC"),
            "time": draw.randrange(span),
            "k": draw.choice([*range(keys), None]),
            "x": draw.choice([None, 1, 2, 3]),
        }
        for _ in range(count)
    ]
    columns = {"type": pa.string(), "time": pa.int64(), "k": pa.int64(), "x": pa.int64()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LEAST", 1)
    monkeypatch.setattr(cores, "OVERLAP", 0)
    monkeypatch.setattr(arrays, "LEAST_SLICE", 1)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("keys", [1, 40])
@pytest.mark.parametrize("query", QUERIES)
def test_threads_give_the_rows_of_one(query: str, keys: int) -> None:
    for seed in range(rounds(2)):
        table = events(seed, keys, 120 if keys > 1 else 40)
        one = tl.run(query, table, threads=1)
        for threads in (2, 5):
            assert tl.run(query, table, threads=threads).equals(one), f"{threads} threads, seed {seed}"


WITHOUT_KEY = tuple(query.replace("[k] AND", "").replace("WHERE [k]", "") for query in QUERIES if "GROUP" not in query)
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "no value": (pa.int64(), [None]),
    "one key": (pa.int64(), [7]),
    "few keys": (pa.int64(), [2**40, -3, None]),
    "doubles": (pa.float64(), [0.0, -0.0, float("nan"), 1.5, None]),
    "texts": (pa.string(), ["a", "b", "", "é", None]),
    "words": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
}


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    """Few events, in order of time or not, with ties, with all kinds of keys."""
    kind, values = KEYS[draw(st.sampled_from(list(KEYS)))]
    event = st.tuples(
        st.sampled_from("AABBC"),
        st.integers(0, 20),
        st.sampled_from(values),
        st.sampled_from([None, 1, 2, 3]),
        st.integers(0, 3),
    )
    found = draw(st.lists(event, max_size=24))
    if draw(st.booleans()):
        found.sort(key=lambda one: one[1])
    types = (pa.string(), pa.int64(), kind, pa.int64(), pa.int64())
    columns = [pa.array([one[at] for one in found], type_) for at, type_ in enumerate(types)]
    return pa.Table.from_arrays(columns, ["type", "time", "k", "x", "n"])


@pytest.fixture(scope="module")
def for_many_rows() -> Any:
    """What many rows are handled with, in batches of two; interpreted, as threads share what they write."""
    with pytest.MonkeyPatch.context() as patch:
        for room, name, value in (
            (cores, "LEAST", 1), (cores, "OVERLAP", 0), (cores, "WAITING", 3), (arrays, "LEAST_SLICE", 1),
            (giving, "BATCH", 2), (rows, "MANY", 0),
        ):  # fmt: skip
            patch.setattr(room, name, value)
        patch.setenv("TRENDLOOM_COMPILE", "never")
        yield


@pytest.mark.filterwarnings("ignore::UserWarning")
@thorough(amount(60))
@given(streams(), st.sampled_from(QUERIES + WITHOUT_KEY), st.sampled_from([None, "n"]))
def test_no_answer_depends_on_the_threads(for_many_rows: Any, table: pa.Table, query: str, order: str | None) -> None:
    one = tl.run(query, table, threads=1, order=order)
    for threads in (2, 3):
        assert tl.run(query, table, threads=threads, order=order).equals(one), f"{threads} threads"


@pytest.mark.parametrize("numeric", ["exact", "float", "log"])
def test_sums_are_rounded_as_one_thread_does(numeric: str) -> None:
    table = events(3, 40)
    table = table.append_column("y", pa.array(np.random.default_rng(3).random(len(table)) * 1e9))
    query = "RETURN k, COUNT(*), SUM(a.y) PATTERN SEQ(A a+, B b+) WHERE [k] GROUP BY k WITHIN 60 SLIDE 7"
    one = tl.run(query, table, threads=1, numeric=numeric)
    assert one.num_rows > 40
    assert tl.run(query, table, threads=3, numeric=numeric).equals(one)


def test_threads_read_types_as_one_does() -> None:
    table = events(5, 3)
    one, more = prepare(table, threads=1), prepare(table, threads=3)
    assert more.types.to_list() == one.types.to_list() == table["type"].to_pylist()
    assert more.schema == one.schema


def test_queries_of_a_workload_share_what_threads_have_made() -> None:
    names = ("x", "y")
    text = "\n".join(f"QUERY {name}: {query}" for name, query in zip(names, QUERIES[4:6], strict=True))
    table = events(6, 40)
    assert tl.run(text, table, threads=3).equals(tl.run(text, table, threads=1))


def test_what_is_made_ahead_comes_in_order_and_stops_with_who_asks() -> None:
    started: list[int] = []

    def make(number: int) -> int:
        started.append(number)
        if number == 50:
            raise RunError("no more")
        return number

    found = made_ahead(make, [(number,) for number in range(100)], 2)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    assert len(started) < 10
    with pytest.raises(RunError, match="no more"):
        list(found)


def parts(query: str, table: pa.Table, threads: int) -> list[cores.Portion]:
    loaded = load(table, Options())
    physical = plan_query(bind(queries_of(query)[0], loaded.schema))
    return divided(physical.kernel, show(physical, stream_of(physical, loaded)).block, threads)


def test_keys_are_divided_whole() -> None:
    found = parts(QUERIES[4], events(1, 40), 2)
    assert len(found) > 2
    assert all(part.until is None for part in found)
    assert all(a.key + a.block.keys == b.key and a.low + len(a.block) == b.low for a, b in pairwise(found))


def test_one_key_is_divided_by_time() -> None:
    found = parts(QUERIES[4], events(1, 1), 2)
    assert len(found) > 2
    assert [part.before for part in found[1:]] == [part.until for part in found[:-1]]


def test_few_events_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LEAST", 10_000)
    assert len(parts(QUERIES[4], events(1, 40), 4)) == 1


def test_without_an_end_one_key_stays_whole() -> None:
    assert len(parts("PATTERN SEQ(A a, B b) SEMANTICS contiguous", events(1, 1), 4)) == 1


def test_what_goes_wrong_in_a_thread_is_told_as_it_is() -> None:
    many: Any = pa.table({"type": ["A"] * 60, "time": range(60), "k": [n % 3 for n in range(60)]})
    with pytest.raises(RunError, match="more than 1,000 to give out") as caught:
        tl.run("PATTERN A+ WHERE [k]", many, threads=2, max_trends=1_000)
    assert "max_trends=" in str(caught.value.hint)


def test_a_limit_stops_all_threads() -> None:
    many = pa.table({"type": ["A"] * 90, "time": range(90), "k": [n % 3 for n in range(90)]})
    assert tl.run("PATTERN A+ WHERE [k]", many, threads=2, limit=5).num_rows == 5


def test_queries_of_a_workload_read_columns_of_their_own() -> None:
    """Events are sorted once, columns when a query first asks for them: other queries have no such column."""
    rng = np.random.default_rng(5)
    table = pa.table(
        {"time": rng.integers(0, 50, 200), "type": rng.choice(["A", "B"], 200), "k": rng.integers(0, 4, 200),
         "x": rng.integers(0, 9, 200), "y": rng.integers(0, 9, 200), "line": rng.integers(0, 9, 200)}
    )  # fmt: skip
    queries = {
        "a": "RETURN k, COUNT(*) PATTERN A a WHERE [k] AND a.x > 3 GROUP BY k",
        "b": "RETURN k, SUM(B.y) PATTERN SEQ(A a, B b) WHERE [k] AND b.y < 7 GROUP BY k",
        "c": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.y SEMANTICS skip-till-next-match WITHIN 5",
        "d": "RETURN k, COUNT(*) PATTERN SEQ(A a, B b) WHERE [k] SEMANTICS contiguous GROUP BY k",
    }
    text = "\n".join(f"QUERY {name}: {query}" for name, query in queries.items())
    for order in ((), ("line",)):
        found = tl.run(text, table, order=order)
        for name, query in queries.items():
            rows = found.filter(pa.compute.equal(found["query"], name)).to_pylist()
            alone = tl.run(query, table, order=order)
            assert [{key: row[key] for key in alone.column_names} for row in rows] == alone.to_pylist()
