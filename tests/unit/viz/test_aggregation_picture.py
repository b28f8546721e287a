"""Pictures of counting: their numbers are those of the engine, whatever the pattern, and they refuse what has none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.viz.aggregation import arithmetic_of, draw_panes, draw_running, panes_of
from trendloom.viz.query import plan_of


def stream(text: str) -> pa.Table:
    words = text.split()
    types = [word[0].upper() for word in words]
    return pa.table({"time": [int(word[1:]) for word in words], "type": types, "id": words})


LONG = stream("a1 a2 c3 b4 a5 d6 b7 a8 a9 c10 d11 b12 a13 b14")
PATTERNS = [
    "SEQ(A+, B)",
    "(SEQ(A+, B))+",
    "SEQ(A+, NOT C, B)",
    "SEQ(A+, NOT SEQ(C, D), B)",
    "SEQ(NOT D, A, B)",
    "SEQ(A, B, NOT D)",
    "AND(A, C)",
]


def counted(pattern: str, semantics: str = "skip-till-any-match") -> tuple[int, int]:
    text = f"RETURN COUNT(*) AS n  PATTERN {pattern}  SEMANTICS {semantics}"
    found = arithmetic_of(plan_of(text, LONG), LONG)
    (row,) = tl.run(text, LONG, engine="reference").to_pylist()
    return found.matches(found.numbers()[-1]), row["n"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_numbers_are_those_of_the_definition(pattern: str) -> None:
    drawn, defined = counted(pattern)
    assert drawn == defined > 0


@pytest.mark.parametrize("semantics", ["skip-till-next-match", "contiguous"])
@pytest.mark.parametrize("pattern", ["SEQ(A+, B)", "SEQ(A, NOT C, B)"])
def test_runs_are_counted_too(pattern: str, semantics: str) -> None:
    drawn, defined = counted(pattern, semantics)
    assert drawn == defined > 0


def test_running_numbers_after_every_event() -> None:
    events = stream("a1 a2 b3 a4 b5")
    found = arithmetic_of(plan_of("RETURN COUNT(*)  PATTERN SEQ(A+, B)", events), events)
    assert found.slots == ("not begun", "ends at A", "ends at B: matches")
    assert [numbers[1:] for numbers in found.numbers()] == [(0, 0), (1, 0), (3, 0), (3, 3), (7, 3), (7, 10)]


def test_slots_say_what_a_not_has_seen() -> None:
    found = arithmetic_of(plan_of("RETURN COUNT(*)  PATTERN SEQ(A+, NOT SEQ(C, D), B)", LONG), LONG)
    assert {"ends at A", "ends at A, C seen", "ends at A, NOT is broken", "ends at B: matches"} <= set(found.slots)


def test_windows_are_products_of_their_panes() -> None:
    text = "RETURN COUNT(*) AS n  PATTERN SEQ(A+, B)  WITHIN 6 SLIDE 4"
    plan = plan_of(text, LONG)
    length, panes, windows = panes_of(plan, arithmetic_of(plan, LONG))
    rows = {row["window_start"]: row["n"] for row in tl.run(text, LONG).to_pylist()}
    assert length == 2
    assert [pane.start for pane in panes] == list(range(0, 16, 2))
    assert [window.start for window in windows] == [0, 4, 8]
    assert all(window.matches == rows[window.start] for window in windows)


def test_the_picture_of_events(tmp_path: Path) -> None:
    events = stream("a1 a2 b3 a4 b5")
    plan = plan_of("RETURN COUNT(*)  PATTERN SEQ(A+, B)", events)
    text = draw_running(plan, events, tmp_path / "run.svg", title="counting").read_text()
    for said in (">counting<", ">a4<", ">ends at A<", ">10<", ">5 events, 10 matches, 3 numbers<"):
        assert said in text


def test_the_picture_of_panes(tmp_path: Path) -> None:
    plan = plan_of("RETURN COUNT(*)  PATTERN SEQ(A+, B)  WITHIN 8 SLIDE 4", LONG)
    text = draw_panes(plan, LONG, tmp_path / "panes.svg").read_text()
    for said in (">a1 a2 c3<", ">pane 4 to 8<", ">window 0 to 8: 10 matches<"):
        assert said in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN A", "gives out matches"),
        ("RETURN COUNT(*)  PATTERN A a+  WHERE a.time < NEXT(a).time", "relate adjacent events"),
        ("RETURN COUNT(*)  PATTERN SEQ(A+, B)  WHERE [id]", "by their type alone"),
    ],
)
def test_what_has_no_matrices_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=why):
        draw_running(plan_of(text, LONG), LONG, tmp_path / "run.svg")


def test_events_of_one_time_are_refused() -> None:
    events = stream("a1 b1")
    with pytest.raises(OptionError, match="each of them once"):
        arithmetic_of(plan_of("RETURN COUNT(*)  PATTERN SEQ(A, B)", events), events)


def test_panes_need_windows(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="windows that slide"):
        draw_panes(plan_of("RETURN COUNT(*)  PATTERN A+", LONG), LONG, tmp_path / "panes.svg")
