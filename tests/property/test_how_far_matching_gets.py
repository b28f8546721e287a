"""What EXPLAIN ANALYZE says is so: matches end where the reference says, merged partial matches lose nothing.

The examples are the same in every run; `TRENDLOOM_EXAMPLES=5000 pytest tests/property/test_how_far_matching_gets.py`
looks further, with new ones each time.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Case, Knobs, cases, streams, to_table

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.kernels.match.expansion import Reached, reached
from trendloom.logical.bind import bind
from trendloom.logical.display import draw
from trendloom.options import Options
from trendloom.planner.inspection import remembered
from trendloom.runtime.blocks import build_block
from trendloom.runtime.funnel import describe_funnel, searched
from trendloom.runtime.reading import load, queries_of
from trendloom.runtime.statistics import stream_of

EXAMPLES = amount(25)
KNOBS = {
    "any": Knobs(semantics=(ANY,), outputs=("trends",)),
    "any, of neighbours": Knobs(semantics=(ANY,), outputs=("trends",), classes=("local", "adjacent", "previous")),
    "next": Knobs(semantics=(NEXT,), outputs=("trends",)),
    "contiguous": Knobs(semantics=(CONTIGUOUS,), outputs=("trends",)),
}


def found_in(case: Case) -> tuple[Reached, Reached, list[int]]:
    """With partial matches merged and without, and the ids of the events."""
    events = load(case.table(), Options())
    (query,) = queries_of(case.query)
    plan = bind(query, events.schema)
    shown = "\n".join(draw(describe_funnel(plan, events)))
    assert "a match" in shown
    physical = searched(plan)
    block, _ = build_block(physical, stream_of(physical.plan, events))
    pattern_spec = physical.pattern_spec
    merged = reached(pattern_spec, block, remembered(pattern_spec), lambda: True)
    apart = reached(pattern_spec, block, None, lambda: True)
    return merged, apart, np.array(events.table["id"])[block.row].tolist()


@pytest.mark.parametrize("name", list(KNOBS))
def test_matches_end_where_the_reference_says(name: str) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(cases(KNOBS[name]))
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        try:
            merged, apart, ids = found_in(case)
        except (BindError, PlanError):
            assume(False)
            raise
        rows = tl.run(case.query, case.table(), engine="reference").to_pylist()
        ends = {row["events"][-1]["id"] for row in rows}
        assert {ids[at] for at in np.flatnonzero(merged.ends)} == ends, case.query
        assert (merged.events == apart.events).all(), case.query
        assert (merged.shortest == apart.shortest).all(), case.query
        assert merged.whole
        compared += 1
        with_rows += bool(ends)

    compare()
    assert with_rows >= at_least(0.2, compared)


@pytest.mark.parametrize("semantics", [ANY, NEXT])
def test_a_position_is_reached_by_the_matches_of_what_comes_before(semantics: str) -> None:
    """Conditions are about variables up to a position, so prefixes of the query say what reaches it."""
    conditions = {"b.x > a.x": 2, "b.g = a.g": 2, "c.x >= a.x": 3, "c.y < b.x": 3, "d.x != b.x": 4}
    parts = ["A a", "B b", "C c", "D d"]

    @thorough(EXAMPLES)
    @given(
        streams(most=10), st.sampled_from([*combinations(conditions, 1), *combinations(conditions, 2)]),
        st.sampled_from(["", "WITHIN 4", "WITHIN 6 SLIDE 3"]),
    )  # fmt: skip
    def compare(events: tuple[dict[str, object], ...], chosen: tuple[str, ...], window: str) -> None:
        def query(length: int) -> str:
            where = " AND ".join(text for text in chosen if conditions[text] <= length)
            clause = f"WHERE {where}" if where else ""
            return f"PATTERN SEQ({', '.join(parts[:length])}) SEMANTICS {semantics} {clause} {window}"

        merged, _, ids = found_in(Case(query(4), events))
        for length in range(1, 5):
            rows = tl.run(query(length), to_table(events), engine="reference").to_pylist()
            ends = {row["events"][-1]["id"] for row in rows}
            assert {ids[at] for at in np.flatnonzero(merged.events[length - 1])} == ends, query(length)

    compare()
