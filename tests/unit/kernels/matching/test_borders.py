"""Two columns instead of a search in every gap: against all events, or pairs of events, that lie in it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.property.amounts import amount, thorough
from tests.property.strategies import SCHEMA, Row, streams, to_table

from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import NegationGuard
from trendloom.kernels.matching.gap_thresholds import borders
from trendloom.logical.bind import bind
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

COMPARE = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Passes = Callable[[Row, Row], bool]


def passes(comparison: str, inner: str, outer: str) -> Passes:
    """Whether an event of the NOT passes with its neighbour; a NULL passes with nothing."""

    def compared(event: Row, neighbour: Row) -> bool:
        left, right = event[inner], neighbour[outer]
        return left is not None and right is not None and COMPARE[comparison](left, right)

    return compared


def prepared(query: str, rows: tuple[Row, ...]) -> tuple[NegationGuard, Block]:
    table = to_table(rows)
    physical = plan_query(bind(parse_query(query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    block, _ = build_block(physical, Stream(table, kinds, table["time"].to_numpy()))
    negation_guard = physical.pattern_spec.scopes[1].negation_guard
    assert negation_guard is not None
    return negation_guard, block


def check(query: str, rows: tuple[Row, ...], violated: Callable[[list[Row], Row, Row], bool]) -> None:
    """Every gap between an A and a C of one key."""
    negation_guard, block = prepared(query, rows)
    left, right = borders(negation_guard, block)
    assert left.dtype == right.dtype == np.int64
    event = [rows[row] for row in block.row.tolist()]
    ends = block.key_starts[block.key + 1]
    for e in range(len(block)):
        for f in range(int(block.tie_end[e]), int(ends[e])):
            if (event[e]["type"], event[f]["type"]) == ("A", "C"):
                between = event[block.tie_end[e] : block.tie_start[f]]
                apart = left[e] > right[f] if negation_guard.follows else left[e] >= right[f]
                assert apart == (not violated(between, event[e], event[f])), (query, event, e, f)


@pytest.mark.parametrize("side", ["a", "c"])
@pytest.mark.parametrize("comparison", COMPARE)
@pytest.mark.parametrize("column", ["x", "y", "g"])
def test_one_event(side: str, comparison: str, column: str) -> None:
    fits = passes(comparison, column, column)

    @thorough(amount(16))
    @given(streams(14, "ABBC"))
    def compare(rows: tuple[Row, ...]) -> None:
        query = f"PATTERN SEQ(A a, NOT B b, C c) WHERE [k] AND b.{column} {comparison} {side}.{column}"
        check(query, rows, lambda between, e, f: any(
            event["type"] == "B" and fits(event, e if side == "a" else f) for event in between
        ))  # fmt: skip

    compare()


@pytest.mark.parametrize("side", ["a", "c"])
@pytest.mark.parametrize("comparison", COMPARE)
def test_equality_and_another_comparison(side: str, comparison: str) -> None:
    fits, same = passes(comparison, "x", "y"), passes("=", "g", "g")

    @thorough(amount(16))
    @given(streams(14, "ABBC"))
    def compare(rows: tuple[Row, ...]) -> None:
        query = f"PATTERN SEQ(A a, NOT B b, C c) WHERE b.g = {side}.g AND b.x {comparison} {side}.y"

        def violated(between: list[Row], e: Row, f: Row) -> bool:
            other = e if side == "a" else f
            return any(event["type"] == "B" and fits(event, other) and same(event, other) for event in between)

        check(query, rows, violated)

    compare()


@pytest.mark.parametrize("side", ["a", "c"])
def test_a_pattern_of_equal_values(side: str) -> None:
    same = passes("=", "x", "x")

    @thorough(amount(60))
    @given(streams(16, "ABBDDC"))
    def compare(rows: tuple[Row, ...]) -> None:
        query = f"PATTERN SEQ(A a, NOT SEQ(B b, D+ d[]), C c) WHERE [k] AND d.x = {side}.x AND b.x = d.x"

        def violated(between: list[Row], e: Row, f: Row) -> bool:
            mine = [event for event in between if same(event, e if side == "a" else f)]
            kinds: dict[str, list[Any]] = {kind: [o["time"] for o in mine if o["type"] == kind] for kind in "BD"}
            return bool(kinds["B"] and kinds["D"]) and min(kinds["B"]) < max(kinds["D"])

        check(query, rows, violated)

    compare()


def test_no_events() -> None:
    negation_guard, block = prepared("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c)", ())
    assert [len(column) for column in borders(negation_guard, block)] == [0, 0]
