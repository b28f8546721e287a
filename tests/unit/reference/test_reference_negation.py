"""NOT: which events it looks at, what restricts its matches, and when it is decided."""

from __future__ import annotations

import pytest


def test_between_is_strict(ask):
    assert ask("PATTERN SEQ(A, NOT B, C)", "a1 b1 c2 b2").trends == ["a1 c2"]
    assert ask("PATTERN SEQ(A, NOT B, C)", "a1 b2 c3").trends == []


@pytest.mark.parametrize("pattern", ["SEQ(A, NOT B, C)", "SEQ(SEQ(A, NOT B), C)", "SEQ(A, SEQ(NOT B, C))"])
def test_brackets_make_no_difference(ask, pattern):
    assert ask(f"PATTERN {pattern}", "a1 b2 a3 c4 b5").trends == ["a3 c4"]


def test_neighbours_are_those_of_the_whole_match(ask):
    query = "PATTERN SEQ(A, B?, NOT X, C?, D)"
    assert ask(query, "a1 x2 d3").trends == []
    assert ask(query, "a1 x2 b3 d4").trends == ["a1 b3 d4"]
    assert ask(query, "a1 c2 x3 d4").trends == ["a1 c2 d4"]


def test_an_option_not_taken_takes_its_not_with_it(ask):
    assert ask("PATTERN SEQ(A, (SEQ(NOT X, B))?, C)", "a1 x2 b3 c4").trends == ["a1 c4"]


def test_a_match_of_a_sequence_must_lie_between_as_a_whole(ask):
    query = "PATTERN SEQ(A, NOT SEQ(B, C), D)"
    assert ask(query, "a1 b2 c3 d4").trends == []
    assert ask(query, "b0 a1 c2 d3").trends == ["a1 d3"]
    assert ask(query, "a1 b2 d3 c4").trends == ["a1 d3"]


def test_in_a_kleene_part_it_is_checked_in_every_round(ask):
    assert ask("PATTERN (SEQ(A, NOT X, B))+", "a1 b2 a3 x4 b5").trends == ["a1 b2"]
    assert ask("PATTERN (SEQ(A, NOT X))+", "a1 x2 a3").trends == ["a3"]
    assert ask("PATTERN (SEQ(A, NOT X))+", "a1 a2 x3").trends == []
    assert ask("PATTERN (SEQ(NOT X, A))+", "x0 a1 a2").trends == []
    assert ask("PATTERN SEQ((SEQ(A, NOT X))+, B)", "a1 a2 x3 b4").trends == []


def test_some_derivation_is_enough(ask):
    assert ask("PATTERN (OR(A, SEQ(A, NOT X)))+", "a1 x2 a3").trends == ["a1", "a1 a3", "a1 a3", "a3", "a3"]
    assert ask("PATTERN ((SEQ(A+, NOT X))+)", "a1 x2 a3").trends == ["a1 a3", "a3"]


class TestAtTheEnds:
    def test_leading_looks_back_to_the_beginning(self, ask):
        assert ask("PATTERN SEQ(NOT X, A)", "x0 a1").trends == []
        assert ask("PATTERN SEQ(NOT X, A)", "a1 x2").trends == ["a1"]
        assert ask("PATTERN SEQ(NOT X, A)", "x1 a1").trends == ["a1"]

    def test_leading_with_within_looks_back_from_the_last_event(self, ask):
        query = "PATTERN SEQ(NOT X, A, B) WITHIN 5"
        assert ask(query, "x1 a4 b6").trends == ["a4 b6"]
        assert ask(query, "x2 a4 b6").trends == []

    def test_trailing_with_within_looks_ahead_from_the_first_event(self, ask):
        query = "PATTERN SEQ(A, B, NOT X) WITHIN 5"
        assert ask(query, "a1 b2 x5").trends == []
        assert ask(query, "a1 b2 x6").trends == ["a1 b2"]

    def test_windows_hide_what_is_outside(self, ask):
        query = "PATTERN SEQ(A, NOT X) WITHIN 5 SLIDE 5"
        assert ask(query, "a1 x6").trends == ["a1"]
        assert ask(query, "a1 x4").trends == []

    def test_inside_a_not_they_look_at_the_stream_between(self, ask):
        query = "PATTERN SEQ(A, NOT SEQ(NOT X, B), C)"
        assert ask(query, "x0 a1 b2 c3").trends == []
        assert ask(query, "a1 x2 b3 c4").trends == ["a1 c4"]
        query = "PATTERN SEQ(A, NOT SEQ(B, NOT X), C)"
        assert ask(query, "a1 b2 c3 x4").trends == []
        assert ask(query, "a1 b2 x3 c4").trends == ["a1 c4"]


