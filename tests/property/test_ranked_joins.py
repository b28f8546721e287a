"""Rank joins and parts, forced where a run would list few combinations, give the rows of the reference."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.property.amounts import amount

import trendloom as tl
from trendloom.errors import RunError
from trendloom.kernels.ranking import join_kernel as joins
from trendloom.kernels.ranking import join_operands, join_stretches, parts
from trendloom.kernels.ranking.parts import best_of_parts
from trendloom.kernels.ranking.strata import BestPaths

CASES = 120
WINDOWS = ("", "WITHIN 6 SLIDE 2", "WITHIN 4 SLIDE 4")
BOUNDS = (*WINDOWS, "WITHIN 6 SLIDE 1", "WITHIN 3", "WITHIN 5", "WITHIN 40")
EQUALITIES = (
    "{0}.r = {1}.r", "{0}.x = {1}.x", "{0}.x = {1}.y", "{0}.m = {1}.x", "{0}.m = {1}.y", "{0}.x + 1 = {1}.x",
    "{0}.y = {1}.y", "{0}.g = {1}.x", "{0}.x <= {1}.x", "{0}.time < {1}.time",
)  # fmt: skip
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


def events_of_all_kinds(draw: random.Random) -> pa.Table:
    """Text, decimals, doubles and integers, some of them NULL, some too large for doubles or for 64 bits in a sum."""
    count, last = draw.randint(5, 15), draw.choice([6, 20, 40])
    whole = draw.choice([[0, 1, 2, 3], [-1, 0, 2, None], [1, 5, 7], [2**53, 2**53 + 1, 1], [2**60, 1, 2]])
    doubles = draw.choice([[0.1, 0.2, 0.3, 0.7, 1e16], [1.0, 2.0, 0.0, -0.0, None], [2.0**53, 1.0, 3.0]])
    decimals = [Decimal("0.10"), Decimal("2.00"), Decimal("0.30"), draw.choice([None, Decimal("1.00")])]

    def column(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array([draw.choice(values) for _ in range(count)], kind)

    return pa.table(
        {
            "time": column(range(last + 1), pa.int64()),
            "type": column("AABBC", pa.string()),
            "g": column([1, 2], pa.int64()),
            "x": column(whole, pa.int64()),
            "r": column(draw.choice([["u", "v"], ["u", "v", None]]), pa.string()),
            "m": column(decimals, pa.decimal128(12, 2)),
            "y": column(doubles, pa.float64()),
        }
    )


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


def bounded_query(draw: random.Random) -> str:
    """AND, SEQ and OR, also inside each other, with bounds on spans and windows of operands, and equalities."""
    columns = draw.choice(["x", "y", "m", "xy", "xm", "xxxym"])

    def own() -> str:
        return draw.choice(["", "", " WITHIN 3", " WITHIN 2"])

    def one(name: str) -> str:
        form = draw.choice(["{0}.{1}", "{0}.{1}", "-{0}.{1}", "2 * {0}.{1}", "{0}.{1} + 1"])
        return form.format(name, draw.choice(columns))

    def two(first: str, second: str) -> str:
        return f"{first}.{draw.choice(columns)} {draw.choice('+-')} {second}.{draw.choice(columns)}"

    pattern, preferences = draw.choice(
        [
            *[(f"AND(SEQ(A a, B b){own()}, SEQ(A c, B d){own()})", [two("a", "b"), two("c", "d")])] * 3,
            (f"AND(SEQ(A a, A b){own()}, A c{own()}, SEQ(B d))", [two("a", "b"), one("c"), one("d")]),
            (f"SEQ(SEQ(A a, B b){own()}, SEQ(A c, C d))", [one("b"), two("c", "d")]),
            (f"OR(SEQ(A a, B b){own()}, SEQ(C c, A d){own()})", [two("a", "b"), two("c", "d")]),
            (f"OR(SEQ(A a, B+ e[]){own()}, SEQ(C b, A c), B d)", ["a.x + sum(e[].x)", two("b", "c"), one("d")]),
            (f"OR(AND(SEQ(A a, B b){own()}, A c), C d{own()})", [two("a", "b"), one("c"), one("d")]),
            (f"OR(SEQ(A a, B b), SEQ(C c, A d){own()})", ["a.x * b.x", two("c", "d")]),
            (f"AND(OR(A a, SEQ(B b, A c)){own()}, C d)", [one("a"), two("b", "c"), one("d")]),
            (f"SEQ(OR(A a, B b), SEQ(A c, B d){own()})", [one("a"), one("b"), two("c", "d")]),
            ("SEQ(A a, OR(SEQ(A b, B c), C d))", [one("a"), two("b", "c"), one("d")]),
        ]
    )
    pairs = [draw.choice([(draw.choice("ab"), draw.choice("cd")), draw.sample("abcd", 2)]) for _ in range(2)]
    where = [draw.choice(EQUALITIES).format(*pair) for pair in pairs[: draw.choice([0, 1, 1, 2])]]
    where += ["[g]"] * (draw.random() < 0.2)
    conditions = f"WHERE {' AND '.join(where)}" if where else ""
    merge = draw.choice(["sum", "avg", "min", "max"])
    ranking = ending(draw, f"MERGE({merge}, {', '.join(preferences)})")
    return f"PATTERN {pattern} {conditions} {draw.choice(BOUNDS)} {ranking}"


def nonlinear_query(draw: random.Random) -> str:
    where = draw.choice(["", "WHERE [g]"])
    return f"PATTERN SEQ(A a, B b, C c) {where} {draw.choice(WINDOWS)} {ending(draw, draw.choice(NONLINEAR))}"


@pytest.mark.parametrize("queries", [merged_query, nonlinear_query])
def test_ranks_are_those_of_the_reference(queries: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    inside = join_stretches.StretchJoins.ranked

    def joined(joins_: join_stretches.StretchJoins, *given: Any) -> Any:
        seen["found"] += 1
        return inside(joins_, *given)

    def by_parts(*given: Any, **more: Any) -> BestPaths:
        seen["found"] += 1
        return best_of_parts(*given, **more, listed=-1)

    monkeypatch.setattr(joins, "LITTLE", -1)
    monkeypatch.setattr(join_stretches, "FEW", -1)
    monkeypatch.setattr(join_stretches.StretchJoins, "ranked", joined)
    monkeypatch.setattr(parts, "best_of_parts", by_parts)
    draw = random.Random(queries.__name__)
    for _ in range(amount(CASES)):
        query, table = queries(draw), events(draw)
        expected = tl.run(query, table, engine="reference").to_pylist()
        assert tl.run(query, table, engine="local").to_pylist() == expected, query
        seen["rows"] += bool(expected)
    assert seen["rows"] > 20, seen
    assert seen["found"] > CASES / 3, seen


def rows_of(query: str, table: pa.Table, engine: str) -> object:
    """The rows, or that a number is too large for them."""
    try:
        return tl.run(query, table, engine=engine).to_pylist()
    except RunError as error:
        if "beyond 64 bits" not in str(error):
            raise
        return str(error)


def test_joins_of_all_forms_in_any_order_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many stretches are listed or opened at a time, and however few sequences are made at first."""
    seen: Counter[str] = Counter()
    inside = join_stretches.StretchJoins.ranked

    def joined(joins_: join_stretches.StretchJoins, *given: Any) -> Any:
        seen["joined"] += 1
        seen["by keys"] += bool(joins_._kernel.equalities)
        seen["by spans"] += joins_._stretches.first_end is not None
        seen["by branches"] += any(len(operand.branches) > 1 for operand in joins_._kernel.operands)
        return inside(joins_, *given)

    monkeypatch.setattr(join_stretches.StretchJoins, "ranked", joined)
    monkeypatch.setattr(joins, "LITTLE", -1)
    draw = random.Random("all forms")
    for _ in range(amount(2 * CASES)):
        for module, name, values in (
            (join_stretches, "FEW", [-1, -1, 2, 10]), (join_stretches, "LISTED", [1, 1 << 24]),
            (join_stretches, "OPENED", [1, 8]), (join_stretches, "FIRST_TURN", [1, 2]),
            (join_stretches, "HELD", [4, 1 << 19]),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, draw.choice(values))
        for module in (join_operands, join_stretches):
            monkeypatch.setattr(module, "FIRST", draw.choice([1, 2, 64]))
        query, table = bounded_query(draw), events_of_all_kinds(draw)
        found = rows_of(query, table.take(draw.sample(range(len(table)), len(table))), "local")
        if isinstance(found, list):  # the reference has scores of any size
            assert found == rows_of(query, table, "reference"), query
            seen["rows"] += bool(found)
    assert seen["rows"] > CASES / 2, seen
    assert min(seen[name] for name in ("joined", "by keys", "by spans", "by branches")) > CASES / 12, seen
