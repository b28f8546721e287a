"""Patterns as slots and matrices: which partial matches are kept apart, and what events do to them."""

from __future__ import annotations

import pytest
from tests.unit.kernels.aggregated import SCHEMA, planned

from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.kernels.aggregate.program import Program, obstacle
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.bind import bind
from trendloom.optimizer import optimize
from trendloom.planner.pattern_tables import describe

NEXT, CONTIGUOUS = "SEMANTICS skip-till-next-match", "SEMANTICS contiguous"


def pattern_spec(pattern: str) -> PatternSpec:
    return planned(f"RETURN COUNT(*) PATTERN {pattern}").physical.pattern_spec


def program(pattern: str) -> Program:
    return Program(Automaton(pattern_spec(pattern)))


def test_one_slot_per_position_and_one_for_the_empty_match() -> None:
    found = program("SEQ(A+, B)")
    assert [slot.state for slot in found.slots] == [None, 0, 1]
    assert (found.begin, found.accepts, found.sources) == (0, (2,), (0, 1))


def test_an_event_adds_what_leads_to_it() -> None:
    found = program("SEQ(A+, B)")
    assert found.entering(frozenset({0})) == {(1, 0, False), (1, 1, False)}
    assert found.entering(frozenset({1})) == {(2, 1, False)}
    assert found.moving(frozenset({1})) == {(0, 0), (1, 1), (2, 2)}


def test_next_takes_runs_away_and_contiguous_ends_them() -> None:
    assert (1, 1) not in program(f"SEQ(A+, B) {NEXT}").moving(frozenset({1}))
    assert (1, 1) in program(f"SEQ(A+, B) {NEXT}").moving(frozenset())
    assert (1, 1) not in program(f"SEQ(A+, B) {CONTIGUOUS}").moving(frozenset())


def test_a_not_splits_a_slot_by_what_was_seen_of_it() -> None:
    found = program("SEQ(A+, NOT SEQ(N, M), B)")
    tags = [slot.tag for slot in found.slots if slot.state == 0]
    assert [progress for ((_, progress),) in tags] == [frozenset(), frozenset({0}), None]
    assert found.moving(frozenset({2})) >= {(1, 1), (3, 2), (3, 3)}  # M alone does nothing, after N it spoils


def test_what_can_no_longer_match_is_dropped() -> None:
    leading = program("SEQ(NOT N, A+)")
    assert (0, 0) not in leading.moving(frozenset({0}))
    assert all(target != 0 for target, _ in leading.moving(frozenset({0})))


def test_parts_of_an_and_may_have_equal_times() -> None:
    found = program("AND(A, B)")
    assert any(late for _, _, late in found.entering(frozenset({1})))
    tied = [(target, source) for target, source, late in found.entering(frozenset({0, 1})) if late]
    assert all(found.order.index(source) < found.order.index(target) for target, source in tied)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("SEQ(A, NOT (N n: n.x > 1), B)", None),
        ("SEQ(A, NOT SEQ(N n, M m), B) WHERE n.x < m.x", "conditions or NOTs of its own"),
        ("SEQ(A, NOT SEQ(N, NOT M, N), B)", "conditions or NOTs of its own"),
        ("AND(A, A)", "the same event"),
        ("A{70}", "running aggregates"),
    ],
)
def test_obstacles(pattern: str, reason: str | None) -> None:
    plan = optimize(bind(parse_query(f"RETURN COUNT(*) PATTERN {pattern}"), prepare(SCHEMA.empty_table()).schema))
    found = obstacle(Automaton(describe(plan)))
    assert found is None if reason is None else reason in str(found)
