"""Columns that order events of equal time: before, between, earliest and adjacent, by hand.

In `a1(s=1) b1(s=2)` both events have time 1, and with `s` for an order the A is before the B.
"""

from __future__ import annotations

import pytest

SEQ = ("s",)


def test_one_event_is_before_the_other(ask):
    stream = "a1(s=2) b1(s=1) b1q(s=3)"
    assert ask("PATTERN SEQ(A, B)", stream).trends == []
    assert ask("PATTERN SEQ(A, B)", stream, order=SEQ).trends == ["a1 b1q"]


def test_ties_that_the_order_leaves_stay_ties(ask):
    stream = "a1(s=1) a1q(s=1) b1(s=1) b1q(s=2)"
    assert ask("PATTERN SEQ(A+, B)", stream, order=SEQ).trends == ["a1 b1q", "a1q b1q"]


def test_null_comes_first(ask):
    stream = "a1(s=None) b1(s=-5) a1q(s=-6)"
    assert ask("PATTERN SEQ(A+, B)", stream, order=SEQ).trends == ["a1 a1q b1", "a1 b1", "a1q b1"]


def test_the_second_column_decides_where_the_first_does_not(ask):
    stream = "a1(s=1,t='b') b1(s=1,t='a') b1q(s=1,t='c') b1r(s=0,t='z')"
    assert ask("PATTERN SEQ(A, B)", stream, order=("s", "t")).trends == ["a1 b1q"]
    assert ask("PATTERN SEQ(A, B)", stream, order=("t",)).trends == ["a1 b1q", "a1 b1r"]


def test_the_time_comes_first(ask):
    assert ask("PATTERN SEQ(A, B)", "a2(s=1) b1(s=2) b3(s=0)", order=SEQ).trends == ["a2 b3"]


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        ("a1(s=1) c1(s=2) b1(s=3)", []),
        ("a1(s=1) c1(s=1) b1(s=3)", ["a1 b1"]),
        ("a1(s=1) c1(s=3) b1(s=3)", ["a1 b1"]),
        ("a1(s=2) c1(s=1) b1(s=3)", ["a1 b1"]),
        ("a1(s=9) c2(s=0) b2(s=1)", []),
    ],
)
def test_not_looks_strictly_between(ask, stream, found):
    assert ask("PATTERN SEQ(A, NOT C, B)", stream, order=SEQ).trends == found


def test_leading_and_trailing_not(ask):
    stream = "c1(s=1) a1(s=2) c1q(s=3)"
    assert ask("PATTERN SEQ(NOT C, A)", stream, order=SEQ).trends == []
    assert ask("PATTERN SEQ(NOT C, A)", stream.replace("c1(s=1) ", ""), order=SEQ).trends == ["a1"]
    assert ask("PATTERN SEQ(A, NOT C)", stream, order=SEQ).trends == []
    assert ask("PATTERN SEQ(A, NOT C)", stream.replace(" c1q(s=3)", ""), order=SEQ).trends == ["a1"]


def test_a_leading_not_looks_back_by_time_alone(ask):
    """The span ends at last − 2: the C of time 1 is out of reach, whatever its place among events of that time."""
    assert ask("PATTERN SEQ(NOT C, A a) WITHIN 2", "c1(s=9) a3(s=1)", order=SEQ).trends == ["a3"]
    assert ask("PATTERN SEQ(NOT C, A a) WITHIN 2", "c2(s=9) a3(s=1)", order=SEQ).trends == []
    assert ask("PATTERN SEQ(A a, NOT C) WITHIN 2", "a1(s=9) c3(s=1)", order=SEQ).trends == ["a1"]
    assert ask("PATTERN SEQ(A a, NOT C) WITHIN 2", "a1(s=9) c2(s=1)", order=SEQ).trends == []


def test_a_span_is_one_of_times(ask):
    """From s = 9 at time 1 to s = 0 at time 3 are two units of time, no less."""
    assert ask("PATTERN SEQ(A, B) WITHIN 2", "a1(s=9) b3(s=0)", order=SEQ).trends == []
    assert ask("PATTERN SEQ(A, B) WITHIN 3", "a1(s=0) b3(s=9)", order=SEQ).trends == ["a1 b3"]


