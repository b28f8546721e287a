"""Nested queries mean what the definitions say, whichever rules of the optimizer take part."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import SCHEMA, Case
from tests.property.strategies_nesting import KINDS, hides_optional_beside_not, nested_cases

import trendloom as tl
from trendloom.engines import local
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.optimizer import COSTED_RULES, RULES, CostedRule, Rule, optimize
from trendloom.optimizer.short_cut_predicates import can_be_cut
from trendloom.planner.plan import choose
from trendloom.runtime.statistics import statistics_of_stream

CASES = 500
EVERY_RULE: tuple[Rule | CostedRule, ...] = (*RULES, *COSTED_RULES)


def with_every_short_cut(plan: Plan) -> Plan:
    """Small streams are never worth a short cut: take all that are possible."""
    return replace(plan, conditions=tuple(replace(one, short_cut=can_be_cut(one, plan)) for one in plan.conditions))


def planned(case: Case, without: set[Rule | CostedRule], *, cut: bool) -> Plan:
    try:
        plan = bind(parse_query(case.query), SCHEMA)
        known = statistics_of_stream(prepare(case.table()))(plan)
        plan = optimize(plan, known, without)
        return with_every_short_cut(plan) if cut else plan
    except (BindError, PlanError):
        assume(False)
        raise


def run_locally(plan: Plan, table: pa.Table) -> list[object]:
    return rows_of(pa.Table.from_batches(local.run(choose(plan), prepare(table))))


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_changes_an_answer(kind: str) -> None:
    some = {"matched": 0, "nested": 0, "correlated": 0, "compared": 0, "hiding": 0, "optional": 0}

    @thorough(amount(CASES))
    @given(
        case=nested_cases(KINDS[kind]),
        without=st.sets(st.sampled_from(EVERY_RULE), max_size=len(EVERY_RULE)),
        cut=st.booleans(),
    )
    def compare(case: Case, without: set[Rule | CostedRule], cut: bool) -> None:
        plan = planned(case, without, cut=cut)
        table = case.table()
        try:
            found = run_locally(plan, table)
        except PlanError:
            assume(False)
        expected = rows_of(tl.run(case.query, table, engine="reference"))
        some["compared"] += 1
        some["matched"] += bool(expected)
        some["nested"] += case.query.count("SEQ") > 1 or "NOT" in case.query
        some["hiding"] += "EXISTS" in case.query
        some["optional"] += hides_optional_beside_not(case.query)
        some["correlated"] += any(condition.scope for condition in plan.conditions)
        assert found == expected, f"without {sorted(rule.__name__ for rule in without)}"

    compare()
    assert some["compared"] >= 0.9 * amount(CASES)
    for what in ("matched", "nested", "correlated"):
        assert some[what] >= at_least(0.1, amount(CASES)), some
    if KINDS[kind].exists:
        assert some["hiding"] == some["compared"], some
    if KINDS[kind].optional:
        assert some["optional"] >= at_least(0.5, amount(CASES)), some
