"""Postponing and expansion find the same matches under skip-till-any-match, on streams too long for the reference.

The examples are the same in every run; `TRENDLOOM_EXAMPLES=1000 pytest tests/property/test_postponed_and_expansion.py`
looks at new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.strategies import ANY, SCHEMA, Knobs, queries
from tests.property.test_runs_and_expansion import BYTES, as_multiset, block_of, stream_of

from trendloom.errors import BindError, PlanError
from trendloom.kernels.detection.enumerate import enumerate_matches
from trendloom.kernels.detection.matches import join
from trendloom.kernels.detection.postponed import construct_matches
from trendloom.lang.parser import parse_query
from trendloom.physical.detection import Algorithm
from trendloom.physical.plan import plan_physically
from trendloom.plan.bind import bind

MORE = os.environ.get("TRENDLOOM_EXAMPLES")
EXAMPLES = int(MORE or 150)
MOST_ENTRIES = 100_000
KNOBS = Knobs(
    semantics=(ANY,),
    outputs=("trends",),
    classes=("local", "adjacent", "previous"),
    conjunction=False,
    predicates=False,
)


def test_postponed_equals_expansion() -> None:
    compared, with_rows = 0, 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=not MORE)
    @given(queries(KNOBS), st.integers(30, 120).flatmap(lambda n: st.binary(min_size=n * BYTES, max_size=n * BYTES)))
    def compare(query: str, content: bytes) -> None:
        nonlocal compared, with_rows
        if "WITHIN" not in query:
            query += "\nWITHIN 12"
        try:
            physical = plan_physically(bind(parse_query(query), SCHEMA))
        except (BindError, PlanError):
            assume(False)
            raise
        assume(physical.choice.algorithm is Algorithm.POSTPONED)
        block = block_of(physical, stream_of(content))
        detection, pairs = physical.choice.detection, physical.choice.pairs
        found = []
        for chunk in construct_matches(detection, pairs, block):
            found.append(chunk)
            assume(sum(len(part.events) for part in found) <= MOST_ENTRIES)
        postponed = join(found)
        expansion = as_multiset(join(list(enumerate_matches(detection, block))))
        assert as_multiset(postponed) == expansion, query
        pieces = list(construct_matches(detection, pairs, block, chunk=7))
        assert as_multiset(join(pieces)) == expansion, f"in small pieces: {query}"
        compared += 1
        with_rows += len(postponed) > 0

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= 0.5 * compared