def test_windows_are_those_of_times(ask):
    stream = "a1(s=1) b1(s=2) a2(s=1) b2(s=2)"
    found = ask("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1", stream, order=SEQ)
    assert [(row.window, row.values) for row in found.rows] == [((1, 2), (1,)), ((2, 3), (1,))]


@pytest.mark.parametrize(
    ("semantics", "found"),
    [
        ("skip-till-any-match", ["a1 b1", "a1 b1q", "a1 b2"]),
        ("skip-till-next-match", ["a1 b1"]),
        ("contiguous", []),
    ],
)
def test_the_earliest_is_the_first_in_the_order(ask, semantics, found):
    stream = "b2(s=1) b1q(s=4) b1(s=3) c1(s=2) a1(s=1)"
    assert ask(f"PATTERN SEQ(A, B) SEMANTICS {semantics}", stream, order=SEQ).trends == found


def test_contiguous_events_of_one_time(ask):
    stream = "a1(s=1) a1q(s=2) b1(s=3) a1r(s=4)"
    query = "PATTERN SEQ(A+, B) SEMANTICS contiguous"
    assert ask(query, stream).trends == []
    assert ask(query, stream, order=SEQ).trends == ["a1 a1q b1", "a1q b1"]


def test_all_candidates_of_the_earliest_instant_extend_a_run(ask):
    stream = "a1(s=1) b1(s=2) b1q(s=2) b1r(s=3)"
    assert ask("PATTERN SEQ(A, B) SEMANTICS skip-till-next-match", stream, order=SEQ).trends == ["a1 b1", "a1 b1q"]


def test_next_and_the_event_before_are_neighbours_in_the_order(ask):
    stream = "a1(s=1,v=1) a1q(s=2,v=5) a1r(s=3,v=3)"
    rising = ["a1", "a1 a1q", "a1 a1r", "a1q", "a1r"]
    assert sorted(ask("PATTERN A a+ WHERE a.v < NEXT(a).v", stream, order=SEQ).trends) == rising
    assert sorted(ask("PATTERN A+ a[] WHERE a[i].v > a[i-1].v", stream, order=SEQ).trends) == rising


def test_parts_of_an_and_with_an_order_between_them(ask):
    """Both are neighbours now, one after the other, where without an order neither is before the other."""
    stream = "a1(s=2,v=1) b1(s=1,v=2)"
    query = "PATTERN AND(A a, B b) WHERE b.v < NEXT(a).v"
    assert ask(query, stream).trends == ["a1 b1"]
    assert ask(query, stream, order=SEQ).trends == []
    assert ask("PATTERN AND(A a, B b)", stream, order=SEQ).trends == ["b1 a1"]


def test_durations_look_at_the_time(ask):
    stream = "a1(s=1) a1q(s=5) a2(s=0)"
    found = ask("RETURN count(a[]), duration(a) PATTERN A a{2,}", stream, order=SEQ)
    assert found.values == [(2, 0), (3, 1), (2, 1), (2, 1)]


def test_complete_and_collapsed_trends(ask):
    stream = "a1(s=1) a1q(s=2) b1(s=3)"
    assert ask("RETURN COMPLETE TRENDS PATTERN SEQ(A+, B)", stream, order=SEQ).trends == ["a1 a1q b1"]
    collapsed = ask("RETURN COLLAPSED TRENDS PATTERN SEQ(A+, B)", stream, order=SEQ)
    assert (collapsed.trends, [row.matches for row in collapsed.rows]) == (["a1 a1q b1"], [3])


def test_rows_and_equal_scores_follow_the_order(ask):
    stream = "a1(s=3,v=1) a1q(s=1,v=1) a1r(s=2,v=1)"
    assert ask("PATTERN A a", stream, order=SEQ).trends == ["a1q", "a1r", "a1"]
    assert ask("PATTERN A a RANK BY a.v DESC LIMIT 2", stream, order=SEQ).trends == ["a1q", "a1r"]


def test_partitions_have_orders_of_their_own(ask):
    stream = "a1(s=1,k=1) b1(s=2,k=2) b1q(s=2,k=1)"
    assert ask("PATTERN SEQ(A, B) WHERE [k]", stream, order=SEQ).trends == ["a1 b1q"]
