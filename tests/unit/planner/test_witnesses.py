"""Hidden events that repeat are bound once, those that can be missing not at all, where that changes no remainder."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.planner.exists import with_single_witnesses
from trendloom.planner.pattern_tables import describe

SCHEMA = Schema(tuple(Column(*one) for one in (("type", Kind.STRING), ("time", Kind.INT), ("x", Kind.INT))))


def detection_of(query: str) -> PatternSpec:
    return describe(bind(parse_query(f"PATTERN {query}"), SCHEMA))


def steps(pattern_spec: PatternSpec) -> set[str]:
    """Every step as the names of its two variables; a start has none before it."""
    template, places = pattern_spec.scopes[0].template, pattern_spec.places
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
        ("EXISTS x (SEQ(A a, X x*, B b))", {"xx", "ax", "xb"}),
        ("EXISTS x (SEQ(X x?, A a+))", {">x", "xa"}),
        ("EXISTS x (SEQ(X x?, A a, NOT N))", {">x", "xa"}),
        ("EXISTS x (EXISTS y (SEQ(A a, X x*, Y y?, B b)))", {"xx", "ax", "ay", "xy", "xb", "yb"}),
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


@pytest.mark.parametrize(
    "query",
    [
        "EXISTS x (SEQ(X x?, A a, NOT N))",
        "EXISTS x (SEQ(A a, X x*, B b))",
        "EXISTS x (EXISTS y (SEQ(X x?, A a, Y y*, B b+, X z)))",
    ],
)
def test_every_state_that_is_left_can_be_reached(query: str) -> None:
    template = with_single_witnesses(detection_of(query)).scopes[0].template
    starts = {edge.target for edge in template.starts}
    assert starts.union(*(template.reached[state] for state in starts)) == set(range(len(template.position_of)))


@pytest.mark.filterwarnings("ignore:the events have no type")
@pytest.mark.parametrize(
    ("query", "types", "rows"),
    [
        ("RETURN b.id PATTERN EXISTS c (SEQ((C c)?, B b, NOT D d))", "..CB", [3]),
        ("RETURN a2.id PATTERN EXISTS a1 (SEQ((A a1)?, A a2, B b, NOT D d))", "AA.B", [0, 1]),
        ("RETURN a2.id PATTERN EXISTS a1 (SEQ((A a1)*, A a2, B b, NOT D d))", "AA.B", [0, 1]),
        ("RETURN a2.id PATTERN EXISTS a1 (SEQ((A a1)*, A a2, B b, NOT D d))", "AA.BD", []),
        ("RETURN a.id PATTERN EXISTS c (SEQ(NOT D d, A a, (C c)*, B b))", "ACCBDAB", [0, 0]),
        ("RETURN a.id PATTERN EXISTS b (SEQ(A a, NOT D d, (B b)?))", "ABDA", [0, 3]),
    ],
)
def test_optional_hidden_events_beside_not(query: str, types: str, rows: list[int]) -> None:
    places = [place for place, kind in enumerate(types) if kind != "."]
    events = pa.table({"type": [types[place] for place in places], "time": places, "id": places})
    for engine in ("local", "reference"):
        found = tl.run(query, events, engine=engine)
        assert sorted(found.column(0).to_pylist()) == rows, engine


@pytest.mark.filterwarnings("ignore:the events have no type")
def test_a_component_bound_alone_is_in_no_other_place() -> None:
    events = pa.table({"type": ["C", "B"], "time": [3, 4], "x": [0, 0]})
    found = tl.run("PATTERN EXISTS c (SEQ((C c)?, B b, NOT D d))", events)
    assert [[(event["var"], event["type"]) for event in row["events"]] for row in found.to_pylist()] == [[("b", "B")]]


def test_hidden_events_without_end_are_one_match() -> None:
    events = pa.table({"type": ["A", *["X"] * 200, "B"], "time": list(range(202)), "x": [0] * 202})
    assert tl.run("PATTERN EXISTS x (SEQ(A a, X x+, B b)) WHERE a.x = b.x", events).num_rows == 1
