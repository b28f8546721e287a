"""The optimized and physical half of EXPLAIN, word by word: a plan that changes shows here."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import dedent

import pytest
from tests.unit.explained_schema import SCHEMA

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.display import Branch, draw
from trendloom.logical.plan import Plan
from trendloom.model.imprecision import Imprecision
from trendloom.optimizer import COSTED_RULES, RULES, optimize
from trendloom.optimizer.display import describe_optimized
from trendloom.planner.display import describe_definitions, describe_physical, numbered, scanned
from trendloom.planner.plan import Physical


def plan(text: str) -> Plan:
    return bind(parse_query(text), SCHEMA)


def optimized(text: str) -> str:
    return "\n".join(draw(describe_optimized(plan(text))))


def physical(text: str) -> str:
    return "\n".join(draw(describe_physical(optimize(plan(text)), describe_toy_execution)))


def describe_toy_execution(physical: Physical) -> tuple[Branch, ...]:
    return (numbered("execution", "engine toy", [f"read {scanned(physical.plan)}", "run"]),)


# --------------------------------------------------------------------------------------------- optimized


def test_every_rule_says_what_it_changed() -> None:
    *lines, idle = optimized(
        "RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE [user] AND a.x > 1 AND a.x < b.x"
    ).splitlines()
    assert "\n".join(lines) == dedent("""\
        Optimized plan
        ├─ push_predicates_to_positions
        │  └─ 0 A a must pass  a.x > 1
        ├─ push_predicates_in
        │  └─ a.x < b.x  decided at b
        ├─ scan_pattern_types
        │  └─ reads only events of type  A, B
        ├─ scan_needed_columns
        │  ├─ reads only columns  time, type, user, x
        │  └─ leaves out          y""")
    assert idle.startswith("└─ no change by  rewrite_running_extremes, ")


def test_rules_that_changed_nothing_are_named() -> None:
    every = ", ".join(rule.__name__ for rule in (*RULES, *COSTED_RULES))
    assert optimized("PATTERN A a SEMANTICS contiguous") == f"Optimized plan\n└─ no change by  {every}"


def test_a_rewritten_condition_is_shown_with_what_it_was() -> None:
    lines = optimized("PATTERN A a+ WHERE max(a[..i-1].x) < a[i].x AND a[i].y < a[i-1].y").splitlines()
    assert lines[1:3] == [
        "├─ rewrite_running_extremes",
        "│  └─ max(a[..i-1].x) < a[i].x  rewritten as a[i-1].x < a[i].x",
    ]


def test_what_keeps_events_apart_and_a_rewritten_pattern_are_shown() -> None:
    shown = optimized("PATTERN SEQ(A a, SEQ(B b+)) WHERE a.user = b.user AND count(b[]) >= 2")
    assert (
        dedent("""\
        ├─ flatten_sequences
        │  └─ rewrites the pattern
        │     └─ SEQ
        │        ├─ 0  A a
        │        └─ one or more
        │           └─ 1  B b
        ├─ count_in_pattern
        │  ├─ dropped  count(b[]) >= 2
        │  └─ rewrites the pattern
        │     └─ SEQ
        │        ├─ 0  A a
        │        ├─ once
        │        │  └─ 1  B b
        │        └─ one or more
        │           └─ 2  B b
        ├─ split_by_equality
        │  ├─ split by user  every event of a match has the same user
        │  └─ dropped        a.user = b.user
        """)
        in shown
    )


# ---------------------------------------------------------------------------------------------- physical


def predicates(text: str) -> dict[str, str]:
    lines = physical(text).splitlines()
    begin = lines.index("├─ predicates") + 1
    shown = [re.split("  +", line[6:]) for line in lines[begin : begin + text.count(" AND ") + 1]]
    return dict(shown)


def test_predicates_with_their_classes_and_places() -> None:
    walked = "inconsistent: looked up in shared matching, walked by in result construction"
    assert predicates("PATTERN SEQ(A a, B b+, C c) WHERE b.x > 1 AND b[i].x >= b[i-1].x AND a.y != NEXT(b).y") == {
        "b.x > 1": "true- and false-value consistent: decides which events fit, before matching",
        "b[i].x >= b[i-1].x": walked,
        "a.y != NEXT(b).y": walked,
    }
    on_the_fly = "decides when a partial match binds b"
    assert predicates("PATTERN SEQ(A a, B b+) WHERE b[i].x < max(b[..i-1].x) AND count(b[].x) > 2 AND a.x < b.x") == {
        "b[i].x < max(b[..i-1].x)": f"false-value consistent: discards events before matching, then {on_the_fly}",
        "count(b[].x) > 2": "false-value consistent: postponed to the complete match",
        "a.x < b.x": f"true- and false-value consistent: {on_the_fly}",
    }
    bound = "inconsistent: a bound in shared matching, for a step has two; decides in result construction"
    assert predicates("PATTERN A a+ WHERE a.x < NEXT(a).x AND a.y < NEXT(a).y") == dict.fromkeys(
        ["a.x < NEXT(a).x", "a.y < NEXT(a).y"], bound
    )


def test_classes_are_about_skip_till_any_match() -> None:
    assert "predicates" not in physical("PATTERN A a+ SEMANTICS skip-till-next-match WHERE a.x < NEXT(a).x")


def test_aggregates_with_a_comparison_of_neighbours() -> None:
    text = """RETURN user, MAX(m.x) PATTERN M m+ SEMANTICS contiguous
              WHERE m.x < NEXT(m).x AND m.y > 0.5 GROUP BY user WITHIN 1 h"""
    assert physical(text) == dedent("""\
        Physical plan
        ├─ algorithm  pattern-grained: add up all runs that wait at a position, without following one
        ├─ why        a predicate relates adjacent events: runs that wait at an event go to its successor
        ├─ cost       O(events)
        ├─ template
        │  ├─ positions
        │  │  └─ 0 M m  where m.y > 0.5
        │  ├─ first  0:m
        │  ├─ last   0:m
        │  ├─ follow
        │  │  └─ 0:m  → 0:m
        │  ├─ least  1 event in a match
        │  └─ conditions
        │     └─ m.x < NEXT(m).x  adjacent events of m and m
        ├─ result     one step: aggregates per group and window
        └─ execution  engine toy
           ├─ 1.  read all 5 columns, events of every type
           └─ 2.  run""")


def test_nots_stand_on_transitions_and_have_templates_of_their_own() -> None:
    assert physical("PATTERN SEQ(A a, NOT SEQ(N n, M m), B b+, NOT D) WHERE n.x = a.x") == dedent("""\
        Physical plan
        ├─ algorithm  expansion: extend partial matches, many at a time
        ├─ why        skip-till-any-match, but a leading or trailing NOT is decided on each complete match
        ├─ cost       O(partial matches that can still be completed), in bounded memory
        ├─ template
        │  ├─ positions
        │  │  ├─ 0 A a
        │  │  └─ 3 B b
        │  ├─ first  0:a
        │  ├─ last   3:b (NOT 2)
        │  ├─ follow
        │  │  ├─ 0:a  → 3:b (NOT 1)
        │  │  └─ 3:b  → 3:b
        │  └─ least  2 events in a match
        ├─ NOT 1      uses a of the match around it: searched in the gap of each match
        │  ├─ positions
        │  │  ├─ 1 N n
        │  │  └─ 2 M m
        │  ├─ first  1:n
        │  ├─ last   2:m
        │  ├─ follow
        │  │  └─ 1:n  → 2:m
        │  ├─ least  2 events in a match
        │  └─ conditions
        │     └─ n.x = a.x  matches of NOT 1: every event of a and n
        ├─ NOT 2      one threshold per event: only the latest start of its matches counts
        │  ├─ positions
        │  │  └─ 4 D
        │  ├─ first   4:D
        │  ├─ last    4:D
        │  ├─ follow  nothing: a match is one event
        │  └─ least   1 event in a match
        ├─ result     matches as they are found, sorted where they fit in memory
        └─ execution  engine toy
           ├─ 1.  read all 5 columns, events of 5 types
           └─ 2.  run""")


def test_each_transition_names_the_nots_it_crosses() -> None:
    shown = physical("PATTERN SEQ(A a, SEQ(NOT N n, B b?), OR(SEQ(NOT M m, D d?), E e), C c)")
    assert "0:a  → 2:b (NOT 1), 4:d (NOT 1 and NOT 2), 5:e (NOT 1), 6:c (NOT 1 and NOT 2)" in shown
    assert "2:b  → 4:d (NOT 2), 5:e, 6:c (NOT 2)" in shown


def test_a_not_may_lie_on_some_ways_of_a_transition_only() -> None:
    shown = physical("PATTERN SEQ(A a, (SEQ(NOT N n, B b?, C c?))+)")
    assert "2:b  → 2:b (NOT 1), 3:c (NOT 1 on some ways)" in shown


def test_and_needs_more_states_than_positions() -> None:
    shown = physical("PATTERN AND(SEQ(A a, NOT N n, B b, D d), C c)")
    assert "states  10: AND keeps track of each of its parts" in shown
    assert "4:c  → 0:a, 2:b (NOT 1), 3:d" in shown


def test_complete_trends_of_one_variable_come_from_the_graph() -> None:
    shown = physical("RETURN COMPLETE TRENDS PATTERN A a+")
    assert "trend graph (CET)" in shown
    assert "by graphlets whose trends are stored (H-CET)" in shown


def test_other_complete_trends_are_filtered_afterwards() -> None:
    shown = physical("RETURN COMPLETE TRENDS PATTERN SEQ(A a+, B b)")
    assert "drop those that another one contains" in shown
    assert "not by trend graph  the pattern is more than one variable with +" in shown


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "PATTERN EXISTS x (SEQ(A a, X x, B b))",
            "x: found like all others, then left out of matches",
        ),
        ("RETURN COUNT(*) PATTERN EXISTS x (SEQ(A a, X x, B b))", "x: one event at its place is enough"),
        ("RETURN COMPLETE TRENDS PATTERN EXISTS x (SEQ(A+ a[], X x))", "not by trend graph  EXISTS hides events"),
        ("RETURN COLLAPSED TRENDS PATTERN EXISTS x (SEQ(A+ a[], X x))", "not by spines  EXISTS hides events"),
    ],
)
def test_what_becomes_of_hidden_events(query: str, told: str) -> None:
    assert told in physical(query)


# ------------------------------------------------------------------------------- the reference, refusals


def test_the_reference_engine_executes_the_definitions() -> None:
    shown = "\n".join(draw(describe_definitions(optimize(plan("PATTERN SEQ(A a, B b) RANK BY a.x LIMIT 2")))))
    assert "the definitions, executed" in shown
    assert "refused" not in shown


def test_a_refusal_is_shown_with_the_template() -> None:
    nots = ", ".join(f"NOT B n{number}, A a{number}" for number in range(9))
    query = parse_query(f"PATTERN SEQ(A a, {nots}) SEMANTICS skip-till-next-match")
    imprecise = bind(query, replace(SCHEMA, imprecision=Imprecision("time", "time")))
    lines = draw(describe_physical(optimize(imprecise), describe_toy_execution))
    assert lines[1].startswith("├─ refused  with imprecise time the search does not take skip-till-next-match")
    assert lines[2].startswith("├─ hint     ")
    assert "├─ template" in lines


def test_a_not_of_imprecise_times_has_rivals() -> None:
    query = parse_query("PATTERN SEQ(A a, NOT B b, A c, NOT B d)")
    imprecise = bind(query, replace(SCHEMA, imprecision=Imprecision("time", "time")))
    shown = [
        line
        for line in draw(describe_physical(optimize(imprecise), describe_toy_execution))
        if line.startswith("├─ NOT")
    ]
    assert len(shown) == 2
    assert all("its events are rivals" in line for line in shown)


# ---------------------------------------------------------------------------------------------- rankings


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "PATTERN SEQ(A a, B b) WHERE [user] RANK BY a.x + b.x LIMIT 2 WITHIN 1 h SLIDE 1 h",
            ["the best 2 of each window and partition: best first"],
        ),
        ("PATTERN SEQ(A a, B b) WHERE [user] RANK BY a.x LIMIT 2 OVERALL", ["the best 2 of the stream: best first"]),
        (
            "PATTERN SEQ(A a, B b) RANK BY abs(a.x - b.x) LIMIT 2",
            ["the best 2 of the stream: every match is made", "not by best paths      the score is not a sum"],
        ),
    ],
)
def test_how_the_best_are_found_and_why(query: str, told: list[str]) -> None:
    shown = physical(query)
    assert "├─ ranking" in shown
    assert all(part in shown for part in told)
