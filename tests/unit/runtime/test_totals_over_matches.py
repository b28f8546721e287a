"""Totals over all matches: partial sums add up in any order, exactly; numbers in the format asked for."""

from __future__ import annotations

import itertools
import math
import random

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.errors import RunError
from trendloom.expr.decimals import from_text, to_text
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.logical.bind import bind
from trendloom.planner.measures import measures_of
from trendloom.runtime.aggregates import merge_partials
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.match_rows import Arranged
from trendloom.runtime.planning import plan_query
from trendloom.runtime.result_builder import chunk_partial

EVENTS = pa.table(
    {
        "type": ["A"] * 8,
        "time": range(8),
        "k": [1, 1, 2, 2, 1, 2, 1, 2],
        "x": [5, None, -7, 2**62, 2**62, 3, 2**62, 1],
        "y": [0.1, 0.2, None, 1e300, -1e300, 0.3, 1e16, 1.0],
        "s": ["b", "a", None, "d", "c", "e", "a", "a"],
    }
)
QUERY = (
    "RETURN k, COUNT(*), COUNT(A.x), SUM(A.x), AVG(A.x), MIN(A.x), MAX(A.x), SUM(A.y), MIN(A.s), MAX(A.s) "
    "PATTERN A+ GROUP BY k WITHIN 6 SLIDE 3"
)


def partials_of(query: str, chunk: int) -> tuple[object, list[pa.Table]]:
    events = prepare(EVENTS)
    physical = plan_query(bind(parse_query(query), events.schema))
    kinds = {column.name: column.kind for column in events.schema.columns}
    stream = Stream(EVENTS.select(list(physical.plan.scan.columns)), kinds, events.ticks)
    shown = Arranged(physical, stream, *build_block(physical, stream))
    found = enumerate_matches(physical.pattern_spec, shown.block, chunk)
    return physical.plan, [chunk_partial(shown, matches) for matches in found]


def test_partials_add_up_in_any_order() -> None:
    plan, partials = partials_of(QUERY, chunk=4)
    assert len(partials) > 5

    def merged(parts: list[pa.Table]) -> list[str]:
        return sorted(str(row) for row in merge_partials(plan, parts).drop_columns(["sum_0_y"]).to_pylist())

    whole = merged(partials)
    for seed in range(5):
        shuffled = random.Random(seed).sample(partials, len(partials))
        assert merged(shuffled) == whole
        halves = [merge_partials(plan, shuffled[:3]), merge_partials(plan, shuffled[3:])]
        assert merged(halves) == whole


def test_what_is_measured() -> None:
    plan, _ = partials_of("RETURN COUNT(*), AVG(A.x), SUM(A.x), COUNT(A) PATTERN A+ HAVING MAX(A.s) > 'b'", chunk=100)
    assert [measure.name for measure in measures_of(plan)] == ["matches", "sum_0_x", "count_0_x", "count_0_", "max_0_s"]


def test_totals_equal_those_of_the_definition() -> None:
    local, reference = (tl.run(QUERY, EVENTS, engine=engine) for engine in ("local", "reference"))
    assert local.schema == reference.schema
    exact = [name for name in local.column_names if name != "SUM(A.y)"]
    assert local.select(exact).equals(reference.select(exact))
    for found, expected in zip(local["SUM(A.y)"].to_pylist(), reference["SUM(A.y)"].to_pylist(), strict=True):
        assert found == pytest.approx(expected)


class TestExact:
    @pytest.mark.parametrize(
        ("factors", "kind"), [(1, "int64"), (2, "decimal128(38, 0)"), (3, "decimal256(76, 0)"), (5, "string")]
    )
    def test_columns_are_as_wide_as_they_must_be(self, factors: int, kind: str) -> None:
        table = pa.table({"type": ["A"], "time": [1], "x": [2**62]})
        found = tl.run(f"RETURN {' * '.join(['SUM(A.x)'] * factors)} AS total PATTERN A", table)
        assert str(found.schema.field("total").type) == kind
        assert int(found["total"][0].as_py()) == 2 ** (62 * factors)

    def test_a_column_is_as_wide_as_its_widest_value(self) -> None:
        table = pa.table({"type": ["A"] * 3, "time": range(3), "k": [1, 2, 2], "x": [1, 2**62, 2**62]})
        found = tl.run("RETURN k, SUM(A.x) PATTERN A GROUP BY k", table)
        assert str(found.schema.field("SUM(A.x)").type) == "decimal128(38, 0)"
        assert found["SUM(A.x)"].to_pylist() == [1, 2**63]


class TestFloat:
    def test_totals_are_doubles(self) -> None:
        found = tl.run("RETURN COUNT(*), SUM(A.x), MAX(A.x) PATTERN A", EVENTS, numeric="float").to_pylist()
        assert found == [{"COUNT(*)": 8.0, "SUM(A.x)": float(3 * 2**62 + 2), "MAX(A.x)": 2.0**62}]

    def test_infinity_is_infinity(self) -> None:
        table = pa.table({"type": ["A"], "time": [1], "x": [2**62]})
        product = " * ".join(["SUM(A.x)"] * 17)
        assert tl.run(f"RETURN {product} AS total PATTERN A", table, numeric="float")["total"][0].as_py() == math.inf


class TestLog:
    def test_counts_and_sums_are_logarithms(self) -> None:
        (row,) = tl.run("RETURN COUNT(*), SUM(A.x), AVG(A.x), MIN(A.x) PATTERN A", EVENTS, numeric="log").to_pylist()
        assert row["COUNT(*)"] == pytest.approx(math.log10(8))
        assert row["SUM(A.x)"] == pytest.approx(math.log10(3 * 2**62 + 2))
        assert row["MIN(A.x)"] == -7.0

    def test_zero_has_none(self) -> None:
        table = pa.table({"type": ["A"], "time": [1], "x": [0]})
        found = tl.run("RETURN COUNT(B), SUM(A.x) PATTERN SEQ(A, B?)", table, numeric="log").to_pylist()
        assert found == [{"COUNT(B)": None, "SUM(A.x)": None}]

    def test_negative_sums_are_refused(self) -> None:
        table = pa.table({"type": ["A"], "time": [1], "x": [-5]})
        with pytest.raises(RunError, match=r"SUM\(A.x\) is negative"):
            tl.run("RETURN SUM(A.x) PATTERN A", table, numeric="log")


def test_sums_of_doubles_differ_by_rounding_only() -> None:
    values = [1e16, 1.0, -1e16, 1.0]
    for order in itertools.permutations(values):
        table = pa.table({"type": ["A"] * 4, "time": range(4), "y": list(order)})
        (total,) = tl.run("RETURN SUM(A.y) PATTERN A", table)["SUM(A.y)"].to_pylist()
        assert abs(total - 2.0) <= 4 * math.ulp(1e16)


def test_infinity_comes_with_a_warning() -> None:
    events = pa.table({"time": [1, 2], "type": ["A", "A"], "x": [1.5e308, 1.5e308]})
    with pytest.warns(UserWarning, match=r"SUM\(A\.x\): infinite in some rows"):
        rows = tl.run("RETURN SUM(A.x) PATTERN A", events, numeric="float")
    assert rows.to_pylist() == [{"SUM(A.x)": float("inf")}]


def test_numbers_of_any_length_survive_their_text() -> None:
    for value in (0, -7, 10**38, 2**20_000 + 1, -(3**40_000)):
        assert from_text(to_text(value)) == value
