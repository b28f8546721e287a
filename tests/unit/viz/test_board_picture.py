"""Pictures of boards: lanes in the order of ranks, with scores; one board of many; what cannot be drawn is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.viz.canvas import PALETTE
from trendloom.viz.leaderboard import Board, board_of, draw_board
from trendloom.viz.query import plan_of

EVENTS = pa.table(
    {
        "time": [1, 2, 3, 4, 11, 12, 13],
        "type": ["A", "A", "B", "B", "A", "B", "B"],
        "x": [10, 30, 5, 20, 50, 1, None],
        "key": ["k", "k", "k", "k", "k", "k", "l"],
    }
)
BOTH = "PATTERN SEQ(A a, B b)"
SVG = "{http://www.w3.org/2000/svg}"


def board(query: str, events: pa.Table = EVENTS, **options: Any) -> Board:
    return board_of(plan_of(query, events), tl.run(query, events), **options)


def drawn(found: Board, tmp_path: Path, **options: Any) -> str:
    return draw_board(found, tmp_path / "board.svg", **options).read_text()


def texts(svg: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_lanes_are_matches_in_the_order_of_their_ranks() -> None:
    found = board(f"{BOTH} RANK BY a.x + b.x DESC LIMIT 3")
    assert [(lane.rank, lane.score, [mark.time for mark in lane.marks]) for lane in found.lanes] == [
        (1, 51, [11, 12]),
        (2, 50, [2, 4]),
        (3, 35, [2, 3]),
    ]
    assert (found.preference, found.variables, found.window) == ("highest a.x + b.x", ("a", "b"), None)


def test_of_several_windows_the_one_with_the_best_score_is_shown() -> None:
    highest = board(f"{BOTH} WITHIN 10 SLIDE 10 RANK BY a.x + b.x DESC LIMIT 3")
    assert (highest.window, [lane.score for lane in highest.lanes]) == ((10, 20), [51, None])
    lowest = board(f"{BOTH} WITHIN 10 SLIDE 10 RANK BY a.x + b.x LIMIT 2")
    assert (lowest.window, [lane.score for lane in lowest.lanes]) == ((0, 10), [15, 30])


def test_partitions_have_boards_of_their_own_unless_they_are_ranked_together() -> None:
    more = pa.concat_tables([EVENTS, pa.table({"time": [14], "type": ["B"], "x": [7], "key": ["l"]})])
    more = pa.concat_tables([pa.table({"time": [0], "type": ["A"], "x": [60], "key": ["l"]}), more])
    apart = board(f"{BOTH} WHERE [key] RANK BY a.x + b.x DESC LIMIT 5", more)
    assert (apart.partition, [lane.score for lane in apart.lanes]) == ({"key": "l"}, [67, None])
    together = board(f"{BOTH} WHERE [key] RANK BY a.x + b.x DESC LIMIT 2 OVERALL", more)
    assert [(lane.partition, lane.score) for lane in together.lanes] == [({"key": "l"}, 67), ({"key": "k"}, 51)]
    assert together.partition == {}


def test_a_partition_without_a_key_is_one() -> None:
    events = pa.table({"time": [1, 2], "type": ["A", "B"], "x": [1, 2], "key": pa.array([None, None], pa.string())})
    query = f"{BOTH} RANK BY a.x + b.x LIMIT 1"
    assert len(board(query, events).lanes) == 1


def test_ranks_scores_variables_and_what_is_preferred_are_written(tmp_path: Path) -> None:
    query = f"{BOTH} WHERE [key] WITHIN 10 SLIDE 10 RANK BY a.x + b.x DESC LIMIT 10 OVERALL"
    written = texts(drawn(board(query), tmp_path, title="pairs"))
    lanes = [text for text in written if "key" in text]
    assert [line.split() for line in lanes] == [["1", "51", "key", "k"]]
    for said in ("pairs", "a", "b", "time", "rank and score"):
        assert said in written
    assert any("highest a.x + b.x" in text and "window 10 to 20" in text for text in written)


def test_each_event_is_a_mark_in_the_colour_of_its_variable_and_the_best_lane_is_on_top(tmp_path: Path) -> None:
    svg = drawn(board(f"{BOTH} WHERE a.time < 10 AND b.time < 10 RANK BY a.x + b.x DESC LIMIT 10"), tmp_path)
    marks: dict[str, list[float]] = {colour: [] for colour in PALETTE[:2]}
    for use in ElementTree.fromstring(svg).iter(f"{SVG}use"):
        fill = re.search(r"fill: (#\w+); stroke: #ffffff", use.get("style", ""))
        if fill is not None:
            marks[fill.group(1).upper()].append(float(use.get("y", "nan")))
    first, second = marks.values()
    assert len(first) == 4
    assert first == sorted(first)
    assert first == second  # the two events of a match lie in one lane


def test_at_most_ten_matches_are_drawn() -> None:
    many = pa.table({"time": range(20), "type": ["A", "B"] * 10, "x": range(20)})
    query = f"{BOTH} RANK BY a.x + b.x LIMIT 50"
    assert len(board(query, many).lanes) == 10
    assert len(board(query, many, most=3).lanes) == 3


def test_no_match_is_a_picture_too(tmp_path: Path) -> None:
    found = board(f"{BOTH} WHERE a.x > 1000 RANK BY a.x LIMIT 2")
    assert found.lanes == ()
    assert "lowest a.x" in drawn(found, tmp_path)


def test_matches_that_are_far_apart_are_drawn_since_their_first_event(tmp_path: Path) -> None:
    events = pa.table({"time": [0, 1, 1000, 1002], "type": ["A", "B"] * 2, "x": [1, 2, 3, 4]})
    svg = drawn(board(f"{BOTH} WITHIN 5 RANK BY a.x LIMIT 2", events), tmp_path)
    assert "time since the first event of the match" in svg


def test_what_gives_no_board_is_refused() -> None:
    with pytest.raises(OptionError, match="does not rank"):
        board(BOTH)
    with pytest.raises(OptionError, match="returns values"):
        board(f"RETURN a.x {BOTH} RANK BY a.x LIMIT 1")
