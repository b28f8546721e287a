"""Rank joins and parts, forced where a run would list few combinations, give the rows of the reference."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from tests.property.amounts import amount

import trendloom as tl
from trendloom.kernels.ranking.joins import kernel as joins
from trendloom.kernels.ranking.joins import parts_kernel
from trendloom.kernels.ranking.joins.parts_in_windows import RankedWindows, best_of_parts

CASES = 120
WINDOWS = ("", "WITHIN 6 SLIDE 2", "WITHIN 4 SLIDE 4")
NONLINEAR = (
    "a.x * b.x + c.x", "a.x * b.y - c.x", "min(a.x, b.x) + c.y", "sqrt(a.x * a.x + b.x * b.x) * 2 - c.x",
    "max(a.x + b.x, c.y)", "(a.x + b.y) * c.x", "exp(a.x - b.x) + c.y", "a.x / 3 * b.y + c.x", "b.time - a.time + c.y",
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:.*same time as another")


def events(draw: random.Random) -> pa.Table:
    """A few events of three types: many of one time, of equal values, without a value, and sums that are rounded."""
    count, last = draw.randint(6, 16), draw.choice([6, 40])
    whole = draw.choice([[0, 1, 2, 3], [-1, 0, 2, None], [1, 5, 7]])
    columns: dict[str, Any] = {
        "time": [draw.randint(0, last) for _ in range(count)],
        "g": [draw.choice([1, 2]) for _ in range(count)],
        "x": [draw.choice(whole) for _ in range(count)],
    }
    found = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    found["type"] = pa.array([draw.choice("ABC") for _ in range(count)])
    found["y"] = pa.array([draw.choice([0.1, 0.2, 0.3, 0.7, 1e16]) for _ in range(count)])
    return pa.table(found)


def ending(draw: random.Random, preference: str) -> str:
    direction, limit = draw.choice(["", "DESC"]), draw.choice([1, 2, 3, 5, 50])
    return f"RANK BY {preference} {direction} LIMIT {limit} {draw.choice(['', '', 'OVERALL'])}"


def merged_query(draw: random.Random) -> str:
    window = draw.choice(WINDOWS)

    def own() -> str:
        return draw.choice(["", " WITHIN 3"]) if window else ""

    x, y = draw.choice("xy"), draw.choice("xy")
    pattern, preferences = draw.choice(
        [
            (f"AND(SEQ(A a, B b){own()}, SEQ(C c){own()})", f"a.{x} + b.{x}, -c.{y}"),
            (f"AND(SEQ(A a, B b){own()}, SEQ(A c, B d){own()})", f"a.{x} + b.{x}, c.{y} - d.{x}"),
            ("SEQ(SEQ(A a, B b), SEQ(A c, C d))", f"a.{x} - b.{y}, c.{y} + d.{y}"),
            (f"SEQ(SEQ(A a, B b){own()}, SEQ(C c))", f"b.{x}, c.{x}"),
            ("AND(A a, B b, C c)", f"a.{x}, -b.{x}, 2 * c.{x}"),
        ]
    )
    where = [one for one in ("[g]", draw.choice(["a.x <= c.x", "a.g = c.g"])) if draw.random() < 0.3]
    conditions = f"WHERE {' AND '.join(where)}" if where else ""
    merge = draw.choice(["sum", "avg", "min", "max"])
    return f"PATTERN {pattern} {conditions} {window} {ending(draw, f'MERGE({merge}, {preferences})')}"


def nonlinear_query(draw: random.Random) -> str:
    where = draw.choice(["", "WHERE [g]"])
    return f"PATTERN SEQ(A a, B b, C c) {where} {draw.choice(WINDOWS)} {ending(draw, draw.choice(NONLINEAR))}"


@pytest.mark.parametrize("queries", [merged_query, nonlinear_query])
def test_ranks_are_those_of_the_reference(queries: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    inside = joins.RankJoinKernel._boards

    def joined(kernel: joins.RankJoinKernel, *given: Any) -> Any:
        seen["found"] += 1
        return inside(kernel, *given)

    def by_parts(*given: Any, **more: Any) -> RankedWindows:
        seen["found"] += 1
        return best_of_parts(*given, **more, listed=-1)

    monkeypatch.setattr(joins, "FEW", -1)
    monkeypatch.setattr(joins.RankJoinKernel, "_boards", joined)
    monkeypatch.setattr(parts_kernel, "best_of_parts", by_parts)
    draw = random.Random(queries.__name__)
    for _ in range(amount(CASES)):
        query, table = queries(draw), events(draw)
        expected = tl.run(query, table, engine="reference").to_pylist()
        assert tl.run(query, table, engine="local").to_pylist() == expected, query
        seen["rows"] += bool(expected)
    assert seen["rows"] > 20, seen
    assert seen["found"] > CASES / 3, seen
