"""Marks on a chart: added, joined, refused, removed, and kept by a browser that may send anything."""

from __future__ import annotations

import pytest

from trendloom.dashboard.marks import MOST, Marks, selected_stretch, shown_tick, tick_at
from trendloom.errors import OptionError
from trendloom.model.time import TimeAxis

DATED, COUNTED = TimeAxis.timestamps(), TimeAxis.integer("s")
SOME = Marks("c", ((10, 20), (40, 50)), ((60, 70),))


def test_marks_of_a_kind_that_touch_become_one() -> None:
    assert SOME.with_mark("abnormal", 20, 40).abnormal == ((10, 50),)
    assert SOME.with_mark("abnormal", 25, 30).abnormal == ((10, 20), (25, 30), (40, 50))


@pytest.mark.parametrize(
    ("kind", "low", "high", "said"),
    [
        ("abnormal", 65, 80, "overlaps a stretch that is marked reference"),
        ("reference", 0, 11, "overlaps a stretch that is marked abnormal"),
        ("abnormal", 9, 9, "empty"),
        ("abnormal", 9, 3, "empty"),
        ("<script>", 1, 2, "not a kind of mark"),
    ],
)
def test_marks_that_make_no_sense_are_refused(kind: str, low: int, high: int, said: str) -> None:
    with pytest.raises(OptionError, match=said) as caught:
        SOME.with_mark(kind, low, high)
    assert caught.value.hint


def test_there_is_an_end_to_marks() -> None:
    many = Marks("c", tuple((10 * n, 10 * n + 5) for n in range(MOST)))
    with pytest.raises(OptionError, match="marked already"):
        many.with_mark("abnormal", 9_000, 9_001)


def test_a_mark_is_removed_by_its_place_in_the_list() -> None:
    assert SOME.without(1).abnormal == ((10, 20),)
    assert SOME.without(2).reference == ()
    assert SOME.without(17) == SOME


def test_marks_survive_the_browser_and_belong_to_one_chart() -> None:
    assert Marks.from_json(SOME.to_json(), "c") == SOME
    assert Marks.from_json(SOME.to_json(), "another") == Marks("another")


@pytest.mark.parametrize(
    "sent", [None, 3, "x", [], {"chart": "c", "abnormal": 7}, {"chart": "c", "abnormal": [["x", "y"], [1]]}]
)
def test_what_is_not_marks_is_nothing(sent: object) -> None:
    assert Marks.from_json(sent, "c") == Marks("c")


@pytest.mark.parametrize(
    ("text", "axis", "tick"),
    [
        ("1970-01-01 00:00:01", DATED, 1_000_000),
        ("1970-01-01T00:00:01.2345Z", DATED, 1_234_500),
        ("1970-01-02", DATED, 86_400_000_000),
        ("17", COUNTED, 17),
        ("17.9", COUNTED, 17),
        ("-3", COUNTED, -3),
        ("9007199254740993", COUNTED, 9_007_199_254_740_993),
    ],
)
def test_times_are_read_as_charts_and_people_write_them(text: str, axis: TimeAxis, tick: int) -> None:
    assert tick_at(text, axis) == tick


@pytest.mark.parametrize(("text", "axis"), [("soon", DATED), ("", DATED), ("nan", COUNTED), ("NaT", DATED)])
def test_what_is_not_a_time_is_refused_with_an_example(text: str, axis: TimeAxis) -> None:
    with pytest.raises(OptionError, match="is not a time") as caught:
        tick_at(text, axis)
    assert "write it like" in str(caught.value.hint)


@pytest.mark.parametrize("tick", [0, 1, 1_500_000, 1_700_000_000_000_000])
def test_shown_times_are_read_again(tick: int) -> None:
    assert tick_at(shown_tick(tick, DATED), DATED) == tick


def test_what_was_dragged_over_is_in_whole_seconds_where_it_is_long() -> None:
    dragged = {"range": {"x": ["1970-01-01 00:02:00.7", "1970-01-01 00:00:10.4"]}}
    assert selected_stretch(dragged, DATED) == (10_000_000, 121_000_000)
    assert selected_stretch({"range": {"x": [3.2, 9.7]}}, COUNTED) == (3, 9)


@pytest.mark.parametrize("sent", [None, {}, {"points": []}, {"range": {"x": [1]}}, {"range": {"x": "ab"}}, [1, 2]])
def test_nothing_dragged_is_nothing(sent: object) -> None:
    assert selected_stretch(sent, COUNTED) is None
