"""Rows of results on a time line: their events, their windows, their times, or nothing; and only their own time."""

from __future__ import annotations

import datetime

import pyarrow as pa

from trendloom.viz.timeline import timeline_of_rows

STREAM = pa.table({"time": list(range(1000))})
DAY = datetime.datetime(2014, 1, 1, tzinfo=datetime.UTC)
DATED = pa.table({"time": pa.array([DAY + datetime.timedelta(hours=h) for h in range(100)], pa.timestamp("us", "UTC"))})


def match(*times: int) -> list[dict[str, object]]:
    return [{"var": "ab"[n % 2], "time": time} for n, time in enumerate(times)]


def test_events_by_their_variables_in_the_time_of_the_matches() -> None:
    found = timeline_of_rows(pa.table({"events": [match(100, 140), match(120, 160)]}), STREAM, ())
    assert found is not None
    assert [[(mark.time, mark.label) for mark in lane.marks] for lane in found.lanes] == [
        [(100, "a"), (140, "b")],
        [(120, "a"), (160, "b")],
    ]
    assert (found.rug.min(), found.rug.max()) == (100, 160), "the rest of the stream is far away"
    assert found.since is None


def test_matches_that_would_be_dots_are_drawn_since_their_first_event() -> None:
    found = timeline_of_rows(pa.table({"events": [match(1, 3), match(900, 905)]}), STREAM, ())
    assert found is not None
    assert found.since == "time since the first event of the match"
    assert [lane.moments for lane in found.lanes] == [(0, 2), (0, 5)]


def test_times_of_rows_whatever_their_zone() -> None:
    rows = pa.table({"window_start": DATED["time"].slice(0, 2), "window_end": DATED["time"].slice(5, 2), "n": [1, 2]})
    found = timeline_of_rows(rows, DATED, ("window_start", "window_end"))
    assert found is not None
    assert [mark.label for mark in found.lanes[0].marks] == ["window_start", "window_end"]
    assert found.dated
    assert len(found.rug) == 7
    assert found.since is None, "windows of one length say nothing since their starts"


def test_rows_without_times_have_no_time_line() -> None:
    assert timeline_of_rows(pa.table({"n": [1, 2]}), STREAM, ()) is None


def test_rows_that_are_not_shown_are_counted() -> None:
    found = timeline_of_rows(pa.table({"events": [match(n, n + 500) for n in range(30)]}), STREAM, (), most=4)
    assert found is not None
    assert (len(found.lanes), found.count) == (4, "the first 4 of 30 matches")


def test_a_row_without_a_time_has_no_lane() -> None:
    found = timeline_of_rows(pa.table({"since": pa.array([5, None], pa.int64())}), STREAM, ("since",))
    assert found is not None
    assert len(found.lanes) == 1
