"""Where conditions between events are decided, how events are found for them, and in which order they are asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.property.strategies import SCHEMA

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import UNKNOWN, Statistics
from trendloom.optimizer import optimize
from trendloom.optimizer.look_up_equalities import look_up_equalities
from trendloom.optimizer.nesting_costs import NestingCosts, compared_values, costs_of, let_through, selectivity
from trendloom.optimizer.order_conditions import order_conditions
from trendloom.optimizer.push_predicates import OUTSIDE, push_predicates_in
from trendloom.optimizer.short_cut_predicates import can_be_cut, short_cut_predicates


def plan_of(query: str) -> Plan:
    return bind(parse_query(query), SCHEMA)


class TestPushPredicatesIn:
    @pytest.mark.parametrize(
        ("pattern", "at"),
        [
            ("SEQ(A a, B b, (C c: c.x = b.x))", "c"),
            ("SEQ(A a, (B b: b.x = c.x), C c)", "c"),  # written at one component, moved to the other
            ("SEQ(A a, B b, SEQ(C c, D d), (A o: o.x = d.x))", "o"),  # into a nested SEQ
            ("SEQ(A a, SEQ(B b, (C c: c.x = o.x)), (A o))", "o"),
            ("SEQ(A a, NOT SEQ(B b, (C c: c.x = a.x)), D d)", "c"),
            ("SEQ(A a, NOT SEQ(B b, (C c: c.x = d.x)), D d)", "c"),
            ("SEQ(A a, NOT (B b: a.x = d.x), D d)", OUTSIDE),
            ("SEQ(A a, (AND((B b: b.x < c.x), C c)), D d)", "b or c"),
            ("SEQ(A a+, B b) WHERE a.x < NEXT(a).x", "a"),
        ],
    )
    def test_where_it_is_decided(self, pattern: str, at: str) -> None:
        assert [one.decided_at for one in push_predicates_in(plan_of(f"PATTERN {pattern}")).conditions] == [at]

    @pytest.mark.parametrize("where", ["count(a[]) > 1", "a[last].x > 1", "b.x > max(a[].x)", "1 = 2"])
    def test_what_waits_for_the_whole_match(self, where: str) -> None:
        plan = push_predicates_in(plan_of(f"PATTERN SEQ(A+ a[], B b) WHERE {where}"))
        assert [one.decided_at for one in plan.conditions] == [None]


class TestLookUpEqualities:
    @pytest.mark.parametrize(
        ("query", "looked_up"),
        [
            ("SEQ(A a, B b) WHERE a.x = b.x", True),
            ("SEQ(A a, B b) WHERE a.x + 1 = b.y", True),
            ("SEQ(A+ a[], B b) WHERE a.x = b.x", True),
            ("SEQ(A a, NOT (B b: b.x = a.x), C c)", True),
            ("SEQ(A a, B b) WHERE a.x < b.x", False),
            ("SEQ(A a, B b) WHERE a.x = b.x + a.y", False),
            ("A+ a[] WHERE a.x = NEXT(a).x", False),
            ("A+ a[] WHERE a[i].x = a[i-1].x", False),
            ("SEQ(A+ a[], B b) WHERE a[last].x = b.x", False),
            ("(SEQ(A a, (B b: b.x = a.x)))+", False),
        ],
    )
    def test_which_events_are_looked_up(self, query: str, looked_up: bool) -> None:
        plan = look_up_equalities(push_predicates_in(plan_of(f"PATTERN {query}")))
        assert [one.looked_up for one in plan.conditions] == [looked_up]

    def test_nothing_is_looked_up_for_what_is_decided_last(self) -> None:
        plan = look_up_equalities(plan_of("PATTERN SEQ(A a, B b) WHERE a.x = b.x"))
        assert not plan.conditions[0].looked_up


class TestShortCutPredicates:
    @staticmethod
    def known(inner: float, outer: float, events: float = 1e4) -> Statistics:
        types = dict.fromkeys("ABCD", events / 4)
        return Statistics(events=events, types=types, first=0, last=999, domains={("A", "x"): outer, ("C", "x"): inner})

    NESTED = "PATTERN SEQ(A a, B b, SEQ((C c: c.x = a.x), D d)) WITHIN 100"
    NEGATED = "PATTERN SEQ(A a, NOT SEQ(B b, (C c: c.x = a.x)), D d) WITHIN 100"

    @pytest.mark.parametrize("query", [NESTED, NEGATED])
    @pytest.mark.parametrize(
        ("inner", "outer", "cut"), [(100, 1000, True), (9, 10, False), (10, 10, False), (10, 5, False)]
    )
    def test_only_small_domains_are_cut_short(self, query: str, inner: float, outer: float, cut: bool) -> None:
        plan = optimize(plan_of(query), self.known(inner, outer))
        assert [one.short_cut for one in plan.conditions] == [cut]

    @pytest.mark.parametrize("query", [NESTED, NEGATED])
    def test_nothing_is_cut_where_nothing_is_known(self, query: str) -> None:
        assert not any(one.short_cut for one in optimize(plan_of(query), UNKNOWN).conditions)

    def test_a_short_cut_that_costs_more_than_it_saves_is_left(self) -> None:
        known = self.known(100, 1000, events=8)
        assert not any(one.short_cut for one in optimize(plan_of(self.NESTED), known).conditions)

    @pytest.mark.parametrize(
        ("query", "possible"),
        [
            ("PATTERN SEQ(A a, B b) WHERE a.x = b.x", True),
            ("PATTERN SEQ(A+ a[], B b) WHERE a.x = b.x", True),
            ("PATTERN SEQ(A a, B+ b[]) WHERE a.x = b.x", True),
            ("PATTERN SEQ(A a, B b?, C c) WHERE a.x = b.x", False),  # not in every match
            ("PATTERN SEQ(A a, B | C c) WHERE a.x = c.x", False),
            ("PATTERN AND(A a, B b) WHERE a.x = b.x", False),  # either may be the first
            ("PATTERN (SEQ(A a, B b))+ WHERE a.x = b.x", False),
            ("PATTERN SEQ(A a, B b) SEMANTICS skip-till-next-match WHERE a.x = b.x", False),
            ("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c)", True),
            ("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c) SEMANTICS skip-till-next-match", True),
            ("PATTERN SEQ(A a, NOT SEQ((B b: b.x = a.x)?, D d), C c)", False),
            ("PATTERN SEQ(A a, NOT SEQ(B b, (D d: d.x = b.x)), C c)", False),  # both inside
        ],
    )
    def test_where_a_miss_decides(self, query: str, possible: bool) -> None:
        plan = look_up_equalities(push_predicates_in(plan_of(query)))
        assert [can_be_cut(one, plan) for one in plan.conditions] == [possible]

    def test_the_share_that_is_let_through(self) -> None:
        """250 events of a window hold nearly all of 20 values, a quarter of 80, and 22 % of 1,000 values."""
        for query in (self.NESTED, self.NEGATED):
            plan = push_predicates_in(plan_of(query))
            few, many = (
                let_through(plan.conditions[0], plan, self.known(*sizes)) for sizes in ((20, 80), (1000, 1000))
            )
            assert few == pytest.approx(0.25, rel=1e-4)
            assert many == pytest.approx(1 - 0.999**250)

    def test_costs_fall_with_every_step(self) -> None:
        known = self.known(50, 1000)
        for query in (self.NESTED, self.NEGATED):
            plan = short_cut_predicates(look_up_equalities(push_predicates_in(plan_of(query))), known)
            costs = costs_of(plan, known)
            assert costs is not None
            assert costs.last >= costs.early > costs.chosen

    def test_the_figures_of_a_flat_query(self) -> None:
        """10 events of each type in a window: 10 + 10·10/2 without a condition, and the condition passes a tenth."""
        known = Statistics(events=30, types={"A": 10.0, "B": 10.0}, first=0, last=99, domains={})
        plan = push_predicates_in(plan_of("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 100"))
        assert costs_of(plan, known) == NestingCosts(last=60.0, early=15.0, chosen=15.0)


class TestOrderConditions:
    def test_equalities_lose_more_than_inequalities(self) -> None:
        plan = plan_of("PATTERN SEQ(A a, B b) WHERE a.x != b.x AND a.y < b.y AND a.k = b.k")
        assert [one.text for one in order_conditions(plan, UNKNOWN).conditions] == [
            "a.k = b.k",
            "a.y < b.y",
            "a.x != b.x",
        ]

    def test_domains_that_are_known_decide(self) -> None:
        plan = plan_of("PATTERN SEQ(A a, B b) WHERE a.x = b.x AND a.k = b.k")
        sizes = {("A", "x"): 2.0, ("B", "x"): 2.0, ("A", "k"): 1e6, ("B", "k"): 10.0}
        known = Statistics(domains=sizes)
        assert [one.text for one in order_conditions(plan, known).conditions] == ["a.k = b.k", "a.x = b.x"]
        assert selectivity(plan.conditions[1].expr, plan, known) == 1e-6

    def test_conditions_are_the_same_ones(self) -> None:
        plan = plan_of("PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.x + b.x > 3 AND a.k = b.k")
        assert set(order_conditions(plan, UNKNOWN).conditions) == set(plan.conditions)


def test_the_values_worth_knowing() -> None:
    plan = plan_of("PATTERN SEQ(A a, NOT (B b: b.x = a.k), C c) WHERE a.g = c.g AND a.y < c.y")
    assert compared_values(plan) == {("A", "k"), ("B", "x"), ("A", "g"), ("C", "g")}


def test_every_rule_can_be_left_out() -> None:
    plan = plan_of("PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x")
    assert optimize(plan, without=(push_predicates_in, look_up_equalities)).conditions == plan.conditions
    assert optimize(plan).conditions == (replace(plan.conditions[0], decided_at="b", looked_up=True),)