class TestPredicates:
    def test_they_restrict_the_matches_of_the_not(self, ask):
        query = "PATTERN SEQ(A, NOT B b, C) WHERE b.x > 5"
        assert ask(query, "a1 b2(x=6) c3").trends == []
        assert ask(query, "a1 b2(x=5) c3").trends == ["a1 c3"]

    def test_correlated(self, ask):
        query = "PATTERN SEQ(A a, NOT (B b: b.x = a.x AND b.y = c.y), C c)"
        assert ask(query, "a1(x=1) b2(x=1,y=2) c3(y=2)").trends == []
        assert ask(query, "a1(x=1) b2(x=1,y=2) c3(y=3)").trends == ["a1 c3"]
        assert ask(query, "a1(x=0) b2(x=1,y=2) c3(y=2)").trends == ["a1 c3"]

    def test_correlated_with_what_comes_later(self, ask):
        query = "PATTERN SEQ(A a, NOT X x, B b, C c) WHERE x.v = c.v"
        assert ask(query, "a1 x2(v=1) b3 c4(v=2) c5(v=1)").trends == ["a1 b3 c4"]

    def test_null_does_not_make_a_match_of_the_not(self, ask):
        assert ask("PATTERN SEQ(A a, NOT B b, C) WHERE b.x = a.x", "a1 b2 c3 c9(x=1)").trends[0] == "a1 c3"

    def test_an_outer_variable_that_is_not_bound_makes_the_conjunct_true(self, ask):
        query = "PATTERN SEQ(A, D d?, NOT B b, C) WHERE b.x = d.x"
        assert ask(query, "a1 b2(x=1) c3").trends == []
        assert ask(query, "a1 d2(x=2) b3(x=1) c4").trends == ["a1 d2 c4"]

    def test_a_kleene_variable_outside_means_each_of_its_events(self, ask):
        query = "PATTERN SEQ(A a+, NOT B b, C) WHERE b.x = a.x"
        assert ask(query, "a1(x=1) a2(x=2) b3(x=1) c4").trends == ["a1 a2 c4", "a2 c4"]

    def test_nested_not_may_use_all_variables_around_it(self, ask):
        query = "PATTERN SEQ(A a, NOT SEQ(B b, NOT (X x: x.v = a.v AND x.v = b.v), C), D)"
        assert ask(query, "a1(v=1) b2(v=1) x3(v=1) c4 d5").trends == ["a1 d5"]
        assert ask(query, "a1(v=1) b2(v=2) x3(v=1) c4 d5").trends == []

    def test_attached_in_a_kleene_part_speaks_of_its_round(self, ask):
        query = "PATTERN (SEQ(A a, NOT (X x: x.v = a.v), B b))+"
        events = "a1(v=1) b2 a3(v=2) x4(v=1) b5"
        assert "a1 b2 a3 b5" in ask(query, events).trends
        everywhere = ask("PATTERN (SEQ(A a, NOT X x, B b))+ WHERE x.v = a.v", events.replace("x4(v=1)", "x4(v=2)"))
        assert "a1 b2 a3 b5" in everywhere.trends  # x must equal each a: v=1 and v=2 at once

    def test_trailing_in_a_round_belongs_to_it(self, ask):
        query = "PATTERN (SEQ(A a, NOT (X x: x.v = a.v)))+"
        assert "a1 a3" in ask(query, "a1(v=1) x2(v=2) a3(v=2)").trends
        assert "a1 a3" not in ask(query, "a1(v=2) x2(v=2) a3(v=1)").trends
        query = "PATTERN (SEQ(NOT (X x: x.v = a.v), A a))+"
        assert "a1 a3" not in ask(query, "a1(v=1) x2(v=2) a3(v=2)").trends
        assert "a1 a3" in ask(query, "a1(v=2) x2(v=2) a3(v=1)").trends


class TestInRuns:
    def test_a_violated_not_makes_no_extension(self, ask):
        query = "PATTERN SEQ(A a, NOT X x, B b) SEMANTICS skip-till-next-match"
        assert ask(query, "a1 x2 b3").trends == []
        assert ask(query + " WHERE x.v = b.v", "a1 x2(v=1) b3(v=1) b4(v=2)").trends == ["a1 b4"]

    def test_it_waits_for_its_outer_variables(self, ask):
        query = "PATTERN SEQ(A a, NOT X x, B b, C c) SEMANTICS skip-till-next-match WHERE x.v = c.v"
        assert ask(query, "a1 x2(v=1) b3 c4(v=1) c5(v=2)").trends == ["a1 b3 c5"]

    def test_it_is_decided_at_the_end_if_they_stay_unbound(self, ask):
        query = "PATTERN SEQ(A a, NOT X x, B b, (C c)?) SEMANTICS skip-till-next-match WHERE x.v = c.v"
        assert ask(query, "a1 x2(v=1) b3 c4(v=2)").trends == ["a1 b3 c4"]
        assert ask(query, "a1 b3 c4(v=2)").trends == ["a1 b3", "a1 b3 c4"]

    def test_in_a_round_it_waits_for_the_variables_of_that_round(self, ask):
        query = "PATTERN (SEQ(A a, NOT (X x: x.v = c.v), B b, C c))+ SEMANTICS skip-till-next-match"
        found = ask(query, "a1 b2 c3(v=1) a4 x5(v=1) b6 c7(v=2)").trends
        assert "a1 b2 c3 a4 b6 c7" in found

    def test_in_a_round_it_is_tested_when_they_are_bound(self, ask):
        query = "PATTERN (SEQ(A a, NOT (X x: x.v = b.v), B b))+ SEMANTICS skip-till-next-match"
        assert ask(query, "a1 x2(v=1) b3(v=1) b4(v=2)").trends == ["a1 b4"]

    def test_at_the_ends_it_is_decided_on_each_complete_match(self, ask):
        query = "PATTERN SEQ(A+, NOT X) SEMANTICS skip-till-next-match"
        assert ask(query, "a1 x2 a3").trends == ["a1 a3", "a3"]
        query = "PATTERN SEQ(NOT X x, A a, B b+) SEMANTICS skip-till-next-match WHERE x.v = b.v"
        assert ask(query, "x0(v=1) a1 b2(v=1) b3(v=2)").trends == ["a1 b2 b3"]
