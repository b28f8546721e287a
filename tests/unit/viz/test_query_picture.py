"""A query's picture: states and steps of its template, conditions where they belong, the rest in the caption."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from trendloom.errors import OptionError
from trendloom.viz.query import PatternEdge, PatternNode, caption_of, draw_query_pattern, picture_of, plan_of

EVENTS = pa.schema({"time": pa.timestamp("us"), "type": pa.string(), "series": pa.string(), "value": pa.float64()})


def picture(text: str) -> tuple[list[PatternNode], list[PatternEdge]]:
    return picture_of(plan_of(text, EVENTS))


def steps(edges: list[PatternEdge]) -> dict[tuple[int | None, int | None], str | None]:
    return {(edge.source, edge.target): edge.forbids for edge in edges}


def test_nested_repetition_leads_back() -> None:
    nodes, edges = picture("PATTERN (SEQ(A+, B))+")
    assert [(node.variable, node.starts, node.accepts) for node in nodes] == [("A", True, False), ("B", False, True)]
    assert set(steps(edges)) == {(0, 0), (0, 1), (1, 0)}


def test_a_not_stands_on_the_step_it_forbids_also_back_into_its_round() -> None:
    _, edges = picture("PATTERN SEQ(A, (SEQ(NOT N, B))+)")
    assert steps(edges) == {(0, 1): "NOT N", (1, 1): "NOT N"}


def test_nots_at_the_ends() -> None:
    _, edges = picture("PATTERN SEQ(NOT N, A, B?, NOT SEQ(M, O))")
    found = steps(edges)
    assert found[None, 0] == "NOT N"
    assert found[0, None] == found[1, None] == "NOT SEQ(M, O)"
    assert found[0, 1] is None


def test_a_correlated_not_shows_its_predicate() -> None:
    _, edges = picture("PATTERN SEQ(A a, NOT (B b: b.value > a.value), C c)")
    (text,) = [edge.forbids for edge in edges if edge.forbids]
    assert " ".join(text.split()) == "NOT B b: b.value > a.value"


def test_and_has_a_state_for_each_order() -> None:
    nodes, _ = picture("PATTERN AND(A, B)")
    assert sorted(node.variable for node in nodes) == ["A", "A", "B", "B"]


def test_conditions_stand_where_they_belong() -> None:
    text = (
        "PATTERN SEQ(A a, B+ b[])  SEMANTICS skip-till-next-match  "
        "WHERE [series] AND a.value > 3 AND b[i].value > b[i-1].value AND a.value < NEXT(b).value AND count(b[]) > 2  "
        "WITHIN 1 hour"
    )
    nodes, edges = picture(text)
    assert [node.note for node in nodes] == ["a.value > 3", None]
    assert {(edge.source, edge.target): edge.note for edge in edges} == {
        (0, 1): "a.value < NEXT(b).value",
        (1, 1): "b[i].value > b[i-1].value",
    }
    assert caption_of(plan_of(text, EVENTS)).split("  ·  ") == [
        "skip-till-next-match", "within each series", "count(b[]) > 2", "WITHIN 1 h",
    ]  # fmt: skip


def test_drawn_with_title_and_caption(tmp_path: Path) -> None:
    text = "QUERY calm: PATTERN SEQ(A, NOT B, C) WITHIN 10 s SLIDE 5 s"
    drawn = draw_query_pattern(plan_of(text, EVENTS), tmp_path / "p.svg").read_text()
    for said in (">calm<", ">NOT B<", "WITHIN 10 s SLIDE 5 s"):
        assert said in drawn


def test_one_query_at_a_time() -> None:
    workload = "QUERY x: PATTERN A QUERY y: PATTERN B"
    with pytest.raises(OptionError) as caught:
        plan_of(workload, EVENTS)
    assert "x, y" in str(caught.value.hint)
    assert plan_of(workload, EVENTS, query="y").name == "y"
