"""Each rule of the optimizer: what it makes of a plan, and that no answer changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import assume, given
from tests.property.amounts import amount, thorough
from tests.property.compare import rows_of
from tests.property.strategies import SCHEMA, Case, Knobs, cases, to_table

import trendloom as tl
from trendloom.engines import local
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.optimizer import RULES, optimize
from trendloom.optimizer.prune_scan import scan_needed_columns, scan_pattern_types
from trendloom.optimizer.push_predicates import push_predicates_to_positions
from trendloom.optimizer.rewrite_running_extremes import rewrite_running_extremes
from trendloom.planner.plan import choose


def plan_of(query: str) -> Plan:
    return bind(parse_query(query), SCHEMA)


class TestPushPredicatesToPositions:
    @staticmethod
    def after(query: str) -> tuple[list[int], list[str]]:
        """Positions that got a filter, and the conditions that stayed."""
        plan = push_predicates_to_positions(plan_of(query))
        return sorted(position for position, _ in plan.filters), [condition.text for condition in plan.conditions]

    @pytest.mark.parametrize(
        ("query", "filtered", "kept"),
        [
            ("PATTERN SEQ(A a, B b) WHERE a.x > 1 AND b.y < 2", [0, 1], []),
            ("PATTERN A+ a[] WHERE a.x > 1", [0], []),
            ("PATTERN A a{2} WHERE a.x > 1", [0, 1], []),
            ("PATTERN SEQ(A, B, A) WHERE A.x > 1", [0, 2], []),
            ("PATTERN A a WHERE a.x > 1 OR a.y > a.x", [0], []),
            ("PATTERN A+ a[] WHERE a[i].x > 1", [0], []),
            ("PATTERN SEQ(A a, (B b: b.x > 1))", [1], []),
            ("PATTERN SEQ(A a, NOT B b, C c) WHERE b.x > 1", [1], []),
            ("PATTERN SEQ(A, NOT A, B) WHERE A.x > 1", [0, 1], []),
            ("PATTERN SEQ(A a, B b) WHERE a.x < b.x", [], ["a.x < b.x"]),
            ("PATTERN A+ a[] WHERE a.x < NEXT(a).x", [], ["a.x < NEXT(a).x"]),
            ("PATTERN A+ a[] WHERE NEXT(a).x > 1", [], ["NEXT(a).x > 1"]),
            ("PATTERN A+ a[] WHERE a[i].x > a[i-1].x", [], ["a[i].x > a[i-1].x"]),
            ("PATTERN A+ a[] WHERE a[last].x > 1", [], ["a[last].x > 1"]),
            ("PATTERN A+ a[] WHERE count(a[]) > 1", [], ["count(a[]) > 1"]),
            ("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c)", [], ["b.x = a.x"]),
            ("PATTERN A WHERE 1 = 2", [], ["1 = 2"]),
        ],
    )
    def test_before_and_after(self, query: str, filtered: list[int], kept: list[str]) -> None:
        assert self.after(query) == (filtered, kept)

    def test_a_copy_keeps_its_own_predicate(self) -> None:
        """A predicate written at a component of `p{2}` is one predicate for each copy."""
        plan = push_predicates_to_positions(plan_of("PATTERN (SEQ(A a, (B b: b.x > 1))){2}"))
        assert sorted(position for position, _ in plan.filters) == [1, 3]


class TestRewriteRunningExtremes:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("a[i].x >= max(a[..i-1].x)", "a[i].x >= a[i-1].x"),
            ("a[i].x > max(a[..i-1].x)", "a[i].x > a[i-1].x"),
            ("a[i].x = max(a[..i-1].x)", "a[i].x = a[i-1].x"),
            ("a[i].x <= min(a[..i-1].x)", "a[i].x <= a[i-1].x"),
            ("a[i].g < min(a[..i-1].g)", "a[i].g < a[i-1].g"),
            ("min(a[..i-1].y) = a[i].y", "a[i-1].y = a[i].y"),
            ("max(a[..i-1].x) < a[i].x", "a[i-1].x < a[i].x"),
            ("a[i].x < max(a[..i-1].x)", None),
            ("a[i].x != max(a[..i-1].x)", None),
            ("a[i].x >= min(a[..i-1].x)", None),
            ("a[i].x >= avg(a[..i-1].x)", None),
            ("a[i].x >= count(a[..i-1].x)", None),
            ("a[i].x >= max(a[..i-1].y)", None),
            ("a[i].x >= max(a[..i-1].x) + 1", None),
            ("a[i].x + 1 >= max(a[..i-1].x)", None),
            ("a[last].x >= max(a[].x)", None),
            ("a[i].x >= max(a[..i-1].x) OR a[i].x > 1", None),
        ],
    )
    def test_before_and_after(self, before: str, after: str | None) -> None:
        plan = plan_of(f"PATTERN A+ a[] WHERE {before}")
        (condition,) = rewrite_running_extremes(plan).conditions
        assert condition.text == (after or before)
        (written,) = plan_of(f"PATTERN A+ a[] WHERE {after or before}").conditions
        assert condition.expr == written.expr

    def test_a_round_stays_a_round(self) -> None:
        query = "PATTERN (SEQ(B, (A a: a[i].x > max(a[..i-1].x))+))+"
        (before,), (after,) = plan_of(query).conditions, rewrite_running_extremes(plan_of(query)).conditions
        assert (after.part, after.scope) == (before.part, before.scope)

    @pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "="])
    @pytest.mark.parametrize("function", ["min", "max"])
    @pytest.mark.parametrize("semantics", ["skip-till-any-match", "skip-till-next-match", "contiguous"])
    def test_nulls_and_ties(self, operator: str, function: str, semantics: str) -> None:
        """Every stream of four values, NULLs among them, is a partition; the reference knows no rewriting."""
        values = list(product([None, 0, 1, 2], repeat=4))
        events = [
            {"id": n, "type": "A", "time": n, "x": x, "y": None, "g": None, "k": k}
            for k, some in enumerate(values)
            for n, x in enumerate(some)
        ]
        query = f"PATTERN A+ a[] SEMANTICS {semantics} WHERE [k] AND a[i].x {operator} {function}(a[..i-1].x)"
        table = to_table(events)
        assert rows_of(tl.run(query, table, engine="local")) == rows_of(tl.run(query, table, engine="reference"))


class TestScanPatternTypes:
    @pytest.mark.parametrize(
        ("query", "types"),
        [
            ("PATTERN SEQ(B, A+, B)", ("A", "B")),
            ("PATTERN SEQ(A, NOT SEQ(X, NOT Y, Z), B)", ("A", "B", "X", "Y", "Z")),
            ("PATTERN SEQ(A, B) SEMANTICS skip-till-next-match", ("A", "B")),
            ("PATTERN SEQ(A, B) SEMANTICS contiguous", None),
        ],
    )
    def test_before_and_after(self, query: str, types: tuple[str, ...] | None) -> None:
        before = plan_of(query)
        assert before.scan.types is None
        assert scan_pattern_types(before).scan.types == types


class TestScanNeededColumns:
    @pytest.mark.parametrize(
        ("query", "columns"),
        [
            ("PATTERN A", ("id", "type", "time", "x", "y", "g", "k")),
            ("RETURN COUNT(*) PATTERN A", ("type", "time")),
            ("RETURN k, COUNT(*) PATTERN A GROUP BY k", ("type", "time", "k")),
            ("RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE [g] AND a.x < b.y", ("type", "time", "x", "y", "g")),
            ("RETURN SUM(A.x) PATTERN A HAVING MAX(A.y) > 1", ("type", "time", "x", "y")),
            ("RETURN a.id, duration(a) PATTERN A a", ("id", "type", "time")),
            ("RETURN COUNT(*) PATTERN SEQ(A a, NOT B b) WHERE b.x > 1", ("type", "time", "x")),
            ("RETURN a.id PATTERN A a RANK BY a.y LIMIT 1", ("id", "type", "time", "x", "y", "g", "k")),
        ],
    )
    def test_before_and_after(self, query: str, columns: tuple[str, ...]) -> None:
        assert scan_needed_columns(plan_of(query)).scan.columns == columns

    def test_filters_are_read_too(self) -> None:
        plan = scan_needed_columns(push_predicates_to_positions(plan_of("RETURN COUNT(*) PATTERN A a WHERE a.x > 1")))
        assert plan.scan.columns == ("type", "time", "x")


def test_all_rules_run_in_order() -> None:
    plan = optimize(plan_of("RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE a.x > 1"))
    assert (plan.scan.columns, plan.scan.types, len(plan.filters)) == (("type", "time", "x"), ("A", "B"), 1)


# --------------------------------------------------------------------------------- no rule changes an answer


def executed(plan: Plan, table: pa.Table) -> list[object]:
    batches = list(local.run(choose(plan), prepare(table)))
    return rows_of(pa.Table.from_batches(batches))


EXAMPLES = amount(18)
REWRITES: dict[str, Callable[[Plan], Plan]] = {
    "all": optimize,
    **{rule.__name__: rule for rule in RULES},
    **{f"all but {rule.__name__}": partial(optimize, without=(rule,)) for rule in RULES},
}


def test_the_answer_stays() -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(cases(Knobs(outputs=("trends", "values", "aggregates"), classes=("local", "adjacent", "distant", "whole"))))
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        table = to_table(case.events)
        try:
            plan = bind(parse_query(case.query), prepare(table).schema)
            before = executed(plan, table)
        except (BindError, PlanError):
            assume(False)
            raise
        for name, rewrite in REWRITES.items():
            assert executed(rewrite(plan), table) == before, (name, case.query)
        compared += 1
        with_rows += bool(before)

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= 0.2 * EXAMPLES
