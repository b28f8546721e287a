"""The logical half of EXPLAIN, word by word: what people read there is part of the product."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from textwrap import dedent

import pytest
from tests.unit.explained_schema import SCHEMA

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.display import MOST_BRANCHES, Branch, describe_logical, draw, show_duration, show_expression
from trendloom.model.imprecision import Imprecision
from trendloom.model.time import TimeAxis


def logical(text: str) -> str:
    return "\n".join(draw(describe_logical(bind(parse_query(text), SCHEMA))))


def line_of(text: str, label: str) -> str:
    """What the logical plan says of one clause."""
    return next(line for line in logical(text).splitlines() if line[3:].startswith(label))[3 + len(label) :].strip()


def test_a_query_with_everything() -> None:
    shown = logical("""
        RETURN user, COUNT(*), AVG(b.y) AS mean
        PATTERN SEQ(A a, NOT SEQ(N n, M m?), (B b)+, OR(C, D{2})*)
        SEMANTICS skip-till-next-match
        WHERE [user] AND a.x > 1 AND b[i].y >= b[i-1].y AND n.x = a.x AND b.y < NEXT(b).y AND count(b[]) > 2
        GROUP BY user HAVING COUNT(*) > 5 WITHIN 1 hour SLIDE 10 min""")
    assert shown == dedent("""\
        Logical plan
        ├─ output     one row per window and user: aggregates over all matches
        │  ├─ COUNT(*)  integer
        │  ├─ mean      number
        │  └─ having    COUNT(*) > 5
        ├─ window     [k · 10 min, k · 10 min + 1 h) for every whole k: an event is in up to 6 windows
        ├─ partition  user
        ├─ semantics  skip-till-next-match: the next event that fits comes next
        ├─ pattern
        │  └─ SEQ
        │     ├─ 0  A a
        │     ├─ NOT 1
        │     │  └─ SEQ
        │     │     ├─ 1  N n
        │     │     └─ optional
        │     │        └─ 2  M m
        │     ├─ one or more
        │     │  └─ 3  B b
        │     └─ optional
        │        └─ one or more
        │           └─ OR
        │              ├─ 4  C
        │              └─ SEQ
        │                 ├─ once
        │                 │  └─ 5  D
        │                 └─ once
        │                    └─ 6  D
        ├─ conditions
        │  ├─ a.x > 1             every event of a
        │  ├─ b[i].y >= b[i-1].y  every event of b from the second on, with the one before it
        │  ├─ n.x = a.x           matches of NOT 1: every event of a and n
        │  ├─ b.y < NEXT(b).y     adjacent events of b and b
        │  └─ count(b[]) > 2      b as a whole
        └─ scan       every column, events of every type""")


@pytest.mark.parametrize(
    ("clause", "shown"),
    [
        ("", "the whole stream"),
        ("WITHIN 90 s", "last minus first time of a match < 90 s"),
        ("WITHIN 1 h SLIDE 1 h", "[k · 1 h, (k + 1) · 1 h) for every whole k: tumbling"),
        ("WITHIN 1 min SLIDE 1 h", "[k · 1 h, k · 1 h + 1 min) for every whole k: an event is in one window or none"),
    ],
)
def test_windows(clause: str, shown: str) -> None:
    assert line_of(f"PATTERN A {clause}", "window") == shown


def test_a_bare_within_tumbles_for_aggregates() -> None:
    assert line_of("RETURN COUNT(*) PATTERN A WITHIN 1 d", "window").endswith("tumbling")


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ("PATTERN A", "none: all events together"),
        ("PATTERN A WHERE [user, x]", "user, x"),
        ("RETURN COUNT(*) PATTERN A WHERE [user]", "user; one result for all"),
        ("RETURN COUNT(*) PATTERN A WHERE [user] GROUP BY x", "user, x; results per x"),
    ],
)
def test_partitions(clauses: str, shown: str) -> None:
    assert line_of(clauses, "partition") == shown


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ("PATTERN A", "one row per match: its events in time order"),
        ("RETURN COMPLETE TRENDS PATTERN A", "one row per match: only matches that no other match contains"),
        ("PATTERN SEQ(A, EXISTS b (B b))", "one row per match: its events in time order; without b (EXISTS)"),
        ("RETURN a.x PATTERN A a", "one row per match: values of the match"),
        ("RETURN a.x PATTERN EXISTS b (SEQ(A a, B b))", "one row per match: values of the match; without b (EXISTS)"),
        (
            "RETURN COUNT(*) PATTERN EXISTS b (SEQ(A a, B b))",
            "one row: aggregates over all matches; without b (EXISTS)",
        ),
        ("RETURN COUNT(*) PATTERN A", "one row: aggregates over all matches"),
    ],
)
def test_outputs(clauses: str, shown: str) -> None:
    assert line_of(clauses, "output") == shown


def test_rankings() -> None:
    assert (
        line_of("PATTERN AND(A a, B b) RANK BY MERGE(max, a.x, b.x) DESC LIMIT 3", "ranking")
        == "the 3 with the highest max of a.x, b.x, of each window and partition"
    )
    assert (
        line_of("PATTERN A a RANK BY a.x LIMIT 3 OVERALL", "ranking")
        == "the 3 with the lowest a.x, of each window, all partitions together"
    )


def test_windows_of_operands() -> None:
    ranked = "PATTERN AND(SEQ(A a, B b) WITHIN 5 s, C c WITHIN 7 s){} RANK BY a.x LIMIT 3"
    assert "├─ a, b  last minus first time < 5 s" in logical(ranked.format(""))
    assert "└─ c     in the last 7 s of the window" in logical(ranked.format(" WITHIN 9 s SLIDE 3 s"))


@pytest.mark.parametrize(
    ("ticks", "axis", "shown"),
    [
        (600, TimeAxis.integer("s"), "10 min"),
        (1500, TimeAxis.integer("ms"), "1500 ms"),
        (7, TimeAxis.integer("d"), "7 d"),
        (86_400_000_001, TimeAxis.timestamps(), "86400000001 us"),
    ],
)
def test_durations_are_shown_in_the_largest_unit_that_fits(ticks: int, axis: TimeAxis, shown: str) -> None:
    assert show_duration(ticks, axis) == shown


@pytest.mark.parametrize(
    "condition",
    [
        "a.x > 1",
        "(a.x + 1) * 2 = -a.y",
        "NOT (a.x = 1 OR a.user LIKE 'it''s%')",
        "a.user IS NOT NULL",
        "abs(a.y) >= 1.5",
        "b.time - a.time < 5 min",
        "a.time > '2024-01-31 12:00:00'",
        "b[i].y > max(b[..i-1].y)",
        "duration(b) < 1 h",
        "b[first].x = b[last].x",
        "b.x < NEXT(b).x",
    ],
)
def test_a_bound_condition_reads_like_the_written_one(condition: str) -> None:
    plan = bind(parse_query(f"PATTERN SEQ(A a, B b+) WHERE {condition}"), SCHEMA)
    shown = show_expression(plan.conditions[0].expr, SCHEMA.axis)
    again = bind(parse_query(f"PATTERN SEQ(A a, B b+) WHERE {shown}"), SCHEMA)
    assert again.conditions[0].expr == plan.conditions[0].expr


def test_long_lists_are_cut() -> None:
    lines = draw(Branch("all", below=tuple(Branch(str(number)) for number in range(1000))))
    assert len(lines) == MOST_BRANCHES + 1
    assert lines[-1] == f"└─ ... {1000 - MOST_BRANCHES + 1} more"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (Imprecision("lo", "hi"), "lo to hi, a point every 1 us, all equally likely"),
        (Imprecision(error=Fraction(7_500_000), grain=10**6), "time ± 7500 ms, a point every 1 s, all equally likely"),
        (
            Imprecision(error=Fraction(1), by_type=(("A", Fraction(10**6)),), probability="p"),
            "time ± 1 s for A, 1 us for others, a point every 1 us, as likely as p says",
        ),
        (Imprecision(error_column="off"), "time ± off, a point every 1 us, all equally likely"),
    ],
)
def test_imprecise_time(how: Imprecision, said: str) -> None:
    schema = replace(SCHEMA, imprecision=how, axis=TimeAxis.timestamps())
    lines = draw(describe_logical(bind(parse_query("RETURN COUNT(*) PATTERN A a CONFIDENCE >= 0.5"), schema)))
    assert lines[1] == "├─ output      one row: expected values over all matches"
    assert lines[3] == f"├─ time        imprecise: {said}"
