"""Which NOTs depend on one event next to them alone, and what is noted of them."""

from __future__ import annotations

import pytest
from tests.property.strategies import SCHEMA

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.display import draw, show_expression
from trendloom.logical.plan import Plan
from trendloom.optimizer import optimize
from trendloom.optimizer.decorrelate_negations import decorrelate_negations
from trendloom.optimizer.push_predicates import push_predicates_to_positions
from trendloom.planner.display import describe_physical
from trendloom.planner.pattern_tables import describe

BEFORE, AFTER = False, True


def plan_of(query: str) -> Plan:
    return push_predicates_to_positions(bind(parse_query(query), SCHEMA))


def noted(query: str) -> list[tuple[int, bool, list[str]]]:
    """The NOTs that are noted: their scope, the side of the event that decides, and what is compared with it."""
    plan = decorrelate_negations(plan_of(query))
    axis = plan.schema.axis
    return [(one.scope, one.follows, [show_expression(link, axis) for link in one.links]) for one in plan.decorrelated]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SEQ(A a, NOT (B b: b.x = a.x), C c)", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A a, NOT (B b: a.x = b.x), C c)", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A a, NOT B b, C c) WHERE c.x < b.y", [(1, AFTER, ["b.y > c.x"])]),
        ("SEQ(A a, NOT B b, C c) WHERE b.x != c.x + 1", [(1, AFTER, ["b.x != (c.x + 1)"])]),
        ("SEQ(A a, NOT B b, C c) WHERE b.x = a.x AND b.g = a.g", [(1, BEFORE, ["b.x = a.x", "b.g = a.g"])]),
        ("SEQ(A a, NOT B b, C c) WHERE b.x = a.x AND b.y <= a.y", [(1, BEFORE, ["b.x = a.x", "b.y <= a.y"])]),
        ("SEQ(A a, NOT (B b: b.x = a.x AND b.y > 1), C c)", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A+ a[], NOT (B b: b.x = c.x), C c)", [(1, AFTER, ["b.x = c.x"])]),
        ("SEQ(A a, NOT (B b: b.x = a.x), C+ c[])", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A a, NOT (B b: b.x = a.x), (C c OR D d))", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A a, NOT B+ b[], C c) WHERE b.x = a.x", [(1, BEFORE, ["b.x = a.x"])]),
        ("(SEQ(A a, NOT (B b: b.x = a.x), C c))+", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(D, (SEQ(NOT (B b: b.x = a.x), A a))+)", [(1, AFTER, ["b.x = a.x"])]),
        ("(SEQ(A a, NOT (B b: b.x = a.x), C c)){2}", [(1, BEFORE, ["b.x = a.x"]), (2, BEFORE, ["b.x = a.x"])]),
        (
            "SEQ(A a, NOT (B b: b.x = a.x), NOT (D d: d.x > c.x), C c)",
            [(1, BEFORE, ["b.x = a.x"]), (2, AFTER, ["d.x > c.x"])],
        ),
        ("SEQ(A a, NOT SEQ(B b, D d), C c) WHERE b.x = a.x AND d.x = b.x", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A a, NOT SEQ(B b, D d), C c) WHERE b.x = c.y AND d.x = c.y", [(1, AFTER, ["b.x = c.y"])]),
        ("SEQ(A a, NOT SEQ(B b, (D d)?), C c) WHERE b.x = a.x AND d.x = a.x", [(1, BEFORE, ["b.x = a.x"])]),
        ("SEQ(A a, NOT SEQ(B b, NOT (D d: d.x > b.x), A f), C c)", [(2, BEFORE, ["d.x > b.x"])]),
    ],
)
def test_what_is_noted(query: str, found: list[tuple[int, bool, list[str]]]) -> None:
    assert noted(f"PATTERN {query}") == found


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, NOT B b, C c)",
        "SEQ(A a, NOT (B b: b.x > 1), C c)",
        "SEQ(A a, D d, NOT (B b: b.x = a.x), C c)",
        "SEQ(A a, NOT (B b: b.x = a.x), D d, C c) WHERE b.y = c.y",
        "SEQ(A a, NOT (B b: b.x = a.x AND b.y = c.y), C c)",
        "SEQ(A a, NOT (B b: b.x < a.x AND b.y < a.y), C c)",
        "SEQ(A a, NOT (B b: b.x + a.x > 1), C c)",
        "SEQ(A a, NOT (B b: b.x = a.x OR b.y > 1), C c)",
        "SEQ(A a, NOT (B b: a.x > 1), C c)",
        "SEQ(A+ a[], NOT (B b: b.x = a.x), C c)",
        "SEQ(A+ a[], NOT (B b: b.x = a[last].x), C c)",
        "(SEQ(A a, NOT B b, C c))+ WHERE b.x = a.x",
        "(SEQ(A+ a[], NOT (B b: b.x = a.x), C c))+",
        "SEQ(D d, (A a)?, NOT (B b: b.x = a.x), C c)",
        "SEQ((A a OR D d), NOT (B b: b.x = a.x), C c)",
        "SEQ(NOT (B b: b.x = a.x), A a)",
        "SEQ(A a, NOT (B b: b.x = a.x))",
        "SEQ(A a, NOT (B b: b.x = a.x), (C c)?)",
        "AND(SEQ(A a, NOT (B b: b.x = a.x), C c), D d)",
        "SEQ(A a, NOT B+ b[], C c) WHERE b.x = a.x AND count(b[]) > 1",
        "SEQ(A a, NOT SEQ(B b, D d), C c) WHERE b.x = a.x",
        "SEQ(A a, NOT SEQ(B b, D d), C c) WHERE b.x = a.x AND d.x > b.x",
        "SEQ(A a, NOT SEQ(B b, D d), C c) WHERE b.x > a.x",
        "SEQ(A a, NOT SEQ(B b, D d), C c) WHERE b.x = a.x AND d.y = b.y",
        "SEQ(A a, NOT SEQ(B b, (D d)?, C e), C c) WHERE b.x = a.x AND d.x = b.x AND e.x = d.x",
        "SEQ(A a, NOT SEQ(B b, NOT (D d: d.x = a.x), A f), C c)",
    ],
)
def test_what_is_left_alone(query: str) -> None:
    assert noted(f"PATTERN {query}") == []


def test_conditions_stay() -> None:
    plan = plan_of("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c)")
    assert decorrelate_negations(plan).conditions == plan.conditions


def test_without_the_rule_a_not_waits_for_the_match() -> None:
    plan = bind(parse_query("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c)"), SCHEMA)
    assert not describe(optimize(plan)).scopes[1].waits
    assert describe(optimize(plan, without=(decorrelate_negations,))).scopes[1].waits


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("b.x = a.x", "anti-join by b.x = a.x and time, for the event before it"),
        ("b.x > c.x", "threshold by b.x > c.x for the event after it, found in order of values"),
        ("b.x + a.x > 1", "uses a of the match around it: searched in the gap of each match"),
    ],
)
def test_explained(condition: str, shown: str) -> None:
    plan = bind(parse_query(f"PATTERN SEQ(A a, NOT (B b: {condition}), C c)"), SCHEMA)
    assert any(shown in line for line in draw(describe_physical(optimize(plan), lambda _: ())))
