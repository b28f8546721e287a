"""Sequences bound from outside inwards: the same matches as by extending them, in pieces of any size, in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.property.strategies import SCHEMA

from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.match.expansion import JoiningKernel, describe_order, enumerate_matches, joined_matches
from trendloom.kernels.matching.join_order import Joining
from trendloom.logical.bind import bind
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

QUERIES = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x",
    "PATTERN SEQ(A a, B b, (C c: c.x = a.x), D d) WHERE d.x < b.x WITHIN 9",
    "PATTERN SEQ(A a, SEQ(B b, C c), (D d: d.x = b.x)) WITHIN 12 SLIDE 5",
    "PATTERN SEQ(A a, NOT (B b: b.x = c.x + a.x), C c, D d) WHERE d.x = a.x WITHIN 10",
    "PATTERN SEQ(A a, NOT SEQ((B b: b.x = d.x), (C c: c.x = a.x)), D d) WITHIN 10",
    "PATTERN SEQ(A a, NOT SEQ((B b: b.x = d.x), NOT (A e: e.x < a.x), (C c: c.x > b.x)), B f, D d) WITHIN 12",
    "PATTERN SEQ(NOT C, A a, B b, D d) WHERE a.x = d.x WITHIN 10",
    "PATTERN SEQ(A a, B b, D d, NOT (C c: c.x = a.x)) WHERE a.x <= d.x WITHIN 10 SLIDE 4",
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x + b.x = c.x",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x AND b.time - a.time < 3",
    "PATTERN SEQ(A a, B b, C c) WHERE a[first].x < c.x AND b.x < NEXT(c).x",
]


def stream(size: int, seed: int, most: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(size),
            "type": np.array(list("ABCD"))[random.integers(0, 4, size)],
            "time": random.integers(0, max(1, size // 2), size),
            "x": random.integers(0, most, size),
            "y": random.random(size),
            "g": np.array(["u", "v"])[random.integers(0, 2, size)],
            "k": random.integers(0, 2, size),
        }
    )


def prepared(query: str, table: pa.Table) -> tuple[Physical, Block]:
    physical = plan_query(bind(parse_query(query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    return physical, build_block(physical, Stream(table, kinds, table["time"].to_numpy()))[0]


def as_set(found: list[Matches]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for matches in found:
        for at in range(len(matches)):
            low, high = matches.offsets[at : at + 2]
            start = None if matches.window_start is None else int(matches.window_start[at])
            rows.append((str(start), *matches.events[low:high].tolist(), *matches.positions[low:high].tolist()))
    return sorted(rows)


@pytest.mark.parametrize("query", QUERIES)
def test_the_matches_of_the_expansion(query: str) -> None:
    found = 0
    for seed in range(4):
        physical, block = prepared(query, stream(40, seed))
        assert isinstance(physical.kernel, JoiningKernel)
        expected = as_set(list(enumerate_matches(physical.pattern_spec, block)))
        for chunk in (1 << 20, 7):
            assert as_set(list(joined_matches(physical.pattern_spec, block, chunk))) == expected
        found += len(expected)
    assert found > 10


@pytest.mark.parametrize("query", QUERIES[:6])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_gives_the_same(query: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    physical, block = prepared(query, stream(30, seed))
    expected = as_set(list(joined_matches(physical.pattern_spec, block)))
    random = np.random.default_rng(seed)

    def shuffled(self: Joining) -> tuple[int, ...]:
        return tuple(random.permutation(len(self.names)).tolist())

    monkeypatch.setattr(Joining, "order", property(shuffled_once(shuffled)))
    assert as_set(list(joined_matches(physical.pattern_spec, block))) == expected


def shuffled_once(shuffled):  # type: ignore[no-untyped-def]
    """An order for each search, that stays."""
    known: dict[int, tuple[int, ...]] = {}
    return lambda joining: known.setdefault(id(joining), shuffled(joining))


def test_what_loses_most_is_bound_first() -> None:
    table = stream(2_000, 1, most=500)
    physical, block = prepared("PATTERN SEQ(A a, B b, C c, D d) WHERE b.x = d.x WITHIN 100", table)
    assert set(describe_order(physical.pattern_spec, block).split(", ")[:2]) == {"b", "d"}


def test_nothing_to_bind() -> None:
    physical, block = prepared(QUERIES[0], stream(0, 1))
    assert list(joined_matches(physical.pattern_spec, block)) == []
    table = stream(40, 1).filter(pa.compute.field("type") != "C")
    physical, block = prepared(QUERIES[0], table)
    assert list(joined_matches(physical.pattern_spec, block)) == []
