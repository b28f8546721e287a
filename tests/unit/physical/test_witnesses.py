"""Hidden events that repeat are bound once, those that can be missing not at all, where that changes no remainder."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.kernels.ground.spec import Detection
from trendloom.lang.parser import parse_query
from trendloom.model.schema import Column, Kind, Schema
from trendloom.physical.detection import describe
from trendloom.physical.witnesses import with_single_witnesses
from trendloom.plan.bind import bind

SCHEMA = Schema(tuple(Column(*one) for one in (("type", Kind.STRING), ("time", Kind.INT), ("x", Kind.INT))))


def detection_of(query: str) -> Detection:
    return describe(bind(parse_query(f"PATTERN {query}"), SCHEMA))


def steps(detection: Detection) -> set[str]:
    """Every step as the names of its two variables; a start has none before it."""
    template, places = detection.scopes[0].template, detection.places
    found = {f">{places[edge.position].variable}" for edge in template.starts}
    for state, edges in enumerate(template.edges):
        name = places[template.position_of[state]].variable
        found |= {f"{name}{places[edge.position].variable}" for edge in edges}
    return found


@pytest.mark.parametrize(
    ("query", "lost"),
    [
        ("EXISTS x (SEQ(A a, X x+, B b))", {"xx"}),
        ("EXISTS x (SEQ(A a, X x+, B b)) WHERE a.x < b.x", {"xx"}),
        ("EXISTS x (SEQ(A a, NOT N, X x+, B b))", {"xx"}),
        ("EXISTS x (SEQ(A a, X x+, NOT N))", {"xx"}),
        ("EXISTS x (SEQ(A a, X x*, B b))", {"xx", "ax"}),
        ("EXISTS x (SEQ(X x?, A a+))", {">x"}),
        ("EXISTS x (EXISTS y (SEQ(A a, X x*, Y y?, B b)))", {"xx", "ax", "ay", "xy"}),
    ],
)
def test_steps_that_no_remainder_needs_are_left_out(query: str, lost: set[str]) -> None:
    before = detection_of(query)
    assert steps(before) - steps(with_single_witnesses(before)) == lost


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, X x+, B b)",
        "EXISTS x (SEQ(A a, X x+, B b)) SEMANTICS skip-till-next-match",
        "EXISTS x (SEQ(A a, X x+, B b)) WHERE x[i].x > x[i-1].x",
        "EXISTS x (SEQ(A a, NOT N, X x+, NOT N m, B b))",
        "EXISTS x (SEQ(A a, X x+, NOT (N n: n.x > x[last].x), B b))",
        "EXISTS x (SEQ(NOT N, X x+, A a)) WITHIN 5",
        "EXISTS x (SEQ(A a, X x?, B b)) WHERE a.x < NEXT(b).x",
        "EXISTS x (SEQ(A a, NOT N, X x?, B b))",
    ],
)
def test_all_steps_stay_where_some_remainder_needs_them(query: str) -> None:
    before = detection_of(query)
    assert with_single_witnesses(before) is before


def test_hidden_events_without_end_are_one_match() -> None:
    events = pa.table({"type": ["A", *["X"] * 200, "B"], "time": list(range(202)), "x": [0] * 202})
    assert tl.run("PATTERN EXISTS x (SEQ(A a, X x+, B b)) WHERE a.x = b.x", events).num_rows == 1
