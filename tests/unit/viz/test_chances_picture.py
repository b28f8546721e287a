"""Pictures of matches of imprecise time: the likeliest first, intervals as bars, what they hold apart from how."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.viz.test_board_picture import texts

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.viz.canvas import PALETTE
from trendloom.viz.confidences import IntervalBar, LikelyMatches, draw_likely, likely_of
from trendloom.viz.query import plan_of

EVENTS = pa.table(
    {"low": [1, 3, 3, 4], "high": [5, 5, 5, 8], "type": ["A", "C", "B", "C"], "id": ["a1", "c2", "b3", "c4"]}
)
QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"


def likely(query: str = QUERY, events: pa.Table = EVENTS, **options: Any) -> LikelyMatches:
    columns = {"time_low": "low", "time_high": "high"}
    rows = tl.run(query, events, engine="reference", **columns)  # type: ignore[arg-type]
    return likely_of(plan_of(query, events, **columns), rows, **options)


def test_the_likeliest_match_comes_first() -> None:
    found = likely()
    assert [match.confidence for match in found.matches] == pytest.approx([3 / 25, 1 / 9])
    assert found.matches[0].bars == (IntervalBar("a", 1, 5), IntervalBar("b", 3, 5), IntervalBar("c", 4, 8))
    assert [(match.low, match.high) for match in found.matches] == [(1, 7), (1, 5)]


def test_only_the_likeliest_are_shown_and_the_picture_says_so(tmp_path: Path) -> None:
    found = likely(most=1)
    assert (found.total, len(found.matches)) == (2, 1)
    words = texts(draw_likely(found, tmp_path / "likely.svg", title="few").read_text())
    assert {"the 1 likeliest of 2 matches", "few", "0.120"} <= set(words)
    assert "0.111" not in words


def test_every_variable_has_its_colour(tmp_path: Path) -> None:
    drawn = draw_likely(likely(), tmp_path / "likely.svg").read_text().lower()
    assert all(colour.lower() in drawn for colour in PALETTE[:3])
    assert PALETTE[3].lower() not in drawn


def test_timestamps_are_steps_of_a_grain() -> None:
    begin = datetime.datetime(2024, 5, 1, 9)
    seconds = [begin + datetime.timedelta(seconds=number) for number in range(9)]
    stamps = pa.array(seconds, pa.timestamp("s"))
    events = pa.table({**{name: stamps.take(EVENTS[name].combine_chunks()) for name in ("low", "high")}})
    events = events.append_column("type", EVENTS["type"])
    found = likely("PATTERN SEQ(A a, C c) CONFIDENCE >= 0.9", _to_one_point(events))
    assert [bar.low for bar in found.matches[0].bars] == [np.datetime64(seconds[1]), np.datetime64(seconds[3])]
    assert isinstance(found.step, np.timedelta64)


def _to_one_point(events: pa.Table) -> pa.Table:
    return events.set_column(1, "high", events["low"])


def test_no_match_is_an_empty_picture(tmp_path: Path) -> None:
    found = likely("PATTERN SEQ(C c, A a, B b) WHERE c.id = 'c4'")
    assert (found.total, found.matches) == (0, ())
    assert "0 matches" in texts(draw_likely(found, tmp_path / "none.svg").read_text())


def test_values_have_no_events_to_draw() -> None:
    with pytest.raises(OptionError, match="there are no events to draw"):
        likely("RETURN a.id PATTERN SEQ(A a, B b)")


def test_a_certainty_is_shown_only_for_certain(tmp_path: Path) -> None:
    events = pa.table({"low": [1, 5], "high": [2, 6], "type": ["A", "B"]})
    assert [match.name for match in likely("PATTERN SEQ(A a, B b)", events).matches] == ["1.000"]
    events = pa.table({"low": [0, 48], "high": [48, 99], "type": ["A", "B"]})
    assert [match.name for match in likely("PATTERN SEQ(A a, B b)", events).matches] == ["> 0.999"]
