"""A NOT as a threshold: the latest start of its matches that have ended, against all matches of the reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.strategies import SCHEMA, Row, streams, to_table

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.gap_thresholds import latest_starts
from trendloom.kernels.matching.gaps import Gaps
from trendloom.logical.bind import bind
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

BODIES = [
    ("B", ""),
    ("B+", ""),
    ("SEQ(B, C)", ""),
    ("SEQ(B+, C)", ""),
    ("OR(B, SEQ(C, D))", ""),
    ("SEQ(B, C?, D)", ""),
    ("AND(B, C)", ""),
    ("SEQ(B b, C c)", "b.x < c.x"),
    ("SEQ(B b, D+ d[])", "d.x <= NEXT(d).x AND b.y < 1"),
    ("SEQ(B, NOT C, D)", ""),
]


def prepared(body: str, where: str, table: pa.Table) -> tuple[Gaps, Block]:
    query = f"PATTERN SEQ(A, NOT {body}, A) WHERE [k]{' AND ' + where if where else ''}"
    physical = plan_query(bind(parse_query(query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    block, _ = build_block(physical, Stream(table, kinds, table["time"].to_numpy()))
    automaton = Automaton(physical.pattern_spec)
    return Gaps(automaton, block), block


def by_definition(body: str, where: str, table: pa.Table, block: Block) -> list[int]:
    """For every index the greatest start of a match that ends before it, out of all matches of the body."""
    query = f"PATTERN {body} WHERE [k]{' AND ' + where if where else ''}"
    index = {table["id"][row].as_py(): at for at, row in enumerate(block.row.tolist())}
    latest = [-1] * (len(block) + 1)
    for row in tl.run(query, table, engine="reference").to_pylist():
        found = [index[event["id"]] for event in row["events"]]
        for at in range(max(found) + 1, len(block) + 1):
            latest[at] = max(latest[at], min(found))
    return latest


@pytest.mark.parametrize(("body", "where"), BODIES)
def test_latest_starts(body: str, where: str) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(streams(8))
    def compare(events: tuple[Row, ...]) -> None:
        table = to_table(events)
        gaps, block = prepared(body, where, table)
        found = latest_starts(gaps, 1)
        starts_of_ties = np.r_[block.tie_start, len(block)]
        expected = by_definition(body, where, table, block)
        # what counts is asked for at the beginning of a tie, and compared with the end of another
        for high in sorted(set(starts_of_ties.tolist())):
            for low in sorted({*block.tie_end.tolist(), 0}):
                if low <= high:
                    assert (found[high] >= low) == (expected[high] >= low), (low, high)

    compare()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(streams(8), st.sampled_from(["SEQ(NOT B, C)", "SEQ(B, NOT C)", "(SEQ(B, NOT C))+"]))
def test_a_not_that_looks_at_its_gap_has_no_threshold(events: tuple[Row, ...], body: str) -> None:
    """Leading and trailing NOTs inside a NOT depend on where the gap begins and ends."""
    gaps, _ = prepared(body, "", to_table(events))
    assert gaps.spec.scopes[1].open_ended
    query = f"PATTERN SEQ(A, NOT {body}, D)"
    assert found_by("local", query, events) == found_by("reference", query, events)


def found_by(engine: str, query: str, events: tuple[Row, ...]) -> list[tuple[int, ...]]:
    rows = tl.run(query, to_table(events), engine=engine).to_pylist()
    return sorted(tuple(event["id"] for event in row["events"]) for row in rows)
