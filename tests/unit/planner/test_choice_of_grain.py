"""Which grain a query gets, and the reason EXPLAIN gives."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.kernels.contract.aggregates import Grain
from trendloom.kernels.match.search import SearchKernel
from trendloom.logical.bind import bind
from trendloom.planner.request import Choice
from trendloom.runtime.planning import plan_query

EVENTS = pa.table({"type": ["A"], "time": [1], "x": [1], "y": [1.5], "g": ["u"]})
NEXT, CONTIGUOUS = "SEMANTICS skip-till-next-match", "SEMANTICS contiguous"


def chosen(query: str) -> Choice:
    return plan_query(bind(parse_query(f"RETURN COUNT(*) {query}"), prepare(EVENTS).schema)).chosen


@pytest.mark.parametrize(
    ("query", "grain", "reason"),
    [
        ("PATTERN SEQ(A+, B)", Grain.TYPE, "no predicate relates adjacent events"),
        ("PATTERN SEQ(A+, NOT C, B) WHERE A.x > 3", Grain.TYPE, "no predicate relates adjacent events"),
        ("PATTERN AND(A, B)", Grain.TYPE, "no predicate"),
        (f"PATTERN SEQ(A+, B) {NEXT}", Grain.PATTERN, "no predicate relates adjacent events"),
        (f"PATTERN SEQ(A+, B) {CONTIGUOUS}", Grain.PATTERN, "no predicate relates adjacent events"),
        (f"PATTERN A+ {NEXT} WHERE A.x < NEXT(A).x", Grain.PATTERN, "a predicate relates adjacent events"),
        ("PATTERN A+ WHERE A.x < NEXT(A).x", Grain.MIXED, "sums by fenwick"),
        ("PATTERN A+ WHERE A.x = NEXT(A).x", Grain.MIXED, "sums by hash"),
        ("PATTERN A+ WHERE A.x = NEXT(A).x AND A.y < NEXT(A).y", Grain.MIXED, "sums by hash of fenwicks"),
        ("PATTERN A+ WHERE A.x > NEXT(A).x AND A.y < NEXT(A).y", Grain.MIXED, "two-level fenwick"),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x", Grain.MIXED, "sums by fenwick"),
        ("PATTERN (SEQ(A a, (B b: b.x = a.x)))+", Grain.MIXED, "sums by hash"),
        ("PATTERN SEQ(A, NOT SEQ(B b, C c), D) WHERE b.x < c.x", Grain.MIXED, "conditions or NOTs of its own"),
        ("PATTERN A+ WHERE abs(A.x - NEXT(A).x) < 2", Grain.EVENT, "compared with those before it"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE a.x < c.x", Grain.TYPE, "one aggregate per event of a"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE b.x < c.x", Grain.TYPE, "one aggregate per event of c"),
        ("PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c)", Grain.MIXED, "a NOT depends on an event next to it"),
        ("PATTERN SEQ(A a, NOT (B b: b.x > c.x), C c)", Grain.MIXED, "sums by fenwick"),
        ("PATTERN SEQ(A a, NOT (B b: b.x > c.x), C c) WHERE a.x = c.x", Grain.MIXED, "sums by hash of fenwicks"),
        (f"PATTERN SEQ(A a, NOT (B b: b.x > c.x), C c) {NEXT}", Grain.PATTERN, "a NOT depends on an event next to it"),
        (
            "PATTERN SEQ(A a, NOT (B b: b.x = d.x), D d, C c) WHERE a.x < c.x",
            Grain.MIXED,
            "one aggregate per event of a",
        ),
        ("PATTERN SEQ(A a, NOT (B b: b.x + a.x > 1), C c)", Grain.TYPE, "one aggregate per event of a"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE a.x < c.x AND b.x < NEXT(b).x", Grain.MIXED, "one aggregate per event"),
    ],
)
def test_one_step(query: str, grain: Grain, reason: str) -> None:
    found = chosen(query)
    assert found.kernel.aggregation is not None
    assert found.kernel.aggregation.grain is grain
    assert reason in found.why


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN A+ a[] WHERE avg(a[].x) > 1", "more than two events"),
        ("PATTERN A+ a[] WHERE a[i].x < max(a[..i-1].x)", "more than two events"),
        ("PATTERN (SEQ(A a, B b))+ WHERE a[i].x > a[i-1].x", "looks back past other events"),
        ("PATTERN SEQ(A a, B+ b[], C c, D d) WHERE a.x < c.x AND b.x < d.x", "no single event of a match decides"),
        ("PATTERN SEQ((A a)?, B+ b[], C c) WHERE a.x < c.x AND b.x < a.x", "no single event of a match decides"),
        (f"PATTERN SEQ(A a, B, C c) {NEXT} WHERE a.x < c.x", "decides how a run goes on"),
        (f"PATTERN A+ {NEXT} WHERE abs(A.x - NEXT(A).x) < 2", "not a comparison of one event with the other"),
        ("PATTERN AND(A, A)", "over the same types"),
        ("PATTERN SEQ(A, NOT SEQ(B, NOT C), D)", "a NOT depends on the match around it"),
    ],
)
def test_two_steps(query: str, reason: str) -> None:
    found = chosen(query)
    assert isinstance(found.kernel, SearchKernel)
    assert found.why.startswith("two steps, because ")
    assert reason in found.why


def test_explain_names_grain_reason_cost_and_structures() -> None:
    text = tl.explain("RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE A.x < NEXT(A).x", EVENTS)
    for part in ("mixed-grained", "sums by fenwick", "O(events · log events)", "0:A → 0:A  fenwick", "0:A → 1:B  sum"):
        assert part in text
    two_steps = tl.explain("RETURN COUNT(*) PATTERN A+ a[] WHERE avg(a[].x) > 1", EVENTS)
    assert "two steps: find the matches, then add up" in two_steps
    assert "more than two events" in two_steps
