"""Several threads give the rows of one, in the same order: keys divided, time divided, and with what a caller hears."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from tests.property.amounts import rounds

import trendloom as tl
from trendloom.engines import cores
from trendloom.engines.cores import divided
from trendloom.engines.local import stream_of
from trendloom.engines.options import Options
from trendloom.engines.reading import load, queries_of
from trendloom.engines.task import show
from trendloom.errors import RunError
from trendloom.physical.plan import plan_physically
from trendloom.plan.bind import bind

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


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("keys", [1, 40])
@pytest.mark.parametrize("query", QUERIES)
def test_threads_give_the_rows_of_one(query: str, keys: int) -> None:
    for seed in range(rounds(2)):
        table = events(seed, keys, 120 if keys > 1 else 40)
        one = tl.run(query, table, threads=1)
        for threads in (2, 5):
            assert tl.run(query, table, threads=threads).equals(one), f"{threads} threads, seed {seed}"


def parts(query: str, table: pa.Table, threads: int) -> list[cores.Portion]:
    loaded = load(table, Options())
    physical = plan_physically(bind(queries_of(query)[0], loaded.schema))
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
