"""Which queries with MERGE are ranked without listing, and what EXPLAIN says of the way and of what stands in it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trendloom as tl

EVENTS = pa.table({"time": [1, 2, 3], "type": ["A", "B", "C"], "x": [1, 2, 3], "y": [0.5, 1.5, 2.5], "g": [1, 1, 1]})
PAIRS = "AND(SEQ(A a, B b), SEQ(B c, C d))"
SUMS = "MERGE(sum, a.x + b.x, c.x + d.x)"


def plan(pattern: str, preference: str = SUMS, clauses: str = "") -> str:
    return tl.explain(f"PATTERN {pattern} {clauses} RANK BY {preference} LIMIT 2", EVENTS)


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ("", "sequences best first"),
        ("WHERE a.g = d.g", "what is equal is looked up by value"),
        ("WITHIN 4 SLIDE 2", "each window is joined for itself"),
        ("WITHIN 4", "only those are opened that can hold the best"),
    ],
)
def test_how_a_join_runs(clauses: str, words: str) -> None:
    found = plan(PAIRS, clauses=clauses)
    assert "rank join" in found
    assert words in " ".join(found.split())


@pytest.mark.parametrize(
    "pattern",
    ["AND(OR(A a, SEQ(B b, A c)), C d)", "SEQ(OR(A a, SEQ(B b, A c)), C d)", "SEQ(C d, OR(A a, SEQ(B b, A c)))"],
)
def test_an_or_inside_is_joined(pattern: str) -> None:
    preferences = ["a.x", "b.x + c.x", "d.x"]
    ordered = preferences[2:] + preferences[:2] if pattern.startswith("SEQ(C") else preferences
    assert "rank join" in plan(pattern, f"MERGE(max, {', '.join(ordered)})")


def test_every_branch_of_an_or_has_its_own_way() -> None:
    found = plan("OR(SEQ(A a, B b), AND(C c, B d), C e)", "MERGE(min, a.x * b.x, c.x, d.x, e.x)")
    assert "every branch on its own" in found
    ways = [line.partition("─ branch ")[2] for line in found.splitlines() if "─ branch " in line]
    assert [way.partition(":")[0] for way in ways] == ["1  parts", "2  rank join", "3  best paths"]


@pytest.mark.parametrize(
    ("pattern", "preference", "clauses", "obstacle"),
    [
        (PAIRS, SUMS, "WHERE a.g = b.g", "a condition links events of one sequence"),
        (PAIRS, "MERGE(sum, a.x * b.x, c.x)", "", "no preference that is a sum"),
        (PAIRS, "MERGE(sum, c.x + d.x, a.x + b.x)", "", "in the order of the sequences"),
        ("AND(SEQ(A a, B+ b[]), C c)", "MERGE(sum, a.x, c.x)", "", "not a sequence of single events"),
        ("OR(SEQ(A a, B b), C c)", "MERGE(sum, a.x + b.x, 1)", "", "a preference is a constant"),
        ("OR(SEQ(A a, B b), C c)", "MERGE(sum, a.x + c.x, b.x)", "", "a branch has no preference of its own"),
        (
            "OR(SEQ(A a, B b), C c)",
            "MERGE(sum, a.x + b.x, c.x)",
            "SEMANTICS skip-till-next-match",
            "under skip-till-any-match",
        ),
    ],
)
def test_what_is_listed_says_why(pattern: str, preference: str, clauses: str, obstacle: str) -> None:
    assert obstacle in " ".join(plan(pattern, preference, clauses).split())
