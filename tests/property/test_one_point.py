"""Intervals of one point are precise times: the rows of the precise engines, each with confidence 1.

The queries are those of the ordinary generator, as far as imprecise time does not refuse them.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, NEXT, Case, Knobs, cases

import trendloom as tl
from trendloom.errors import BindError, PlanError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CLASSES = ("local", "adjacent", "previous", "history", "distant", "three")
KNOBS = {
    "any": Knobs(semantics=(ANY,), outputs=("trends", "values"), conjunction=False, most_atoms=4, depth=2, kleene=1),
    "next": Knobs(
        semantics=(NEXT,), outputs=("trends", "values"), classes=CLASSES, conjunction=False, most_atoms=4, depth=2,
        kleene=1,
    ),
    "totals": Knobs(
        semantics=(ANY, NEXT), outputs=("aggregates",), classes=("local", "adjacent"), conjunction=False, most_atoms=3,
        depth=2, kleene=1,
    ),
}  # fmt: skip
EXAMPLES = amount(100)
RUN = 0.1
"""The least share of queries that are not refused."""


@pytest.mark.parametrize("kind", KNOBS)
def test_rows_are_those_of_precise_times(kind: str) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(cases(KNOBS[kind]))
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        events = case.table()
        try:
            found = tl.run(case.query, events, time_error="0 s")
        except (BindError, PlanError):
            return
        expected = tl.run(case.query, events)
        if "confidence" in found.column_names:
            assert set(found["confidence"].to_pylist()) <= {1.0}
            _assert_ranges(found)
            found = found.drop_columns(["confidence", "time_low", "time_high"])
        assert found.column_names == expected.column_names
        assert rows_of(found) == rows_of(expected), case.query
        compared += 1
        with_rows += len(expected) > 0

    compare()
    assert compared >= at_least(RUN, EXAMPLES)
    assert with_rows


def _assert_ranges(found: pa.Table) -> None:
    """A match takes from its first event to its last."""
    for row in found.to_pylist() if "events" in found.column_names else []:
        times = [event["time"] for event in row["events"]]
        assert (row["time_low"], row["time_high"]) == (times[0], times[-1])
        assert times == sorted(times)
