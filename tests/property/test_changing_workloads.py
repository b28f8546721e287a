"""A query that is added to a live stream, taken out and put back gives exactly the rows that are whole.

The definition: the rows of a batch over all events that were not late, from the moment on that the query names
(`whole_from`): windows that begin there or later, or matches without windows whose first event is there or later.
However the events are disordered, cut and spread over buckets, and wherever the stream is stopped and resumed.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.live_cases import KINDS, LiveCase, live_cases
from tests.property.strategies import ARROW, SCHEMA

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.runtime.planning import plan_query
from trendloom.streaming import state as chunks
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of

EXAMPLES = amount(30)
WITH_ROWS = 0.1
"""The least share of cases in which a query that was added has a row at all."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@dataclass(frozen=True)
class Stay:
    """A query is in the workload from one batch on up to before another; None: to the end."""

    first: int
    last: int | None


@dataclass(frozen=True)
class ChangingCase:
    """A live stream, and when its query is there: the second stay, if there is one, is a comeback."""

    live: LiveCase
    stays: tuple[Stay, ...]


@st.composite
def changing_cases(draw: st.DrawFn, kind: str) -> ChangingCase:
    short = draw(live_cases(kind))
    if draw(st.booleans()):  # without windows, where there are rows per match
        short = replace(short, query=re.sub(r"SLIDE \d+ *\w*", "", short.query))
    live = repeated(short, 3)
    count = len(short.batches)
    first = draw(st.integers(0, count))
    if not draw(st.booleans()):
        return ChangingCase(live, (Stay(first, None),))
    gone = draw(st.integers(first, 2 * count))
    back = draw(st.integers(gone, 2 * count))
    return ChangingCase(live, (Stay(first, gone), Stay(back, None)))


def repeated(case: LiveCase, times: int) -> LiveCase:
    """The same events again and again, so that much happens after a query has been added."""
    moments = [event["time"] for batch in case.batches for event in batch]
    length = max(moments, default=0) - min(moments, default=0) + 1
    batches = [
        tuple({**event, "id": event["id"] + 1000 * number, "time": event["time"] + length * number} for event in batch)
        for number in range(times)
        for batch in case.batches
    ]
    return replace(case, batches=tuple(batches), restarts=case.restarts * times)


def streaming_query(query: str) -> StreamingQuery:
    return streaming_query_of(plan_query(bind(parse_query(query), SCHEMA)), ARROW, "exact")


def watermarks(case: LiveCase) -> Iterator[int | None]:
    """The watermark of every batch, and the one after the last, by the definition."""
    newest: int | None = None
    yield None
    for batch in case.batches:
        times = [event["time"] for event in batch]
        newest = max([*times, *([] if newest is None else [newest])], default=None)
        yield None if newest is None else newest - case.delay


def in_time(case: LiveCase) -> pa.Table:
    """The events that were not late."""
    kept = [
        table.filter(pa.array([mark is None or time >= mark for time in table["time"].to_pylist()], pa.bool_()))
        for mark, table in zip(watermarks(case), case.tables(), strict=False)
    ]
    return pa.concat_tables([ARROW.empty_table(), *kept])


def played(case: ChangingCase) -> list[tuple[StreamingQuery, pa.Table, Replay]]:
    """For every stay of the query the flow, what was given out, and the stream at its end."""
    live, marks, planned = case.live, list(watermarks(case.live)), streaming_query(case.live.query)
    found, memories = [], {}
    for generation, stay in enumerate(case.stays):
        before = Replay(planned, live.delay, live.buckets, marks[stay.first])
        replay = before.joined_by(replace(planned, generation=generation))
        replay.memories, replay.numbers = memories, {}
        rows = [replay.streaming_query.result.empty_table()]
        for number in range(stay.first, len(live.batches) if stay.last is None else stay.last):
            rows.append(replay.batch(live.tables()[number]))
            replay = resumed(replay) if live.restarts[number] else replay
        rows += [replay.flush()] if stay.last is None else []
        found.append((replay.streaming_query, pa.concat_tables(rows), replay))
        memories = replay.memories
    return found


def resumed(replay: Replay) -> Replay:
    """The stream with a state that has been through bytes."""
    memories = pickle.loads(pickle.dumps({number: vars(memory) for number, memory in replay.memories.items()}))
    again = copy.copy(replay)
    for number, content in memories.items():
        vars(again.memories[number]).update(content)
    return again


def expected(case: LiveCase, live: StreamingQuery, events: pa.Table) -> list[dict[str, Any]] | None:
    """The whole rows of a batch; None: rows do not tell where they begin, and what they look back at is not there."""
    found = tl.run(case.query, events, engine="local").to_pylist()
    if live.whole_from is None:
        return found
    if live.physical.plan.window.sliding:
        return [row for row in found if row["window_start"] >= live.whole_from]
    if found and "events" in found[0]:
        return [row for row in found if min(one["time"] for one in row["events"]) >= live.whole_from]
    if live.whole_from != live.since:
        return None
    later = events.filter(pa.array([time >= live.since for time in events["time"].to_pylist()], pa.bool_()))
    return list(tl.run(case.query, later, engine="local").to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_added_queries_give_what_is_whole_and_nothing_else(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(changing_cases(kind))
    def check(case: ChangingCase) -> None:
        nonlocal compared, with_rows
        monkeypatch.setattr(chunks, "MOST_CHUNKS", case.live.crowd)
        try:
            stays = played(case)
        except (BindError, PlanError):
            assume(False)
            raise
        events = in_time(case.live)
        for stay, (live, given_out, replay) in zip(case.stays, stays, strict=True):
            wanted = expected(case.live, live, events)
            if wanted is None:
                continue
            if stay.last is None:
                assert rows_of(given_out) == rows_of(wanted)
                assert not any(memory.head or memory.chunks for memory in replay.memories.values())
            else:  # windows that were open are not given out
                assert all(row in rows_of(wanted) for row in rows_of(given_out))
            compared += 1
            with_rows += len(given_out) > 0 and live.since is not None

    check()
    assert with_rows >= at_least(WITH_ROWS, compared)


def test_a_comeback_finds_nothing_of_its_earlier_stay() -> None:
    """State of before would make a match of events that lie on both sides of the gap."""
    query = "RETURN a.x, b.x AS y PATTERN SEQ(A a, B b) WITHIN 100"
    first = Replay(streaming_query(query), delay=0)
    table = pa.Table.from_pylist([{"id": 1, "type": "A", "time": 1, "x": 1}], schema=ARROW)
    first.batch(table)
    again = first.joined_by(replace(streaming_query(query), generation=1))
    again.memories = first.memories
    assert (again.streaming_query.since, again.streaming_query.whole_from) == (2, 2)
    late_a = {"id": 2, "type": "A", "time": 1, "x": 2}
    again.batch(pa.Table.from_pylist([late_a, {"id": 3, "type": "B", "time": 2, "x": 3}], schema=ARROW))
    assert len(again.flush()) == 0
    assert again.late == []
