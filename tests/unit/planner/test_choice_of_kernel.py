"""Which kernel finds the matches of a query, and the reason that EXPLAIN gives."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest
from tests.property.strategies import SCHEMA

from trendloom.errors import PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.next import RunsKernel
from trendloom.kernels.uncertain.kernel import ImpreciseKernel
from trendloom.logical.bind import bind
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Column, Kind, Schema
from trendloom.planner.plan import Physical
from trendloom.planner.request import Choice
from trendloom.runtime.planning import plan_query

NEXT = "SEMANTICS skip-till-next-match"
CONTIGUOUS = "SEMANTICS contiguous"


def physical_of(query: str, schema: Schema = SCHEMA) -> Physical:
    return plan_query(bind(parse_query(query), schema))


def runs_of(query: str) -> RunsKernel:
    kernel = physical_of(query).kernel
    assert isinstance(kernel, RunsKernel)
    return kernel


def choice_of(query: str) -> Choice:
    return physical_of(query).chosen


@pytest.mark.parametrize(
    "query",
    [
        f"PATTERN SEQ(A+, B) {NEXT}",
        f"PATTERN (SEQ(A+, B))+ {CONTIGUOUS}",
        f"PATTERN A+ a[] {NEXT} WHERE a.x < NEXT(a).x AND a.g = NEXT(a).g AND a.x > 1",
        f"PATTERN A+ a[] {NEXT} WHERE a[i].x >= a[i-1].x",
        f"PATTERN SEQ(A a, B b) {NEXT} WHERE a.x + 1 < 2 * NEXT(b).y",
        f"PATTERN SEQ(A, NOT SEQ(X, Y), B) {NEXT}",
        f"PATTERN SEQ(A, NOT (X x: x.x > 1), B) {CONTIGUOUS} WITHIN 10 SLIDE 5",
        f"PATTERN SEQ(A?, B*, C) {NEXT}",
        f"PATTERN SEQ(A+, A+) {NEXT}",
        f"PATTERN (SEQ(A a, (B b: b.x = a.x)))+ {NEXT}",
        f"PATTERN SEQ(A a, B b) {NEXT} WHERE b.x > a.x",
    ],
)
def test_next_match(query: str) -> None:
    choice = choice_of(query)
    assert choice.algorithm.startswith("next match: ")
    assert "depends on its last event alone" in choice.why


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        ("PATTERN SEQ(A, B)", "O(events + output)"),
        ("RETURN count(a[]) PATTERN SEQ(A+ a[], NOT X, B) WITHIN 10 SLIDE 2", "O(events + output)"),
        ("PATTERN A+ a[] WHERE a.g = NEXT(a).g", "O(events + output)"),
        ("PATTERN A+ a[] WHERE a.x < NEXT(a).x", "O(events · log events + output)"),
        ("PATTERN A+ a[] WHERE a[i].x > max(a[..i-1].x)", "O(events · log events + output)"),
    ],
)
def test_postponed(query: str, cost: str) -> None:
    choice = choice_of(query)
    assert choice.algorithm.startswith("postponed: ")
    assert "depends on the two events it joins alone" in choice.why
    assert choice.cost == cost


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN SEQ(NOT X, A)", "a leading or trailing NOT"),
        ("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x", "not next to each other"),
        ("PATTERN SEQ(A a, SEQ(B b, C c), (D d: d.x = b.x))", "not next to each other"),
        ("PATTERN SEQ(A a, NOT (X x: x.x + a.x > c.x), B b, C c)", "a NOT depends on the match around it"),
        ("RETURN COMPLETE TRENDS PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x", "not next to each other"),
    ],
)
def test_outside_in(query: str, reason: str) -> None:
    choice = choice_of(query)
    assert choice.algorithm.startswith("join order: ")
    assert choice.why.startswith("skip-till-any-match, but ")
    assert reason in choice.why


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN SEQ(NOT X, A+)", "a leading or trailing NOT"),
        ("PATTERN AND(A, B)", "AND lets events of one time follow each other"),
        ("PATTERN A+ a[] WHERE count(a[].x) > 2", "more than two events"),
        ("PATTERN A+ a[] WHERE a[i].x < max(a[..i-1].x)", "more than two events"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE b.x < c.x", "not next to each other"),
        (f"PATTERN SEQ(NOT X, A) {NEXT}", "a leading or trailing NOT"),
        (f"PATTERN SEQ(A, NOT X) {CONTIGUOUS}", "a leading or trailing NOT"),
        (f"PATTERN SEQ(A a, NOT (X x: x.x + a.x > 1), B b) {NEXT}", "a NOT depends on the match around it"),
        (f"PATTERN SEQ(A a, NOT SEQ(NOT X, Y), B b) {NEXT}", "a NOT depends on the match around it"),
        (f"PATTERN SEQ(A a, B b, C c) {NEXT} WHERE a.x < c.x", "not next to each other"),
        (f"PATTERN A+ a[] {NEXT} WHERE count(a[].x) > 2", "more than two events"),
        (f"PATTERN A+ a[] {NEXT} WHERE a[i].x > avg(a[..i-1].x)", "more than two events"),
        (f"PATTERN A+ a[] {NEXT} WHERE a.x < NEXT(a).x OR a.g = NEXT(a).g", "not a comparison of one event"),
        (f"PATTERN A+ a[] {NEXT} WHERE a.x + NEXT(a).x > 3", "not a comparison of one event with the other"),
        (f"PATTERN (SEQ(A a, B b))+ {NEXT} WHERE a[i].x > a[i-1].x", "looks back past other events"),
        (f"PATTERN (SEQ(A a, C?, (B b: b.x = a.x)))+ {NEXT}", "not next to each other"),
        (f"PATTERN (OR(A, SEQ(B, NOT X)))+ {NEXT} WHERE A.x > 1", "leading or trailing"),
        (f"PATTERN A{{70}} {NEXT}", "more than 64 positions"),
    ],
)
def test_expansion(query: str, reason: str) -> None:
    choice = choice_of(query)
    assert choice.algorithm.startswith("expansion: ")
    assert reason in choice.why


class TestPairs:
    def test_a_pair_knows_its_steps(self) -> None:
        kernel = runs_of(f"PATTERN (SEQ(A+ a[], B b))+ {NEXT} WHERE a.x < NEXT(b).x")
        (pair,) = kernel.pairs
        assert pair.operator == "<"
        template = kernel.pattern_spec.scopes[0].template
        (step,) = pair.steps
        assert template.position_of[step[0]] == 0

    def test_sides_are_turned(self) -> None:
        (pair,) = runs_of(f"PATTERN A+ a[] {NEXT} WHERE NEXT(a).x < a.y").pairs
        assert pair.operator == ">"
        assert pair.left.column == "y"  # type: ignore[union-attr]

    def test_no_pairs_for_local_predicates(self) -> None:
        assert runs_of(f"PATTERN A+ a[] {NEXT} WHERE a.x > 1").pairs == ()


class TestDetection:
    def pattern_spec(self, query: str) -> PatternSpec:
        return physical_of(query).pattern_spec

    def test_semantics(self) -> None:
        any_match, next_match, contiguous = (
            self.pattern_spec(f"PATTERN A+ {semantics}") for semantics in ("", NEXT, CONTIGUOUS)
        )
        assert [(found.earliest, found.adjacent) for found in (any_match, next_match, contiguous)] == [
            (False, False), (True, False), (False, True),
        ]  # fmt: skip

    def test_variables_from_outside_a_not(self) -> None:
        query = "PATTERN SEQ(A a, NOT SEQ(B b, NOT C c, D d), E e) WHERE c.x = a.x AND d.x = b.x"
        assert [scope.outer for scope in self.pattern_spec(query).scopes] == [set(), {"a"}, {"a"}]

    def test_a_name_used_inside_and_outside(self) -> None:
        """In `A.x > B.x` the A of the NOT's own scope is meant, where it has one."""
        pattern_spec = self.pattern_spec("PATTERN SEQ(A, NOT SEQ(A, B), C) WHERE A.x < B.x")
        assert pattern_spec.scopes[1].outer == set()
        assert pattern_spec.binds(1, "A") == 1
        assert pattern_spec.binds(1, "C") == 0

    def test_open_ended_scopes(self) -> None:
        pattern_spec = self.pattern_spec("PATTERN SEQ(A, NOT SEQ(NOT X, Y), NOT Z, B)")
        assert [scope.open_ended for scope in pattern_spec.scopes] == [False, True, False, False]


