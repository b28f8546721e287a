"""Predicates: what they quantify over, what is true of nothing, and which events they speak of."""

from __future__ import annotations

import pytest

RISING = "b1(v=1) b2(v=2) b3(v=2) b4(v=1)"


class TestQuantifiers:
    def test_a_bare_variable_means_each_event(self, ask):
        assert ask("PATTERN B b+ WHERE b.v > 1", RISING).trends == ["b2", "b2 b3", "b3"]

    def test_two_mentions_are_the_same_event(self, ask):
        assert len(ask("PATTERN B b+ WHERE b.v = b.v", RISING).trends) == 15

    def test_two_variables_mean_every_pair(self, ask):
        found = ask("PATTERN SEQ(A a+, B b+) WHERE a.v < b.v", "a1(v=1) a2(v=3) b3(v=2) b4(v=4)")
        assert found.trends == ["a1 b3", "a1 a2 b4", "a1 b3 b4", "a1 b4", "a2 b4"]

    def test_next_means_adjacent_events(self, ask):
        query = "PATTERN SEQ(B b+, C c) WHERE b.v <= NEXT(b).v"
        assert "b1 b2 b3 c5" in ask(query, RISING + " c5").trends
        assert "b1 b2 b4 c5" not in ask(query, RISING + " c5").trends

    def test_next_of_another_variable(self, ask):
        query = "PATTERN (SEQ(A a, B b))+ WHERE b.v < NEXT(a).v"
        found = ask(query, "a1(v=9) b2(v=1) a3(v=0) b4(v=0)")
        assert found.trends == ["a1 b2", "a1 b4", "a3 b4"]

    def test_next_alone_means_pairs_of_itself(self, ask):
        assert ask("PATTERN B b+ WHERE NEXT(b).v > 1", "b1(v=0) b2(v=2) b3(v=1)").trends == ["b1", "b1 b2", "b2", "b3"]

    def test_next_of_variables_never_adjacent_is_true(self, ask):
        assert ask("PATTERN SEQ(A a, B, C c) WHERE a.v < NEXT(c).v", "a1(v=9) b2 c3(v=1)").trends == ["a1 b2 c3"]

    def test_current_and_previous(self, ask):
        query = "PATTERN SEQ(B b+, C) WHERE b[i].v >= b[i-1].v"
        trends = ask(query, RISING + " c5").trends
        assert "b1 c5" in trends
        assert "b1 b2 b3 c5" in trends
        assert "b3 b4 c5" not in trends

    def test_previous_reaches_across_rounds(self, ask):
        query = "PATTERN (SEQ(A a, B b))+ WHERE b[i].v > b[i-1].v"
        assert ask(query, "a1 b2(v=2) a3 b4(v=1)").trends == ["a1 b2", "a1 b4", "a3 b4"]

    def test_current_alone_begins_with_the_first(self, ask):
        assert ask("PATTERN B b+ WHERE b[i].v > 1", RISING).trends == ["b2", "b2 b3", "b3"]

    def test_aggregates_of_those_before(self, ask):
        query = "RETURN COUNT(*) PATTERN B b+ WHERE b[i].v > {}(b[..i-1].v)"
        stream = "b1(v=1) b2(v=3) b3(v=2)"
        assert ask(query.format("max"), stream).value == 5
        assert ask(query.format("min"), stream).value == 6
        assert ask(query.format("sum"), stream).value == 5
        assert ask(query.format("count"), stream).value == 6  # all but 1 3 2

    def test_first_last_and_whole(self, ask):
        stream = "b1(v=1) b2(v=3) b3(v=2)"
        assert ask("PATTERN B b+ WHERE b[first].v < b[last].v", stream).trends == ["b1 b2", "b1 b2 b3", "b1 b3"]
        assert ask("PATTERN B b+ WHERE avg(b[].v) = 2 AND count(b[]) > 1", stream).trends == ["b1 b2", "b1 b2 b3"]
        assert ask("PATTERN B b+ WHERE duration(b) = 2", stream).trends == ["b1 b2 b3", "b1 b3"]

    def test_the_whole_is_known_only_at_the_end(self, ask):
        query = "PATTERN (SEQ(A a, B b))+ WHERE b.v = count(a[])"
        assert ask(query, "a1 b2(v=2) a3 b4(v=2)").trends == ["a1 b2 a3 b4"]


class TestTruth:
    def test_unknown_is_not_true(self, ask):
        assert ask("PATTERN A a WHERE a.x > 1", "a1 a2(x=2) a3(x=nan)").trends == ["a2"]
        assert ask("PATTERN A a WHERE NOT a.x > 1", "a1 a2(x=2)").trends == []
        assert ask("PATTERN A a WHERE a.x IS NULL", "a1 a2(x=2) a3(x=nan)").trends == ["a1", "a3"]
        assert ask("PATTERN A a WHERE a.x > 1 OR a.x IS NULL", "a1 a2(x=2)").trends == ["a1", "a2"]

    def test_a_conjunct_with_an_unbound_variable_is_true_as_a_whole(self, ask):
        assert ask("PATTERN SEQ(A a, B b?) WHERE a.x > 5 AND b.x > a.x", "a1(x=9)").trends == ["a1"]
        assert ask("PATTERN SEQ(A a, B b?) WHERE a.x > 10 OR b.x > 5", "a1(x=9)").trends == ["a1"]
        assert ask("PATTERN SEQ(A a, B b?) WHERE count(b[]) = 1", "a1(x=9)").trends == ["a1"]

    def test_a_branch_not_taken_is_not_bound(self, ask):
        query = "PATTERN SEQ(A a, (B b) OR (C c)) WHERE a.x = b.x AND a.x != c.x"
        assert ask(query, "a1(x=1) b2(x=1) b3(x=2) c4(x=1) c5(x=2)").trends == ["a1 b2", "a1 c5"]

    def test_a_conjunct_without_variables(self, ask):
        assert ask("PATTERN A WHERE 1 = 2", "a1").trends == []
        assert ask("PATTERN A WHERE 1 = 1", "a1").trends == ["a1"]


