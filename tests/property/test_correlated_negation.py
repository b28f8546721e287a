"""NOTs with conditions on the events around them give the rows of the reference, with and without the rules for them.

The examples are the same in every run; `TRENDLOOM_EXAMPLES=10x pytest tests/property/test_correlated_negation.py` looks
at new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, SCHEMA, Case, streams

import trendloom as tl
from trendloom import optimizer as optimize
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.optimizer.decorrelate_negations import decorrelate_negations
from trendloom.optimizer.evaluate_equal_negations_once import evaluate_equal_negations_once
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import plan_query

EXAMPLES = amount(60)
SWITCHED = (decorrelate_negations, evaluate_equal_negations_once)
WITH_ROWS = {ANY: 0.2, NEXT: 0.2, CONTIGUOUS: 0.05}
"""The least share of cases that have a row at all; under contiguous nothing lies between two events of a match."""

PATTERNS = (
    "SEQ(A a, NOT {b}, C c)",
    "SEQ(A a, NOT {b}, C c)",
    "SEQ(A+ a[], NOT {b}, C c)",
    "SEQ(A a, NOT {b}, C+ c[])",
    "SEQ(A+ a[], NOT {b}, C c, D+ d[])",
    "SEQ(A a, NOT {b}, NOT {b}, C c)",
    "SEQ(A a, NOT {b}, C c, NOT {b}, D d)",
    "SEQ(A a, NOT {b}, OR(C c, SEQ(D c, C f)))",
    "SEQ(A a, (D d)?, NOT {b}, C c)",
    "SEQ(NOT {b}, A a, NOT {b}, C c)",
    "(SEQ(A a, NOT {b}, C c))+",
    "(SEQ(A a, NOT {b}, C c)){{1,2}}",
    "SEQ(D d, (SEQ(NOT {b}, A a))+, C c)",
    "SEQ(D d, (SEQ(A a, NOT {b}))+, C c)",
    "SEQ(A a, NOT SEQ(B f, NOT {n}, D g), C c)",
    "AND(SEQ(A a, NOT {b}, C c), D d)",
)
BODIES = (
    "(B b: {b} AND {more})",
    "(B b: {b})",
    "(B b: {b})",
    "(B b: {b} AND b.x > 0)",
    "(B b: {b})+",
    "SEQ((B b: {b}), (D e: e.{v} = b.{v}))",
    "SEQ((B b: {b}), (D e)?)",
    "OR((B b: {b}), (D b: b.x = a.x))",
)
OUTPUTS = (
    "",
    "",
    "RETURN COUNT(*)",
    "RETURN COUNT(*), COUNT(a), SUM(a.x), AVG(c.y)",
    "RETURN COUNT(*), MIN(a.x), MAX(c.y), SUM(c.x)",
)
OUTER = ("a", "a", "c", "c", "d", "f")


@st.composite
def links(draw: st.DrawFn, outer: str) -> str:
    """A comparison of b with an event around the NOT."""
    comparison = draw(st.sampled_from(["=", "=", "=", "!=", "<", "<=", ">", ">="]))
    left, right = draw(st.sampled_from([("x", "x"), ("x", "x"), ("x", "y"), ("g", "g"), ("y", "x + 1"), ("time", "x")]))
    return draw(st.sampled_from([f"b.{left} {comparison} {outer}.{right}", f"{outer}.{right} {comparison} b.{left}"]))


@st.composite
def bodies(draw: st.DrawFn, outer: st.SearchStrategy[str]) -> str:
    name = draw(outer)
    return draw(st.sampled_from(BODIES)).format(
        b=draw(links(name)), more=draw(links(draw(st.sampled_from([name, name, "a"])))), v=draw(st.sampled_from("xg"))
    )


@st.composite
def correlated(draw: st.DrawFn, semantics: str) -> Case:
    """A query with a NOT, its condition attached or in WHERE, over a stream in which it matters."""
    outer = st.sampled_from(OUTER)
    pattern = draw(st.sampled_from(PATTERNS))
    pattern = pattern.format(b=draw(bodies(outer)), n=draw(bodies(st.just("f"))))
    where = draw(st.sampled_from([[], [], [], ["[k]"], ["a.g = c.g"], ["a.x <= c.x"], ["a.x < NEXT(c).x"]]))
    window = draw(st.sampled_from(["", "", "WITHIN 6 s", "WITHIN 6 s SLIDE 2 s", "WITHIN 4 s SLIDE 4 s"]))
    clauses = [
        draw(st.sampled_from(OUTPUTS)),
        f"PATTERN {pattern} SEMANTICS {semantics}",
        f"WHERE {' AND '.join(where)}" if where else "",
        window,
    ]
    # mostly an A, some Bs, then a C, with other events here and there
    kinds = [draw(st.sampled_from(some)) for some in ("AAD", "ABD", "AB", "ABC", "BCD", "ABC", "BCD", "ACD", "CD")]
    rows = draw(streams(len(kinds)).filter(lambda rows: len(rows) >= 5))
    in_time = sorted(rows, key=lambda row: row["time"])
    events = tuple(row | {"type": kind} for row, kind in zip(in_time, kinds, strict=False))
    return Case("\n".join(clause for clause in clauses if clause), events)


def planned(query: str) -> Physical:
    try:
        return plan_query(bind(parse_query(query), SCHEMA))
    except (BindError, PlanError):  # not every body speaks of variables of every pattern
        assume(False)
        raise


@contextmanager
def without_rules() -> Iterator[None]:
    """Plans of the engines are made without the rules for NOTs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimize, "RULES", tuple(rule for rule in optimize.RULES if rule not in SWITCHED))
        yield


@pytest.mark.parametrize("semantics", [ANY, NEXT, CONTIGUOUS])
def test_rows_and_aggregates_are_those_of_the_reference(semantics: str) -> None:
    compared, decorrelated, with_rows = 0, 0, 0

    @thorough(EXAMPLES * (2 if semantics == ANY else 1))
    @given(correlated(semantics))
    def compare(case: Case) -> None:
        nonlocal compared, decorrelated, with_rows
        physical = planned(case.query)
        expected = rows_of(tl.run(case.query, case.table(), engine="reference"))
        assert rows_of(tl.run(case.query, case.table(), engine="local")) == expected, case.query
        with without_rules():
            assert not planned(case.query).plan.decorrelated
            assert rows_of(tl.run(case.query, case.table(), engine="local")) == expected, case.query
        compared += 1
        decorrelated += bool(physical.plan.decorrelated)
        with_rows += len(expected) > 0

    compare()
    assert compared >= EXAMPLES / 2
    assert decorrelated >= at_least(0.3, compared)
    assert with_rows >= at_least(WITH_ROWS[semantics], compared)


def test_aggregates_are_added_up_without_finding_matches() -> None:
    """With the rule, counts around a NOT that depends on an event next to it need neither pivots nor matches."""
    compared, by_event = 0, 0

    @thorough(EXAMPLES)
    @given(correlated(ANY))
    def compare(case: Case) -> None:
        nonlocal compared, by_event
        physical = planned(case.query)
        assume(physical.aggregates and physical.plan.decorrelated)
        found = physical.kernel.aggregation
        compared += 1
        by_event += found is not None and found.pivot is None

    compare()
    assert by_event >= at_least(0.5, compared)