def test_plans_travel() -> None:
    physical = physical_of(f"PATTERN SEQ(A a, NOT (X x: x.x = a.x), B+ b[]) {NEXT} WHERE b[i].x > b[i-1].x WITHIN 5")
    assert pickle.loads(pickle.dumps(physical)) == physical


IMPRECISE = Schema(
    (Column("type", Kind.STRING), Column("lo", Kind.INT), Column("hi", Kind.INT)), imprecision=Imprecision("lo", "hi")
)
IMPRECISE_LONGEST = Imprecision("lo", "hi").longest


MANY_NOTS = (
    "PATTERN SEQ(A a, " + ", ".join(f"NOT B n{i}, A a{i}" for i in range(9)) + ") SEMANTICS skip-till-next-match"
)


def test_imprecise_times_have_algorithms_of_their_own() -> None:
    found = physical_of("PATTERN SEQ(A a, B b) WITHIN 5 CONFIDENCE >= 0.5", IMPRECISE)
    assert isinstance(found.kernel, ImpreciseKernel)
    assert (found.kernel.threshold, found.kernel.slack) == (Fraction(1, 2), IMPRECISE_LONGEST)
    assert found.chosen.algorithm.startswith("signatures")


ONE_GAP = "can lie in one gap"
SWEEP = "a sweep over time"


