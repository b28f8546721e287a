"""The picture of what queries may share: segments and conflicts that are drawn, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.baselines.sharing_plans import PerStartBenefit
from tests.unit.planner.sharing.traffic import NAMES, ROUTES, considered_traffic

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.planner.sharing.choose_plan import choose_plan, chosen
from trendloom.planner.sharing.conflict_graph import graph_of
from trendloom.planner.sharing.groups import Considered, Way
from trendloom.viz.sharing import MOST_DRAWN, conflicting, draw_sharing, drawn_segments

EVENTS = pa.table({"time": [1, 2, 3], "type": ["A", "B", "C"]})
COUNTED = "QUERY p: RETURN COUNT(*) PATTERN SEQ(A, B, C)\nQUERY q: RETURN COUNT(*) PATTERN SEQ(A, B)"
ALONE = (Way("each by itself"),)


def test_segments_of_the_plan_are_marked() -> None:
    drawn = drawn_segments(considered_traffic())
    assert len(drawn) == 7
    assert {one.label for one in drawn if one.shared} == {
        "SEQ(Park, Oak)   9", "SEQ(Main, West)   15", "SEQ(Main, State)   8", "SEQ(Elm, Park)   18",
    }  # fmt: skip


def test_ten_pairs_are_in_conflict() -> None:
    drawn = drawn_segments(considered_traffic())
    pairs = list(conflicting(drawn))
    assert len(pairs) == 10
    assert not any(drawn[one].shared and drawn[other].shared for one, other in pairs)


def test_of_many_segments_some_are_drawn_and_of_options_one() -> None:
    words = [tuple(f"{letter}{number % 4}" for letter in "abcdefghij") for number in range(24)]
    choice = choose_plan(words, PerStartBenefit(words, lambda _: 2.0))
    drawn = drawn_segments(Considered(tuple(map(str, range(24))), tuple(words), choice, ALONE, 0))
    assert len(drawn) == MOST_DRAWN + len(choice.segments)
    assert {one.segment for one in drawn if one.shared} == set(choice.segments)
    assert len({one.segment.steps for one in drawn}) == len(drawn)


def test_lines_of_a_label_end_between_positions() -> None:
    words = [("Pickup[zone = 132]", "Dropoff[zone = 161]", "Pickup[zone = 161]")] * 2
    choice = choose_plan(words, lambda segment: len(segment.steps) * 100.0)
    (one,) = (one for one in drawn_segments(Considered(("p", "q"), tuple(words), choice, ALONE, 0)) if one.shared)
    assert one.label == "SEQ(Pickup[zone = 132], Dropoff[zone = 161],\n    Pickup[zone = 161])   300"


@pytest.mark.parametrize("name", ["sharing.svg", "sharing.png"])
def test_the_same_queries_give_the_same_picture(tmp_path: Path, name: str) -> None:
    groups = [considered_traffic(), considered_traffic()]
    first = draw_sharing(groups, tmp_path / name).read_bytes()
    assert len(first) > 5000
    if name.endswith(".svg"):
        assert draw_sharing(groups, tmp_path / name).read_bytes() == first
        assert b"SEQ(Oak, Main, West)   20" in first


def test_nothing_in_common_is_nothing_to_draw(tmp_path: Path) -> None:
    nothing = Considered(NAMES, tuple(ROUTES), chosen(0, graph_of([])), ALONE, 0)
    with pytest.raises(OptionError, match="there is nothing to draw"):
        draw_sharing([nothing], tmp_path / "sharing.svg")
    with pytest.raises(OptionError, match=r"ends in \.svg or \.png"):
        draw_sharing([considered_traffic()], tmp_path / "sharing.gif")


class TestExplain:
    def test_one_query_is_drawn_as_its_pattern(self, tmp_path: Path) -> None:
        text = tl.explain(COUNTED.splitlines()[1], EVENTS, picture=tmp_path / "one.svg")
        assert "Physical plan" in text
        assert (tmp_path / "one.svg").stat().st_size > 1000

    def test_a_workload_is_drawn_as_what_it_shares(self, tmp_path: Path) -> None:
        tl.explain(COUNTED, EVENTS, picture=str(tmp_path / "two.svg"))
        assert "SEQ(A, B)" in (tmp_path / "two.svg").read_text()

    def test_what_cannot_be_drawn_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(OptionError, match=r"cannot draw two\.pdf"):
            tl.explain(COUNTED, EVENTS, picture=tmp_path / "two.pdf")
        with pytest.raises(OptionError, match="nothing to draw") as caught:
            tl.explain("QUERY p: PATTERN A QUERY q: PATTERN B", EVENTS, picture=tmp_path / "two.svg")
        assert "query=" in str(caught.value)
        assert not (tmp_path / "two.svg").exists()
