"""Bindings under skip-till-any-match: every pattern form, and that a binding counts once."""

from __future__ import annotations

import pytest

GRETA = "a1 b2 c2 a3 e3 a4 c5 d6 b7 a8 b9"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("A+", 15),
        ("SEQ(A+, B)", 23),
        ("(SEQ(A+, B))+", 43),
        ("(SEQ(A+, NOT SEQ(C, NOT E, D), B))+", 13),
        ("SEQ(A+, NOT E)", 14),
        ("SEQ(NOT E, A+)", 12),
        ("(A+)+", 15),
        ("(A?)+", 15),
        ("(A*)*", 15),
        ("A{2}", 6),
        ("A{0,2}", 10),
        ("A{3,}", 5),
    ],
)
def test_counts_on_the_running_example(ask, pattern, matches):
    assert ask(f"RETURN COUNT(*) PATTERN {pattern}", GRETA).value == matches


@pytest.mark.parametrize(("semantics", "matches"), [("any", 43), ("next", 8), ("contiguous", 2)])
def test_three_semantics(ask, semantics, matches):
    name = semantics if semantics == "contiguous" else f"skip-till-{semantics}-match"
    query = f"RETURN COUNT(*) PATTERN (SEQ(A+, B))+ SEMANTICS {name}"
    assert ask(query, "a1 b2 a3 a4 c5 b6 a7 b8").value == matches


def test_events_of_one_time_are_never_in_sequence(ask):
    assert ask("PATTERN SEQ(A, B)", "a1 b1 b2").trends == ["a1 b2"]
    assert ask("PATTERN A+", "a1 a1p").trends == ["a1", "a1p"]


def test_the_order_of_rows_means_nothing(ask):
    assert ask("PATTERN SEQ(A, B, C)", "c9 b5 a1 b3").trends == ["a1 b3 c9", "a1 b5 c9"]


def test_positions_distinguish_matches_but_derivations_do_not(ask):
    assert ask("PATTERN SEQ(A+, A+)", "a1 a2 a3").trends == ["a1 a2", "a1 a2 a3", "a1 a2 a3", "a1 a3", "a2 a3"]
    assert ask("PATTERN (OR(A, SEQ(A, A)))+", "a1 a2").trends == ["a1", "a1 a2", "a1 a2", "a2"]


def test_choice_and_option(ask):
    assert ask("PATTERN SEQ(A, B OR C, D?)", "a1 c2 d3").trends == ["a1 c2", "a1 c2 d3"]
    assert ask("PATTERN SEQ(A?, B?)", "a1 b2").trends == ["a1", "a1 b2", "b2"]


class TestConjunction:
    def test_parts_interleave(self, ask):
        assert ask("RETURN COUNT(*) PATTERN AND(SEQ(A, B), SEQ(C, D))", "a1 c2 b3 d4 d5").value == 2

    def test_times_may_be_equal_between_parts_only(self, ask):
        assert ask("PATTERN AND(A, B)", "a1 b1").trends == ["a1 b1"]
        assert ask("PATTERN SEQ(AND(A, B), C)", "a1 b1 c1").trends == []
        assert ask("PATTERN SEQ(AND(A, B), C)", "a1 b2 c2 c3").trends == ["a1 b2 c3"]
        assert ask("PATTERN AND(SEQ(A, B), C)", "a1 b1 c1").trends == []
        assert ask("PATTERN AND(AND(A, B), C)", "a1 b1 c1").trends == ["a1 b1 c1"]
        assert ask("PATTERN SEQ(X, AND(A, B))", "x1 a1 b2").trends == []

    def test_an_event_is_in_one_part_only(self, ask):
        assert ask("PATTERN AND(A x, A y)", "a1").trends == []
        found = ask("PATTERN AND(A x, A y)", "a1 a2")
        assert sorted(found.variables) == ["x y", "y x"]

    def test_one_part_may_be_nothing_but_not_all(self, ask):
        assert ask("PATTERN SEQ(AND(A?, B?), C)", "a1 c2").trends == ["a1 c2"]
        assert ask("PATTERN SEQ(AND(A?, B?), C)", "c2").trends == []

    def test_rounds_of_an_and_are_in_sequence(self, ask):
        assert ask("PATTERN (AND(A, B))+", "a1 b1 a2 b2").trends == [
            "a1 b1", "a1 b1 a2 b2", "a1 b2", "b1 a2", "a2 b2",
        ]  # fmt: skip

    def test_next_skips_ties(self, ask):
        events = "a1(x=1) b2(x=2) c2(x=0) d3(x=5)"
        assert ask("PATTERN SEQ(A a, AND(B b, C c), D d) WHERE a.x < NEXT(b).x", events).trends == ["a1 b2 c2 d3"]
        assert ask("PATTERN SEQ(A a, AND(B b, C c), D d) WHERE a.x < NEXT(c).x", events).trends == []
        assert ask("PATTERN SEQ(A a, AND(B b, C c), D d) WHERE b.x > NEXT(d).x", events).trends == []
        assert ask("PATTERN SEQ(A a, AND(B b, C c), D d) WHERE b.x < NEXT(c).x", events).trends == ["a1 b2 c2 d3"]

    def test_not_looks_at_its_own_part(self, ask):
        query = "PATTERN AND(SEQ(A, NOT X, B), C)"
        assert ask(query, "a1 x2 b3 c4").trends == []
        assert ask(query, "a1 c2 x3 b4").trends == []
        assert ask(query, "c1 x2 a3 b4").trends == ["c1 a3 b4"]
        assert ask(query, "a1 b2 x3 c4").trends == ["a1 b2 c4"]

    def test_not_around_an_and_looks_at_all_of_it(self, ask):
        assert ask("PATTERN SEQ(AND(A, B), NOT X, C)", "a1 x2 b3 c4").trends == ["a1 b3 c4"]
        assert ask("PATTERN SEQ(AND(A, B), NOT X, C)", "a1 b3 x4 c5").trends == []
        assert ask("PATTERN SEQ(C, NOT X, AND(A, B))", "c1 a2 x3 b4").trends == ["c1 a2 b4"]
        assert ask("PATTERN SEQ(C, NOT X, AND(A, B))", "c1 x2 a3 b4").trends == []


def test_exists_leaves_its_events_out(ask):
    found = ask("PATTERN SEQ(A, EXISTS b (B b), C)", "a1 b2 b3 c4")
    assert found.trends == ["a1 c4"]
    assert ask("RETURN COUNT(*), COUNT(A) PATTERN SEQ(A, EXISTS b (B b), C)", "a1 b2 b3 c4").values == [(1, 1)]
    assert ask("PATTERN EXISTS b (B b)", "b2").trends == []
    assert ask("PATTERN SEQ(EXISTS b (B b)?, A)", "b1 a2").trends == ["a2"]