@pytest.mark.parametrize(
    ("query", "algorithm", "why", "confidence"),
    [
        ("SEQ(A a, B b)", "walk", "an event fits one component", "sums over points"),
        ("SEQ(A a, A+ b[])", "walk", "may fit several places, of 'a' and 'b'", "sums over points"),
        ("SEQ(A{2} a[], B b)", "walk", "may fit several places, of 'a':", "sums over points"),
        ("SEQ(A a, A b) WHERE a.lo < 1 AND b.lo > 3", "walk", "an event fits one component", "sums over points"),
        ("SEQ(A a, B b) WHERE a.lo < b.lo", "extend", "conditions link events", "sums over points"),
        ("SEQ(A a, NOT X x, A b)", "walk", "may fit several places", ONE_GAP),
        ("SEQ(A a, NOT X x, A b, NOT X y)", "walk", "no condition links", SWEEP),
        (f"SEQ(A a, NOT X x, B b) {NEXT}", "extend", "what comes next", ONE_GAP),
        (f"SEQ(A a, A b) {NEXT}", "extend", "what comes next", SWEEP),
        (f"SEQ(A a, B+ b[]) {NEXT}", "extend", "an event fits one component", SWEEP),
        (f"SEQ(A a, B b?, C c) {NEXT}", "extend", "an event fits one component", SWEEP),
        (f"SEQ(A a, NOT A x, B b) {NEXT}", "extend", "an event fits one component", SWEEP),
    ],
)
def test_what_explain_says_of_imprecise_times(query: str, algorithm: str, why: str, confidence: str) -> None:
    chosen = physical_of(f"PATTERN {query}", IMPRECISE).chosen
    notes = {note.label: note for note in chosen.notes}
    assert chosen.algorithm.startswith(f"signatures: {algorithm} ")
    assert why in chosen.why
    assert confidence in notes["confidence"].text
    assert ("exponential" in chosen.cost) == (confidence == SWEEP)


@pytest.mark.parametrize(
    ("clauses", "pruned"),
    [
        ("", ["by time"]),
        ("WITHIN 5", ["by time", "by what must follow"]),
        (f"{NEXT} WITHIN 5", ["by time", "by what must follow", "by what surely came"]),
        ("CONFIDENCE >= 0.5", ["by time", "by confidence"]),
    ],
)
def test_what_explain_says_is_pruned(clauses: str, pruned: list[str]) -> None:
    (note, _) = physical_of(f"PATTERN SEQ(A a, B b) {clauses}", IMPRECISE).chosen.notes
    assert [branch.label for branch in note.below] == pruned


def test_patterns_that_signatures_cannot_express_are_refused_by_name() -> None:
    with pytest.raises(PlanError, match="does not take skip-till-next-match with more than 8 NOTs") as caught:
        physical_of(MANY_NOTS, IMPRECISE)
    assert caught.value.line == 1
    assert "reference" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("query", "certain"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 5", Certain.LAST),
        ("PATTERN SEQ(A a, B b) SEMANTICS skip-till-next-match WITHIN 5", Certain.LATEST),
        ("PATTERN SEQ(A a, NOT X x, B b) WITHIN 5", Certain.LATEST),
        ("PATTERN SEQ(A a, NOT X x) WITHIN 5", Certain.FIRST),
        ("PATTERN SEQ(A a, NOT X x) WITHIN 5 SLIDE 5", Certain.WINDOW),
    ],
)
def test_when_matches_of_imprecise_time_are_certain(query: str, certain: Certain) -> None:
    emission = physical_of(query, IMPRECISE).kernel.emission
    assert (emission.certain, emission.slack) == (certain, IMPRECISE_LONGEST)
