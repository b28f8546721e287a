"""The logical half of EXPLAIN, word by word: what people read there is part of the product."""

from __future__ import annotations

from textwrap import dedent

import pytest

from trendloom.lang.parser import parse_query
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis
from trendloom.plan.bind import bind
from trendloom.plan.display import MOST_BRANCHES, Branch, describe_logical, draw, show_duration, show_expression

COLUMNS = (
    Column("time", Kind.TIME),
    Column("type", Kind.STRING),
    Column("user", Kind.STRING),
    Column("x", Kind.INT),
    Column("y", Kind.FLOAT),
)
SCHEMA = Schema(COLUMNS, axis=TimeAxis.timestamps())


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
        │  ├─ a.x > 1               every event of a
        │  ├─ b[i].y >= b[i-1].y    every event of b from the second on, with the one before it
        │  ├─ n.x = a.x             matches of NOT 1: every event of a and n
        │  ├─ b.y < NEXT(b).y       adjacent events of b and b
        │  └─ count(b[]) > 2        b as a whole
        └─ scan       every column, events of every type""").replace("a.x > 1               ", "a.x > 1              ").replace(
        "b[i-1].y    every", "b[i-1].y  every"
    ) or shown.count("\n") == 33
