"""Which NOTs have the same matches, and that these are found once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.compare import rows_of
from tests.property.strategies import SCHEMA, to_table

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.matching import gap_thresholds as comparable
from trendloom.kernels.matching import gaps
from trendloom.logical.bind import bind
from trendloom.optimizer import optimize
from trendloom.optimizer.evaluate_equal_negations_once import evaluate_equal_negations_once


def alike(query: str) -> tuple[tuple[int, int], ...]:
    return optimize(bind(parse_query(f"PATTERN {query}"), SCHEMA)).alike


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SEQ(A a, NOT B b, C c, NOT B e, D d)", ((2, 1),)),
        ("SEQ(A a, NOT B b, C c, NOT B e, D d, NOT B f, A g)", ((2, 1), (3, 1))),
        ("SEQ(A a, NOT (B b: b.x > 1), C c, NOT (B e: e.x > 1), D d)", ((2, 1),)),
        ("SEQ(A a, NOT SEQ(B b, D d), C c, NOT SEQ(B e, D f), A g) WHERE b.x < d.x AND e.x < f.x", ((2, 1),)),
        ("SEQ(A a, NOT SEQ(B b, NOT C, D d), C c, NOT SEQ(B e, NOT C, D f), A g)", ((3, 1), (4, 2))),
        ("(SEQ(A a, NOT B b, C c)){3}", ((2, 1), (3, 1))),
        ("(SEQ(A a, NOT (B b: b.x = a.x), C c)){2}", ((2, 1),)),
        ("SEQ(A a, NOT (B b: b.x > a.x), C c, NOT (B e: e.x > c.x), D d)", ((2, 1),)),
        ("SEQ(A a, NOT (B b: b.x > a.x), C c, NOT (B e: c.x < e.x), D d)", ((2, 1),)),
        ("SEQ(A a, NOT (B b: b.x > a.x), C c, NOT (B e: e.x > d.x), D d)", ()),
        ("SEQ(A a, NOT (B b: b.x = a.x), C c, NOT (B e: e.y = c.y), D d)", ()),
        ("SEQ(A a, NOT (B b: b.x > 1), C c, NOT B e, D d)", ()),
        ("SEQ(A a, NOT B b, C c, NOT D e, D d)", ()),
        ("SEQ(A a, NOT B b, C c, NOT B+ e[], D d)", ()),
        ("SEQ(A a, D d, NOT (B b: b.x = a.x), C c, NOT (B e: e.x = a.x), A f)", ()),
        ("SEQ(A a, NOT SEQ(B b, D d), C c, NOT SEQ(B e, D f), A g) WHERE b.x < d.x AND f.x < e.x", ()),
        ("SEQ(A a, NOT SEQ(B b, D d), C c, NOT SEQ(D e, B f), A g)", ()),
    ],
)
def test_before_and_after(query: str, found: tuple[tuple[int, int], ...]) -> None:
    assert alike(query) == found


def test_without_the_rule() -> None:
    plan = bind(parse_query("PATTERN (SEQ(A a, NOT B b, C c)){3}"), SCHEMA)
    assert optimize(plan, without=(evaluate_equal_negations_once,)).alike == ()


EVENTS = to_table(
    [
        {"id": n, "type": kind, "time": n, "x": n % 3, "y": None, "g": None, "k": 1}
        for n, kind in enumerate("ACBAACDBACADCBDACD")
    ]
)


@pytest.mark.parametrize(
    ("where", "counted", "query"),
    [
        (gaps, "latest_starts", "PATTERN SEQ(A a, NOT B b, C c, NOT B e, D d)"),
        (gaps, "latest_starts", "PATTERN SEQ(A a, NOT B b, C c, NOT B e, D d) SEMANTICS skip-till-next-match"),
        (gaps, "latest_starts", "PATTERN SEQ(A a, NOT B b, C c, NOT B e, D d) WHERE a.x < d.x"),
        (gaps, "borders", "PATTERN SEQ(A a, NOT (B b: b.x > a.x), C c, NOT (B e: e.x > c.x), D d) WHERE a.x < d.x"),
        (comparable, "borders", "PATTERN SEQ(A a, NOT (B b: b.x > a.x), C c, NOT (B e: e.x > c.x), D d)"),
        (comparable, "borders", "RETURN COUNT(*) PATTERN SEQ(A a, NOT (B b: b.x = a.x), C c, NOT (B e: e.x = c.x), D)"),
    ],
)
def test_evaluated_once(where: Any, counted: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = getattr(where, counted)
    monkeypatch.setattr(where, counted, lambda *arguments: calls.append(1) or original(*arguments))
    found = tl.run(query, EVENTS, engine="local")
    assert len(calls) == 1
    assert rows_of(found) == rows_of(tl.run(query, EVENTS, engine="reference"))
