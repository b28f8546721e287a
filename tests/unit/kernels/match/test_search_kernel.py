"""The contract of the detection kernel: start, step, finish; however the stream is cut, every match comes once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.strategies import SCHEMA, Case, Knobs, cases, to_table

from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.match.search import SearchKernel
from trendloom.logical.bind import bind
from trendloom.model.schema import Schema
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query


def prepared(query: str, table: pa.Table, schema: Schema = SCHEMA) -> tuple[Physical, Block]:
    physical = plan_query(bind(parse_query(query), schema))
    kinds = {column.name: column.kind for column in schema.columns}
    block, _ = build_block(physical, Stream(table, kinds, table["time"].to_numpy()))
    return physical, block


def finished(kernel: SearchKernel, block: Block) -> Counter[tuple[object, ...]]:
    _, state = kernel.step(kernel.start(), block, None)
    return as_multiset(join(list(kernel.finish(state))))


def as_multiset(matches: Matches) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for number in range(len(matches)):
        own = slice(matches.offsets[number], matches.offsets[number + 1])
        window = None if matches.window_start is None else int(matches.window_start[number])
        found[(window, *matches.events[own].tolist(), *matches.positions[own].tolist())] += 1
    return found


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases(Knobs(outputs=("trends", "complete"))), st.lists(st.integers(-2, 16), max_size=4))
def test_steps_give_every_match_once(case: Case, watermarks: list[int]) -> None:
    try:
        physical, block = prepared(case.query, to_table(case.events))
    except (BindError, PlanError):
        assume(False)
        raise
    kernel = physical.kernel
    assume(kernel.pattern_spec.window.within is not None)
    found, state = [], kernel.start()
    for watermark in sorted(set(watermarks)):
        certain = block.time < watermark
        if state.before is not None:
            certain &= block.time >= kernel.emission.needs(state.before)
        results, state = kernel.step(state, block.only(certain), watermark)
        found += [renumbered(matches, np.flatnonzero(certain)) for matches in results]
        assert kernel.dump(state) is None
        state = kernel.load(None, state.before)
    left = np.ones(len(block), np.bool_) if state.before is None else block.time >= kernel.emission.needs(state.before)
    _, state = kernel.step(state, block.only(left), None)
    found += [renumbered(matches, np.flatnonzero(left)) for matches in kernel.finish(state)]
    assert as_multiset(join(found)) == finished(kernel, block)


def renumbered(matches: Matches, rows: np.ndarray) -> Matches:
    return replace(matches, events=rows[matches.events])


def test_nothing_seen_nothing_found() -> None:
    physical, _ = prepared("PATTERN A", to_table([]))
    assert list(physical.kernel.finish(physical.kernel.start())) == []


def test_an_empty_block() -> None:
    for query in ("PATTERN SEQ(A, NOT B, C)", "PATTERN A+ SEMANTICS contiguous WHERE [k]"):
        physical, block = prepared(query, to_table([]))
        assert finished(physical.kernel, block) == Counter()


@pytest.mark.parametrize(
    ("query", "rule", "needs"),
    [
        ("PATTERN SEQ(A, B) WITHIN 10", Certain.LAST, 91),
        ("PATTERN SEQ(A, NOT C, B) WITHIN 10", Certain.LAST, 91),
        ("PATTERN SEQ(A, B) WITHIN 10 SLIDE 4", Certain.LAST, 92),
        ("PATTERN SEQ(A, B, NOT C) WITHIN 10", Certain.FIRST, 81),
        ("RETURN COMPLETE TRENDS PATTERN A+ WITHIN 10", Certain.FIRST, 81),
        ("PATTERN SEQ(A, B, NOT C) WITHIN 10 SLIDE 4", Certain.WINDOW, 92),
        ("RETURN COMPLETE TRENDS PATTERN A+ WITHIN 10 SLIDE 4", Certain.WINDOW, 92),
        ("RETURN COUNT(*) PATTERN A+ a[] WHERE avg(a[].x) > 1 WITHIN 10 SLIDE 4", Certain.WINDOW, 92),
    ],
)
def test_when_matches_are_certain(query: str, rule: Certain, needs: int) -> None:
    emission = prepared(query, to_table([]))[0].kernel.emission
    assert (emission.certain, emission.needs(100)) == (rule, needs)


def test_chunks_are_bounded_and_complete() -> None:
    rows = [{"id": n, "type": "A", "time": n, "x": n, "y": 0.5, "g": "u", "k": 1} for n in range(8)]
    physical, block = prepared("PATTERN A+", to_table(rows))
    from trendloom.kernels.match.expansion import enumerate_matches

    pattern_spec = physical.pattern_spec
    small = list(enumerate_matches(pattern_spec, block, chunk=16))
    assert len(small) > 10
    assert max(len(chunk.events) for chunk in small) <= 16
    assert as_multiset(join(small)) == as_multiset(join(list(enumerate_matches(pattern_spec, block))))
    assert sum(map(len, small)) == 2**8 - 1


def test_the_search_can_be_stopped() -> None:
    """Forty events have 2^40 trends; whoever wants three gets three."""
    rows = [{"id": n, "type": "A", "time": n, "x": n, "y": 0.5, "g": "u", "k": 1} for n in range(40)]
    physical, block = prepared("PATTERN A+", to_table(rows))
    kernel = physical.kernel
    _, state = kernel.step(kernel.start(), block, None)
    found = kernel.finish(state)
    assert sum(len(next(found)) for _ in range(3)) >= 3


def test_blocks_know_ties() -> None:
    block = Block(np.array([0, 4, 6]), np.array([1, 1, 2, 3, 3, 3]), np.arange(6), {})
    assert block.tie_start.tolist() == [0, 0, 2, 3, 4, 4]
    assert block.tie_end.tolist() == [2, 2, 3, 4, 6, 6]
    assert block.key.tolist() == [0, 0, 0, 0, 1, 1]
    assert block.not_before(np.array([0, 0, 1, 1]), np.array([2, 9, 3, 4])).tolist() == [2, 4, 4, 6]
