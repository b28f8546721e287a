"""Numbers of events that the pattern says, instead of a condition: where, and that no answer changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, SCHEMA, to_table

import trendloom as tl
from trendloom.engines import local
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.optimizer import optimize
from trendloom.optimizer.count_in_pattern import MOST_COPIES, count_in_pattern
from trendloom.optimizer.flatten_sequences import flatten_sequences
from trendloom.pattern.template import build_template
from trendloom.planner.plan import choose


def bound(query: str) -> Plan:
    return bind(parse_query(query), SCHEMA)


@pytest.mark.parametrize(
    ("counted", "written"),
    [
        ("PATTERN B+ b[] WHERE count(b[]) >= 3", "PATTERN B b{3,}"),
        ("PATTERN B+ b[] WHERE count(b[]) > 1", "PATTERN B b{2,}"),
        ("PATTERN B+ b[] WHERE count(b[]) = 2", "PATTERN B b{2}"),
        ("PATTERN B+ b[] WHERE count(b[]) = 1", "PATTERN B b{1}"),
        ("PATTERN B+ b[] WHERE count(b[]) <= 3", "PATTERN B b{1,3}"),
        ("PATTERN B+ b[] WHERE count(b[]) < 3", "PATTERN B b{1,2}"),
        ("PATTERN B+ b[] WHERE 2 <= count(b[])", "PATTERN B b{2,}"),
        ("PATTERN B+ b[] WHERE count(b[]) BETWEEN 2 AND 4", "PATTERN B b{2,4}"),
        ("PATTERN B+ b[] WHERE count(b[]) >= 2 AND count(b[]) <= 4 AND count(b[]) > 2", "PATTERN B b{3,4}"),
        ("PATTERN B+ b[] WHERE count(b[]) >= 1", "PATTERN B+ b[]"),
        ("PATTERN B+ b[] WHERE count(b[]) >= 0 AND b.x > 1", "PATTERN B+ b[] WHERE b.x > 1"),
        ("PATTERN SEQ(A, B* b[], C) WHERE count(b[]) >= 2", "PATTERN SEQ(A, (B b{2,})?, C)"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE count(b[]) >= 2 AND a.x < c.x",
         "PATTERN SEQ(A a, B b{2,}, C c) WHERE a.x < c.x"),
        ("PATTERN SEQ(A+ a[], B+ b[]) WHERE count(b[]) = 2 AND count(a[]) = 3", "PATTERN SEQ(A a{3}, B b{2})"),
        ("PATTERN SEQ(A, NOT SEQ(C, B+ b[]), D) WHERE count(b[]) >= 2", "PATTERN SEQ(A, NOT SEQ(C, B b{2,}), D)"),
        ("PATTERN OR(B+ b[], C) WHERE count(b[]) >= 2", "PATTERN OR(B b{2,}, C)"),
        (f"PATTERN SEQ(A, B+ b[]) SEMANTICS {NEXT} WHERE count(b[]) >= 2",
         f"PATTERN SEQ(A, B b{{2,}}) SEMANTICS {NEXT}"),
        (f"PATTERN SEQ(A, B+ b[], C) SEMANTICS {CONTIGUOUS} WHERE count(b[]) >= 2",
         f"PATTERN SEQ(A, B b{{2,}}, C) SEMANTICS {CONTIGUOUS}"),
        ("RETURN COUNT(*), COUNT(b), SUM(C.x) PATTERN SEQ(A, B+ b[], C) WHERE count(b[]) >= 3 HAVING COUNT(B) > 1",
         "RETURN COUNT(*), COUNT(b), SUM(C.x) PATTERN SEQ(A, B b{3,}, C) HAVING COUNT(B) > 1"),
    ],
)  # fmt: skip
def test_as_if_it_were_written_in_the_pattern(counted: str, written: str) -> None:
    """Up to the numbers of rounds, which mean nothing by themselves."""
    found, wanted = count_in_pattern(bound(counted)), flatten_sequences(bound(written))
    assert build_template(found.pattern).follow == build_template(wanted.pattern).follow
    assert build_template(found.pattern).last == build_template(wanted.pattern).last
    assert found.output == wanted.output
    assert [one.expr for one in found.conditions] == [one.expr for one in wanted.conditions]


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN B+ b[] WHERE count(b[]) >= 3 AND count(b[]) <= 2",
        "PATTERN B+ b[] WHERE count(b[]) < 1",
        "PATTERN B+ b[] WHERE count(b[]) != 3",
        "PATTERN B+ b[] WHERE count(b[]) >= 3 OR b.x > 1",
        "PATTERN B+ b[] WHERE count(b[].x) >= 3",
        "PATTERN B+ b[] WHERE count(b[]) >= 2.5",
        f"PATTERN B+ b[] WHERE count(b[]) >= {MOST_COPIES + 1}",
        "PATTERN SEQ(A+ a[], B+ b[]) WHERE count(b[]) >= count(a[])",
        "PATTERN (SEQ(A, B+ b[]))+ WHERE count(b[]) >= 2",
        "PATTERN (SEQ(A, B b))+ WHERE count(b[]) >= 2",
        "PATTERN B b{1,3} WHERE count(b[]) >= 2",
        "PATTERN SEQ(B+, C, B) WHERE count(B[]) >= 2",
        "PATTERN AND(A, B+ b[]) WHERE count(b[]) >= 2",
        "RETURN COMPLETE TRENDS PATTERN B+ b[] WHERE count(b[]) >= 2",
        "RETURN COLLAPSED TRENDS PATTERN SEQ(A, B+ b[]) WHERE count(b[]) >= 2",
        f"PATTERN SEQ(A, B+ b[], C) SEMANTICS {NEXT} WHERE count(b[]) >= 2",
    ],
)
def test_left_alone(query: str) -> None:
    assert count_in_pattern(bound(query)) == bound(query)


def test_a_condition_on_a_round_is_one_on_each() -> None:
    plan = count_in_pattern(bound("PATTERN SEQ(A, (B b: b.x > 1)+) WHERE count(b[]) >= 3"))
    assert len({condition.part for condition in plan.conditions}) == len(plan.conditions) == 3
    assert sorted(position for position, _ in optimize(plan).filters) == [1, 2, 3]
    plan = count_in_pattern(bound("PATTERN SEQ(A, (B b: b.x > 1)+) WHERE count(b[]) = 2"))
    assert sorted(position for position, _ in optimize(plan).filters) == [1, 2]


def test_explain_shows_an_online_kernel() -> None:
    """The long climbs of examples/nab.tql."""
    query = f"""RETURN g, COUNT(*), COUNT(b) / COUNT(*), MAX(b.x) PATTERN SEQ(A f, B+ b[], A t) SEMANTICS {CONTIGUOUS}
                WHERE [g] AND count(b[]) >= 5 GROUP BY g WITHIN 7 days"""
    shown = tl.explain(query, to_table([]).schema, engine="local")
    assert "dropped  count(b[]) >= 5" in shown
    assert "algorithm  pattern-grained" in shown


# --------------------------------------------------------------------------------- no answer changes

PATTERNS = [
    "B+ b[]", "SEQ(A a, B+ b[])", "SEQ(B+ b[], C c)", "SEQ(A a, B+ b[], C c)", "SEQ(A a, B+ b[], B c)",
    "SEQ(B a, B+ b[])", "SEQ(B+ b[], B+ c[])", "SEQ(A a, B* b[], C c)", "SEQ(A a, (B b: b.x > 0)+, C c)",
    "SEQ(A a, NOT C c, B+ b[])", "SEQ(A a, B+ b[], NOT C c)", "SEQ(A a, B+ b[], NOT A d, C c)",
    "SEQ(A a, NOT SEQ(C c, B+ b[]), A d)", "SEQ(A a, OR(B+ b[], C c))", "SEQ(A a, SEQ(B+ b[], C c))",
    "SEQ((A a)?, B+ b[])",
]  # fmt: skip
COUNTS = [">= 2", ">= 3", "> 1", "= 1", "= 2", "= 3", "<= 1", "<= 2", "< 3", "BETWEEN 2 AND 3", ">= 1"]
MORE = ["", "", "", " AND b.x >= 0", " AND b[i].x >= b[i-1].x", " AND b.x <= NEXT(b).x", " AND avg(b[].x) > 0.4",
        " AND b[last].x > 0", " AND b[first].x <= 1"]  # fmt: skip
OUTPUTS = ["TRENDS", "TRENDS", "count(b[]) AS n, b[last].id AS i", "COUNT(*), COUNT(b), SUM(B.x), MIN(b.y)", "COUNT(*)"]
EXAMPLES = amount(60)


@dataclass(frozen=True)
class Case:
    query: str
    events: list[dict[str, Any]]


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    pattern = draw(st.sampled_from(PATTERNS))
    semantics = draw(st.sampled_from([ANY, NEXT, CONTIGUOUS]))
    output = draw(st.sampled_from(OUTPUTS))
    more = draw(st.sampled_from(MORE))
    if "b: b.x" in pattern:
        more = ""
    if "(C c, B+ b[])" in pattern:  # b is inside a NOT
        output = output if "b" not in output else "COUNT(*)"
    query = f"RETURN {output} PATTERN {pattern} SEMANTICS {semantics} WHERE "
    query += f"count(b[]) {draw(st.sampled_from(COUNTS))}{more}" + draw(st.sampled_from(["", "", " AND [k]"]))
    query += draw(st.sampled_from(["", " WITHIN 5", " WITHIN 5 SLIDE 2"]))
    rows = draw(st.lists(st.tuples(st.sampled_from("ABBBC"), st.integers(0, 2)), min_size=4, max_size=9))
    events, time = [], 0
    for n, (kind, x) in enumerate(rows):
        time += draw(st.sampled_from([1, 1, 1, 0, 2]))
        events.append({"id": n, "type": kind, "time": time, "x": x, "y": x / 2, "g": None, "k": n % 3 // 2})
    return Case(query, events)


def _executed(plan: Plan, table: pa.Table) -> pa.Table:
    return pa.Table.from_batches(list(local.run(choose(plan), prepare(table))))


@pytest.mark.filterwarnings("ignore::UserWarning")  # of types that a small stream lacks
def test_the_answer_stays() -> None:
    compared, counted, with_rows = 0, 0, 0

    @thorough(EXAMPLES)
    @given(_cases())
    def compare(case: Case) -> None:
        nonlocal compared, counted, with_rows
        table = to_table(case.events)
        plan = bind(parse_query(case.query), prepare(table).schema)
        expected = rows_of(tl.run(case.query, table, engine="reference"))
        optimized = optimize(plan)
        assert rows_of(_executed(optimized, table)) == expected, case.query
        assert rows_of(_executed(optimize(plan, without=(count_in_pattern,)), table)) == expected, case.query
        compared += 1
        changed = optimized.conditions != optimize(plan, without=(count_in_pattern,)).conditions
        counted += changed
        with_rows += changed and bool(expected)

    compare()
    assert counted >= at_least(0.6, compared)
    assert with_rows >= at_least(0.2, compared)
