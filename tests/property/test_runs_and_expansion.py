"""Two kernels that know nothing of each other find the same matches, on streams too long for the reference.

*Runs* follows a table of successors; *expansion* tries candidates. Where runs takes a query, expansion must agree.
The examples are the same in every run; `TRENDLOOM_EXAMPLES=1000 pytest tests/property/test_runs_and_expansion.py` looks
at new ones.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.strategies import ARROW, CONTIGUOUS, NEXT, SCHEMA, Knobs, queries

from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.next import RunsKernel, follow_runs
from trendloom.logical.bind import bind
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

EXAMPLES = amount(25)
BYTES = 6
"""Bytes per event: type, time since the event before, x, y, g, k."""
MOST_ENTRIES = 300_000

NULL_OR = {"x": [0, 1, 2, 3, 4, None], "y": [-1.5, 0.0, 0.5, 2.0, None], "g": ["u", "v", None], "k": [1, 2, 3, None]}


def stream_of(content: bytes) -> pa.Table:
    """Events out of bytes: short to draw, and fewer or smaller bytes are a simpler stream."""
    rows, time = [], -5
    for number in range(0, len(content) - BYTES + 1, BYTES):
        kind, wait, *values = content[number : number + BYTES]
        time += (1, 0, 1, 2)[wait % 4]
        # drawn bytes are often zero: counting along keeps even such streams varied
        row = {"id": number // BYTES, "type": "ABCD"[(kind + number // BYTES) % 4], "time": time}
        row |= {
            name: choices[value % len(choices)] for (name, choices), value in zip(NULL_OR.items(), values, strict=True)
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=ARROW)


def block_of(physical: Physical, table: pa.Table) -> Block:
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    return build_block(physical, Stream(table, kinds, table["time"].to_numpy()))[0]


def as_multiset(matches: Matches) -> Counter[tuple[bytes, ...]]:
    found: Counter[tuple[bytes, ...]] = Counter()
    for number in range(len(matches)):
        own = slice(matches.offsets[number], matches.offsets[number + 1])
        window = b"" if matches.window_start is None else matches.window_start[number].tobytes()
        events, positions = matches.events[own].astype("int64"), matches.positions[own].astype("int32")
        found[window, events.tobytes(), positions.tobytes()] += 1
    return found


@pytest.mark.parametrize("semantics", [NEXT, CONTIGUOUS])
def test_runs_equal_expansion(semantics: str) -> None:
    compared, with_rows = 0, 0
    knobs = Knobs(
        semantics=(semantics,), outputs=("trends",), classes=("local", "adjacent", "previous"), predicates=False
    )

    @thorough(EXAMPLES)
    @given(queries(knobs), st.integers(100, 300).flatmap(lambda n: st.binary(min_size=n * BYTES, max_size=n * BYTES)))
    def compare(query: str, content: bytes) -> None:
        nonlocal compared, with_rows
        try:
            physical = plan_query(bind(parse_query(query), SCHEMA))
        except (BindError, PlanError):
            assume(False)
            raise
        assume(isinstance(physical.kernel, RunsKernel))
        block = block_of(physical, stream_of(content))
        pattern_spec, pairs = physical.pattern_spec, physical.kernel.pairs
        found = []
        for chunk in follow_runs(pattern_spec, pairs, block, chunk=MOST_ENTRIES // 4):
            found.append(chunk)
            # events of equal time are runs of their own: their number can double at every tie
            assume(sum(len(part.events) for part in found) <= MOST_ENTRIES)
        runs = join(found)
        expansion = as_multiset(join(list(enumerate_matches(pattern_spec, block))))
        assert as_multiset(runs) == expansion, query
        pieces = list(follow_runs(pattern_spec, pairs, block, chunk=7))
        assert as_multiset(join(pieces)) == expansion, f"in small pieces: {query}"
        compared += 1
        with_rows += len(runs) > 0

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= at_least(0.5, compared)
