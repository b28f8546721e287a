"""The local engine gives the rows of the reference, for random queries over random streams."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Case, Knobs, cases, to_table

import trendloom as tl
from trendloom.errors import BindError, PlanError

KNOBS = {
    "any": Knobs(semantics=(ANY,), outputs=("trends", "values")),
    "next": Knobs(semantics=(NEXT,), outputs=("trends", "values")),
    "contiguous": Knobs(semantics=(CONTIGUOUS,), outputs=("trends", "values")),
    "aggregates": Knobs(outputs=("aggregates",)),
    "complete": Knobs(semantics=(ANY,), outputs=("complete",)),
    "few rules": Knobs(most_conjuncts=1, predicates=False),
}


@pytest.mark.parametrize("kind", KNOBS)
def test_local_equals_reference(kind: str) -> None:
    compared = 0

    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(cases(KNOBS[kind]), st.randoms(use_true_random=False))
    def compare(case: Case, random: object) -> None:
        nonlocal compared
        events = to_table(case.events)
        try:
            expected = tl.run(case.query, events, engine="reference")
            found = tl.run(case.query, events, engine="local")
        except (BindError, PlanError):
            assume(False)
            raise
        assert rows_of(found) == rows_of(expected), case.query
        assert found.schema == expected.schema
        compared += 1

    compare()
    assert compared >= 350
