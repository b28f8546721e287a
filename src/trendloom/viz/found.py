"""Rows that a query gave, on a time line: their events, or whatever times they have.

Rows of RETURN TRENDS show each event by its variable; others show their times (of a windowed row, where the window
starts and ends). Rows without any time have no time line. The time line is that of the rows shown; matches that would
be dots on it are drawn since their first event.
Cost: the rows that are shown, and the times of all events for the ticks below them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.viz.timeline import Mark, Timeline, are_short, timeline_of, times_of

EVENTS = "events"


def timeline_of_rows(
    rows: pa.Table, events: pa.Table, times: Sequence[str], *, time: str = "time", most: int = 25
) -> Timeline | None:
    """What is drawn of the first rows; None where they have no times.

    `times`: the columns of the rows that hold times; `events`: the stream, whose times are in the column `time`.
    """
    first = rows.slice(0, most)
    if EVENTS in rows.column_names:
        shown = [_of_events(match, time) for match in first.column(EVENTS).to_pylist()]
    elif times:
        shown = [_of_columns(row, times) for row in first.select(list(times)).to_pylist()]
    else:
        return None
    near = _around(events.select([time]), shown, time)
    matches = [match for match in shown if match]
    short = EVENTS in rows.column_names and are_short(matches, times_of(near, time))
    return timeline_of(near, matches, time=time, most=most, total=len(rows), relative=short)


def _around(events: pa.Table, shown: Sequence[Sequence[Mark]], time: str) -> pa.Table:
    """The events in the time of what is shown: it may be a small part of a long stream."""
    moments: list[Any] = [mark.time for match in shown for mark in match]
    if not moments:
        return events
    ticks = events.column(time)
    low, high = (
        pa.scalar(end).cast(_without_zone(ticks.type)).cast(ticks.type) for end in (min(moments), max(moments))
    )
    return events.filter(pc.and_(pc.greater_equal(ticks, low), pc.less_equal(ticks, high)))


def _without_zone(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _of_events(match: Sequence[dict[str, Any]] | None, time: str) -> list[Mark]:
    return [Mark(_moment(event[time]), None, str(event["var"])) for event in match or () if event.get(time) is not None]


def _of_columns(row: dict[str, Any], columns: Sequence[str]) -> list[Mark]:
    return [Mark(_moment(row[name]), None, name) for name in columns if row[name] is not None]


def _moment(value: Any) -> Any:
    """Moments of UTC without saying so, as the axis has them."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value
