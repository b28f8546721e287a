"""Pieces and steps: streams cut in time anywhere, in any order of arrival, give what they give as a whole."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.property.amounts import rounds
from tests.unit.kernels.aggregated import Query, planned, values

from trendloom.kernels.aggregate.block import aggregate
from trendloom.kernels.aggregate.kernel import AggregationKernel
from trendloom.kernels.aggregate.type_grained import pieces

PATTERNS = ["A+", "SEQ(A+, B)", "SEQ(A+, NOT N, B)", "SEQ(NOT N, A+)", "SEQ(A+, NOT N)", "AND(A, B+)", "A{1,3}"]
SEMANTICS = ["skip-till-any-match", "skip-till-next-match", "contiguous"]
WINDOWS = ["", "WITHIN 5", "WITHIN 6 SLIDE 2", "WITHIN 5 SLIDE 3", "WITHIN 9 SLIDE 1"]
MEASURES = "COUNT(*), SUM(A.x) AS s, MIN(A.x) AS l, MAX(A.f) AS g, SUM(A.f) AS t"


def query_of(chance: random.Random, *, predicates: bool) -> Query:
    pattern = chance.choice(PATTERNS)
    semantics = SEMANTICS[0] if "AND" in pattern else chance.choice(SEMANTICS)
    where = "WHERE A.x <= NEXT(A).x" if predicates and "AND" not in pattern else ""
    window = chance.choice(WINDOWS)
    return planned(f"RETURN k, {MEASURES} PATTERN {pattern} SEMANTICS {semantics} {where} GROUP BY k {window}")


def stream(chance: random.Random, keys: str) -> list[dict[str, Any]]:
    size = chance.choice([1, 6, 30])
    return [
        {
            "type": chance.choice("AAABBN"),
            "time": chance.randrange(size) - 5,
            "x": chance.choice([None, -2, 0, 1, 5]),
            "f": chance.choice([None, -2.5, 0.0]),
            "k": chance.choice(keys),
        }
        for _ in range(size)
    ]


def whole(query: Query, rows: list[dict[str, Any]], numeric: str) -> dict[tuple[str, int], list[Any]]:
    block, keys, table = query.block(rows)
    (totals,) = aggregate(query.spec, block, numeric)
    return values(totals, table["k"].take(keys.rows).to_pylist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("numeric", ["exact", "float", "log"])
def test_pieces_in_any_order(seed: int, numeric: str) -> None:
    chance = random.Random(seed)
    for _ in range(rounds(6)):
        query, rows = query_of(chance, predicates=False), stream(chance, "pq")
        times = sorted({row["time"] for row in rows})
        cuts = [-100, *sorted(chance.sample(times, min(len(times), 3))), 100]
        found, columns = [], {}
        for low, high in pairwise(cuts):
            some = [row for row in rows if low <= row["time"] < high]
            if some:
                block, keys, table = query.block(some)
                reduced = pieces.reduce_block(query.spec, block, numeric)
                assert reduced is not None
                number = np.array(["pq".index(k) for k in table["k"].take(keys.rows).to_pylist()], np.int64)
                found.append(replace(reduced, key=number[reduced.key]))
                columns = pieces.sortables(query.spec, block)
        joined = pieces.join(chance.sample(found, len(found)))
        if chance.random() < 0.5:
            joined = pieces.compact(query.spec, numeric, joined)
        totals = pieces.results(query.spec, numeric, joined, columns)
        assert values(totals, ["p", "q"]) == whole(query, rows, numeric)


def test_pieces_grow_as_their_numbers_do() -> None:
    query = planned("RETURN COUNT(*) PATTERN A+")
    rows = [{"type": "A", "time": time, "x": 1, "f": None, "k": "p"} for time in range(900)]
    found = []
    for begin in range(0, 900, 300):
        reduced = pieces.reduce_block(query.spec, query.block(rows[begin : begin + 300])[0], "exact")
        assert reduced is not None
        found.append(reduced)
    compacted = pieces.compact(query.spec, "exact", pieces.join(found))
    assert len(compacted) == 1
    for some in (pieces.join(found), compacted):
        totals = pieces.results(query.spec, "exact", some, {})
        assert values(totals, ["p"]) == {("p", 0): [2**900 - 1]}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("predicates", [False, True])
def test_steps_with_watermarks(seed: int, predicates: bool) -> None:
    chance = random.Random(seed)
    for _ in range(rounds(6)):
        query, rows = query_of(chance, predicates=predicates), stream(chance, "p")
        numeric = chance.choice(["exact", "float", "log"])
        summarised = query.spec.algebra and query.spec.pivot is None
        kernel = AggregationKernel(query.spec, numeric, summarised)
        state, found, kept = kernel.start(), [], []
        for watermark in [*sorted(chance.sample(range(-6, 31), 3)), None]:
            needs = None if state.before is None else kernel.emission.needs(state.before)
            some = [row for row in rows if watermark is None or row["time"] < watermark]
            some = [row for row in some if needs is None or row["time"] >= needs]
            results, state = kernel.step(state, query.block(some)[0], watermark)
            found += list(results)
            if watermark is not None:
                made = kernel.dump(state)
                kept += [] if made is None else [made]
                state = kernel.load(pa.concat_tables(kept) if kept else None, state.before)
        found += list(kernel.finish(state))
        merged: dict[tuple[str, int], list[Any]] = {}
        for totals in found:
            more = values(totals, ["p"])
            assert not merged.keys() & more.keys()
            merged |= more
        assert merged == whole(query, rows, numeric)


def test_the_state_does_not_grow_with_the_stream() -> None:
    query = planned("RETURN COUNT(*) PATTERN SEQ(A+, B)")
    kernel = AggregationKernel(query.spec, "log", summarised=True)
    state = kernel.start()
    for begin in range(0, 2000, 100):
        rows = [{"type": "AB"[t % 2], "time": t, "x": 1, "f": None, "k": "p"} for t in range(begin, begin + 100)]
        _, state = kernel.step(state, query.block(rows)[0], begin + 100)
        assert state.new is not None
        assert len(state.new) == 1
    _, state = kernel.step(state, query.block([])[0], None)
    (totals,) = kernel.finish(state)
    matches = totals.values["matches"]
    assert np.log2(matches.values[0]) + matches.exponent[0] == pytest.approx(1001, abs=0.1)
