"""Pictures of patterns: every position and note is in it, in a layout that reads from left to right."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendloom.errors import OptionError
from trendloom.viz.canvas import PALETTE, colours
from trendloom.viz.query import PatternEdge, PatternNode, draw_pattern, layout

NODES = [
    PatternNode(0, "a", "Shelf", starts=True),
    PatternNode(1, "b", "Load", note="b.val > 3"),
    PatternNode(2, "c", "Exit", accepts=True),
]
EDGES = [
    PatternEdge(None, 0, forbids="NOT Open"),
    PatternEdge(0, 1),
    PatternEdge(1, 1, note="rising"),
    PatternEdge(1, 2, forbids="NOT CheckOut"),
    PatternEdge(0, 2),
    PatternEdge(2, 0),
    PatternEdge(2, None, forbids="NOT Alarm"),
]


def test_the_picture_holds_every_name_and_note(tmp_path: Path) -> None:
    text = draw_pattern(NODES, EDGES, tmp_path / "p.svg", title="the pattern").read_text()
    for said in (
        "Shelf",
        "Load",
        "Exit",
        "b.val &gt; 3",
        "rising",
        "NOT Open",
        "NOT CheckOut",
        "NOT Alarm",
        "the pattern",
    ):
        assert said in text


def test_the_same_pattern_gives_the_same_picture(tmp_path: Path) -> None:
    first = draw_pattern(NODES, EDGES, tmp_path / "1.svg").read_bytes()
    assert draw_pattern(NODES, EDGES, tmp_path / "2.svg").read_bytes() == first


def test_png_by_its_ending(tmp_path: Path) -> None:
    assert draw_pattern(NODES, EDGES, str(tmp_path / "p.PNG")).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["p.gif", "p", "none/p.svg"])
def test_other_pictures_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        draw_pattern(NODES, EDGES, tmp_path / name)
    assert caught.value.hint


def test_a_sequence_stands_in_one_row() -> None:
    places = layout(NODES, EDGES)
    assert places[0][0] < places[1][0] < places[2][0]
    assert {y for _, y in places.values()} == {0.0}


def test_alternatives_stand_above_each_other() -> None:
    nodes = [PatternNode(number, "abcd"[number], "T") for number in range(4)]
    edges = [PatternEdge(0, 1), PatternEdge(0, 2), PatternEdge(1, 3), PatternEdge(2, 3)]
    places = layout(nodes, edges)
    assert places[1][0] == places[2][0]
    assert places[1][1] > places[2][1]
    assert places[3][0] > places[1][0]


def test_colours_go_by_first_appearance_and_start_over() -> None:
    assert colours(["b", "a", "b"]) == {"b": PALETTE[0], "a": PALETTE[1]}
    many = colours(str(number) for number in range(len(PALETTE) + 1))
    assert many[str(len(PALETTE))] == PALETTE[0]