class TestRounds:
    STREAM = "a1(k=1) b2(k=1) a3(k=2) b4(k=2)"

    def test_attached_speaks_of_the_round(self, ask):
        assert "a1 b2 a3 b4" in ask("PATTERN (SEQ(A a, (B b: b.k = a.k)))+", self.STREAM).trends

    def test_where_speaks_of_all(self, ask):
        assert "a1 b2 a3 b4" not in ask("PATTERN (SEQ(A a, B b))+ WHERE b.k = a.k", self.STREAM).trends

    def test_a_copy_of_a_repetition_is_a_round(self, ask):
        assert ask("PATTERN (SEQ(A a, (B b: b.k = a.k))){2}", self.STREAM).trends == ["a1 b2 a3 b4"]
        assert "a1 b2 a3 b4" in ask("PATTERN (SEQ(A a, (B b: b.k = a.k))){1,}", self.STREAM).trends

    def test_inner_rounds(self, ask):
        stream = "a1(k=1) b2(k=1) b3(k=1) a4(k=2) b5(k=2) b6(k=1)"
        trends = ask("PATTERN (SEQ(A a, (B b: b.k = a.k)+))+", stream).trends
        assert "a1 b2 b3 a4 b5" in trends
        assert "a1 b2 a4 b6" not in trends
        assert "a1 b2 b6" in trends

    def test_some_derivation_decides(self, ask):
        query = "PATTERN (SEQ(A a?, (B b: b.k = a.k)+))+"
        trends = ask(query, "a1(k=1) b2(k=1) b3(k=2)").trends
        assert "a1 b3" not in trends
        assert "a1 b2 b3" in trends  # b3 begins a round of its own, without an a

    def test_a_local_predicate_holds_in_every_round(self, ask):
        assert ask("PATTERN ((A a: a.x > 1)+)+", "a1(x=1) a2(x=2) a3(x=3)").trends == ["a2", "a2 a3", "a3"]


class TestInRuns:
    def test_predicates_decide_what_extends(self, ask):
        query = "PATTERN B b+ SEMANTICS skip-till-next-match WHERE b[i].v >= b[i-1].v"
        stream = "b1(v=.1) b2(v=.2) b3(v=.15) b4(v=.19) b5(v=.25)"
        assert "b1 b2 b5" in ask(query, stream).trends
        assert "b1 b2 b3" not in ask(query, stream).trends

    def test_local_predicates_decide_who_starts(self, ask):
        query = "PATTERN SEQ(A a, B) SEMANTICS skip-till-next-match WHERE a.x > 1"
        assert ask(query, "a1(x=1) a2(x=2) b3").trends == ["a2 b3"]

    def test_all_candidates_of_the_earliest_time(self, ask):
        query = "PATTERN SEQ(A, B) SEMANTICS skip-till-next-match"
        assert ask(query, "a1 b2 b2p b3").trends == ["a1 b2", "a1 b2p"]

    def test_positions_are_separate_runs(self, ask):
        found = ask("PATTERN SEQ(A a, B x?, B y) SEMANTICS skip-till-next-match", "a1 b2 b3 b4")
        assert sorted(zip(found.trends, found.variables, strict=True)) == [("a1 b2", "a y"), ("a1 b2 b3", "a x y")]

    def test_a_whole_variable_is_tested_when_another_one_grows(self, ask):
        query = "PATTERN SEQ(B b+, C c) SEMANTICS skip-till-next-match WHERE c.v > avg(b[].v)"
        assert ask(query, "b1(v=4) c2(v=1) c3(v=5)").trends == ["b1 c3"]

    def test_a_whole_variable_is_tested_again_on_the_complete_match(self, ask):
        query = "PATTERN SEQ(A a, B b+) SEMANTICS skip-till-next-match WHERE a.v < b[last].v"
        assert ask(query, "a1(v=2) b2(v=1) b3(v=3)").trends == ["a1 b2 b3"]

    def test_a_whole_variable_never_stops_itself(self, ask):
        query = "PATTERN B b+ SEMANTICS skip-till-next-match WHERE count(b[]) = 2"
        assert ask(query, "b1 b2 b3").trends == ["b1 b2", "b2 b3"]
        query = "PATTERN B b+ SEMANTICS skip-till-next-match WHERE b.v <= b[first].v"
        assert ask(query, "b1(v=1) b2(v=3) b3(v=0)").trends == ["b1", "b2", "b2 b3", "b3"]

    def test_the_span_ends_a_run(self, ask):
        query = "PATTERN SEQ(A, B+) SEMANTICS skip-till-next-match WITHIN 3"
        assert ask(query, "a1 b2 b3 b4").trends == ["a1 b2", "a1 b2 b3"]

    @pytest.mark.parametrize("between", ["x2", "b2(v=0)"])
    def test_contiguous_allows_nothing_between(self, ask, between):
        query = "PATTERN SEQ(A, B b) SEMANTICS contiguous WHERE b.v > 0"
        assert ask(query, f"a1 {between} b3(v=1)").trends == []
        assert ask(query, "a1 b3(v=1) x1 x3").trends == ["a1 b3"]

    def test_contiguous_is_of_the_partition(self, ask):
        query = "PATTERN SEQ(A, B) SEMANTICS contiguous WHERE [k]"
        assert ask(query, "a1(k=1) x2(k=2) x2p b3(k=1)").trends == ["a1 b3"]
