"""A query that is added to a stream under way: from when its answers are whole, and what is not given out before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.streaming.live_streams import Row, events, streaming_query

import trendloom as tl
from trendloom.streaming.replay import Replay
from trendloom.streaming.state import Kept
from trendloom.streaming.step import QueryStep

SINCE = 100

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def added(query: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What a query gives out that was added at `SINCE`, and would have had these events."""
    live = Replay(replace(streaming_query(query), since=SINCE), delay=0)
    return [*live.batch(events(rows)).to_pylist(), *live.flush().to_pylist()]


def over_all(query: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    found: pa.Table = tl.run(query, events(rows), engine="local")
    return list(found.to_pylist())


@pytest.mark.parametrize(
    ("window", "whole_from"),
    [("WITHIN 20 SLIDE 7", 105), ("WITHIN 20 SLIDE 50", 100), ("WITHIN 20", 100)],
)
def test_windows_are_whole_that_begin_later(window: str, whole_from: int) -> None:
    assert replace(streaming_query(f"RETURN COUNT(*) PATTERN A {window}"), since=SINCE).whole_from == whole_from


def test_only_windows_that_begin_later_are_given_out() -> None:
    query = "RETURN COUNT(*) AS n PATTERN A WITHIN 20 SLIDE 10"
    rows: list[Row] = [("A", 95, 1, 0), ("A", 101, 1, 0), ("A", 112, 1, 0)]
    assert [(row["window_start"], row["n"]) for row in over_all(query, rows)] == [(80, 1), (90, 2), (100, 2), (110, 1)]
    assert [(row["window_start"], row["n"]) for row in added(query, rows)] == [(100, 2), (110, 1)]


@pytest.mark.parametrize(
    ("query", "whole_from"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 20", 100),
        ("PATTERN SEQ(A a, B+ b[]) SEMANTICS skip-till-next-match WITHIN 20", 100),
        ("PATTERN SEQ(NOT C, A a) WITHIN 20", 120),
        ("RETURN COMPLETE TRENDS PATTERN A+ a[] WITHIN 20", 120),
        ("RETURN COLLAPSED TRENDS PATTERN SEQ(A+ a[], B b) WITHIN 20", 120),
    ],
)
def test_matches_without_windows_are_whole_after_what_they_look_back_at(query: str, whole_from: int) -> None:
    assert replace(streaming_query(query), since=SINCE).whole_from == whole_from


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("PATTERN SEQ(NOT C, A a) WITHIN 20", [("C", 99, 1, 0), ("A", 105, 1, 1), ("A", 125, 1, 2)]),
        ("RETURN COMPLETE TRENDS PATTERN A+ a[] WITHIN 20", [("A", 99, 1, 0), ("A", 105, 1, 1), ("A", 125, 1, 2)]),
        (
            "RETURN COLLAPSED TRENDS PATTERN SEQ(A+ a[], B b) WITHIN 20",
            [("A", 99, 1, 0), ("A", 105, 1, 1), ("B", 110, 1, 2), ("A", 125, 1, 3), ("B", 130, 1, 4)],
        ),
    ],
)
def test_an_event_from_before_would_have_made_another_row(query: str, rows: list[Row]) -> None:
    """Without the event before `SINCE` there is a row that is not among the right ones; it must not come."""
    right = over_all(query, rows)
    assert any(row not in right for row in over_all(query, rows[1:]))
    given_out = added(query, rows)
    assert given_out == [row for row in right if min(event["time"] for event in row["events"]) >= 120]
    assert len(given_out) == 1


def test_what_happened_before_is_not_late() -> None:
    step = QueryStep(replace(streaming_query("PATTERN SEQ(A a, B b) WITHIN 20"), since=SINCE), Kept(), watermark=110)
    arrived = events([("A", 90, 1, 0), ("A", 99, 1, 0), ("A", 105, 1, 0), ("A", 115, 1, 0), ("A", None, 1, 0)])
    list(step.rows(arrived))
    assert (step.kept, step.untimed) == (1, 1)
    assert step.late is not None
    assert step.late["time"].to_pylist() == [None, 105]


def test_the_moment_is_not_part_of_what_the_state_depends_on() -> None:
    plain = streaming_query("PATTERN SEQ(A a, B b) WITHIN 20")
    assert replace(plain, since=SINCE).fingerprint == plain.fingerprint
