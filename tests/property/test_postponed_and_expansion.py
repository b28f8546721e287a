"""Postponing and expansion find the same matches under skip-till-any-match, on streams too long for the reference.

The examples are the same in every run; `TRENDLOOM_EXAMPLES=1000 pytest tests/property/test_postponed_and_expansion.py`
looks at new ones.
"""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, SCHEMA, Case, Knobs, queries, streams, windows
from tests.property.test_runs_and_expansion import BYTES, as_multiset, block_of, stream_of

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.contract.matches import join
from trendloom.kernels.match.any import PostponedKernel, construct_matches
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.logical.bind import bind
from trendloom.runtime.planning import plan_query

EXAMPLES = amount(40)
MOST_ENTRIES = 100_000
KNOBS = Knobs(
    semantics=(ANY,),
    outputs=("trends",),
    classes=("local", "adjacent", "previous"),
    conjunction=False,
    predicates=False,
)

WITH_NOTS = (
    "SEQ(A+ a[], NOT C, B b)",
    "SEQ(A a, NOT C, B+ b[])",
    "SEQ(A a, NOT SEQ(C, D), B+ b[], D d)",
    "SEQ(A a, NOT (C c: c.x > 1), NOT D, B b)",
    "SEQ(A+ a[], NOT C, B+ b[], NOT SEQ(A, C), D d)",
    "(SEQ(A a, NOT C, B b))+",
    "SEQ(A a, (SEQ(B b, NOT C, A))+, D)",
)
CONDITIONS = (
    "a.x < NEXT(b).x",
    "a.x != NEXT(b).x",
    "a.x >= NEXT(a).x",
    "b.g = NEXT(b).g",
    "b[i].x <= b[i-1].x",
    "a.y < NEXT(b).x",
)


@st.composite
def cases_with_nots(draw: st.DrawFn) -> Case:
    """NOTs between events, together with comparisons of neighbours: ends are then only bounds."""
    pattern = draw(st.sampled_from(WITH_NOTS))
    where = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True))
    where += draw(st.sampled_from([[], [], [], ["[k]"]]))
    clauses = [
        f"PATTERN {pattern}",
        *([f"WHERE {' AND '.join(where)}"] if where else []),
        *draw(st.just([]) | windows()),
    ]
    # mostly an A, then Bs, then a D, with a C here and there
    kinds = [draw(st.sampled_from(some)) for some in ("AAB", "ABC", "ABB", "ABC", "BBC", "ABBD", "BD", "CD")]
    rows = draw(streams(len(kinds)).filter(lambda rows: len(rows) >= 5))
    in_time = sorted(rows, key=lambda row: row["time"])
    return Case("\n".join(clauses), tuple(row | {"type": kind} for row, kind in zip(in_time, kinds, strict=False)))


def test_nots_and_neighbours() -> None:
    compared, with_rows = 0, 0

    @thorough(2 * EXAMPLES)
    @given(cases_with_nots())
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        try:
            physical = plan_query(bind(parse_query(case.query), SCHEMA))
        except BindError:  # not every condition speaks of variables of every pattern
            assume(False)
            raise
        assume(isinstance(physical.kernel, PostponedKernel))
        found, expected = (tl.run(case.query, case.table(), engine=engine) for engine in ("local", "reference"))
        assert rows_of(found) == rows_of(expected), case.query
        compared += 1
        with_rows += expected.num_rows > 0

    compare()
    assert compared >= EXAMPLES
    assert with_rows >= at_least(0.2, compared)


def test_postponed_equals_expansion() -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(queries(KNOBS), st.integers(30, 120).flatmap(lambda n: st.binary(min_size=n * BYTES, max_size=n * BYTES)))
    def compare(query: str, content: bytes) -> None:
        nonlocal compared, with_rows
        if "WITHIN" not in query:
            query += "\nWITHIN 12"
        try:
            physical = plan_query(bind(parse_query(query), SCHEMA))
        except (BindError, PlanError):
            assume(False)
            raise
        assume(isinstance(physical.kernel, PostponedKernel))
        block = block_of(physical, stream_of(content))
        pattern_spec, pairs = physical.pattern_spec, physical.kernel.pairs
        found = []
        for chunk in construct_matches(pattern_spec, pairs, block):
            found.append(chunk)
            assume(sum(len(part.events) for part in found) <= MOST_ENTRIES)
        postponed = join(found)
        expansion = as_multiset(join(list(enumerate_matches(pattern_spec, block))))
        assert as_multiset(postponed) == expansion, query
        pieces = list(construct_matches(pattern_spec, pairs, block, chunk=7))
        assert as_multiset(join(pieces)) == expansion, f"in small pieces: {query}"
        compared += 1
        with_rows += len(postponed) > 0

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= at_least(0.5, compared)
