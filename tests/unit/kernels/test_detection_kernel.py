"""The contract of the detection kernel: start, step, finish; a state survives dump and load."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.property.strategies import SCHEMA, Case, Knobs, cases, to_table

from trendloom.engines.events import Stream, build_block
from trendloom.errors import BindError, DataError, PlanError
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection import kernel
from trendloom.kernels.detection.matches import Matches, join
from trendloom.lang.parser import parse_query
from trendloom.model.schema import Column, Kind, Schema
from trendloom.physical.plan import Physical, plan_physically
from trendloom.plan.bind import bind


def prepared(query: str, table: pa.Table, schema: Schema = SCHEMA) -> tuple[Physical, Block]:
    physical = plan_physically(bind(parse_query(query), schema))
    kinds = {column.name: column.kind for column in schema.columns}
    block, _ = build_block(physical, Stream(table, kinds, table["time"].to_numpy()))
    return physical, block


def finished(state: kernel.State) -> Counter[tuple[object, ...]]:
    return as_multiset(join(list(kernel.finish(state))))


def as_multiset(matches: Matches) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for number in range(len(matches)):
        own = slice(matches.offsets[number], matches.offsets[number + 1])
        window = None if matches.window_start is None else int(matches.window_start[number])
        found[(window, *matches.events[own].tolist(), *matches.positions[own].tolist())] += 1
    return found


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases(Knobs(outputs=("trends",))))
def test_a_state_survives_dump_and_load(case: Case) -> None:
    try:
        physical, block = prepared(case.query, to_table(case.events))
    except (BindError, PlanError):
        assume(False)
        raise
    _, state = kernel.step(kernel.start(physical.kernel), block, None)
    restored = kernel.load(physical.kernel, kernel.dump(state))
    assert finished(restored) == finished(state)


def test_every_kind_of_column_survives() -> None:
    kinds = {"type": Kind.STRING, "time": Kind.INT, "i": Kind.INT, "f": Kind.FLOAT, "s": Kind.STRING, "b": Kind.BOOL}
    schema = Schema(tuple(Column(name, kind) for name, kind in kinds.items()))
    table = pa.table(
        {
            "type": ["A", "B"],
            "time": [1, 2],
            "i": pa.array([2**63, None], pa.uint64()),
            "f": [0.5, None],
            "s": ["ä", "b"],
            "b": [True, False],
        }
    )
    query = "PATTERN SEQ(A a, B b) WHERE coalesce(b.i, 1) < a.i AND a.s > b.s AND a.b != b.b AND coalesce(b.f, 1) > a.f"
    physical, block = prepared(query, table, schema)
    _, state = kernel.step(kernel.start(physical.kernel), block, None)
    restored = kernel.load(physical.kernel, kernel.dump(state))
    assert sum(finished(restored).values()) == 1
    assert restored.block is not None
    for name, vector in block.columns.items():
        assert restored.block.columns[name].to_list() == vector.to_list()


def test_nothing_seen_nothing_found() -> None:
    physical, _ = prepared("PATTERN A", to_table([]))
    state = kernel.start(physical.kernel)
    assert list(kernel.finish(state)) == []
    assert list(kernel.finish(kernel.load(physical.kernel, kernel.dump(state)))) == []


def test_an_empty_block() -> None:
    for query in ("PATTERN SEQ(A, NOT B, C)", "PATTERN A+ SEMANTICS contiguous WHERE [k]"):
        physical, block = prepared(query, to_table([]))
        results, state = kernel.step(kernel.start(physical.kernel), block, None)
        assert list(results) == []
        assert finished(kernel.load(physical.kernel, kernel.dump(state))) == Counter()


def test_one_block_per_state() -> None:
    physical, block = prepared("PATTERN A", to_table([]))
    _, state = kernel.step(kernel.start(physical.kernel), block, None)
    with pytest.raises(DataError, match="one block per state"):
        kernel.step(state, block, None)


def test_an_unknown_version_is_refused() -> None:
    physical, block = prepared("PATTERN A", to_table([]))
    _, state = kernel.step(kernel.start(physical.kernel), block, None)
    table = pa.ipc.open_stream(kernel.dump(state)).read_all()
    meta = json.loads(table.schema.metadata[b"trendloom"]) | {"version": 99}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata({"trendloom": json.dumps(meta)})):
        pass
    with pytest.raises(DataError, match="version 99"):
        kernel.load(physical.kernel, bytes(sink.getvalue()))


def test_chunks_are_bounded_and_complete() -> None:
    rows = [{"id": n, "type": "A", "time": n, "x": n, "y": 0.5, "g": "u", "k": 1} for n in range(8)]
    physical, block = prepared("PATTERN A+", to_table(rows))
    from trendloom.kernels.detection.enumerate import enumerate_matches

    detection = physical.choice.detection
    small = list(enumerate_matches(detection, block, chunk=16))
    assert len(small) > 10
    assert max(len(chunk.events) for chunk in small) <= 16
    assert as_multiset(join(small)) == as_multiset(join(list(enumerate_matches(detection, block))))
    assert sum(map(len, small)) == 2**8 - 1


def test_the_search_can_be_stopped() -> None:
    """Forty events have 2^40 trends; whoever wants three gets three."""
    rows = [{"id": n, "type": "A", "time": n, "x": n, "y": 0.5, "g": "u", "k": 1} for n in range(40)]
    physical, block = prepared("PATTERN A+", to_table(rows))
    _, state = kernel.step(kernel.start(physical.kernel), block, None)
    found = kernel.finish(state)
    assert sum(len(next(found)) for _ in range(3)) >= 3


def test_blocks_know_ties() -> None:
    block = Block(np.array([0, 4, 6]), np.array([1, 1, 2, 3, 3, 3]), np.arange(6), {})
    assert block.tie_start.tolist() == [0, 0, 2, 3, 4, 4]
    assert block.tie_end.tolist() == [2, 2, 3, 4, 6, 6]
    assert block.key.tolist() == [0, 0, 0, 0, 1, 1]
    assert block.not_before(np.array([0, 0, 1, 1]), np.array([2, 9, 3, 4])).tolist() == [2, 4, 4, 6]
