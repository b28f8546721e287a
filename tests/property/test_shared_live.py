"""Random live streams of queries that are answered together: cut anywhere, with queries that join and leave.

Every query has the rows of the same query over all events that came in time, of windows that begin when it is there
and end before it leaves, whichever way its group is counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough

import trendloom as tl
from trendloom.logical.statistics import nothing_known
from trendloom.options import Options
from trendloom.planner.sharing.groups import kernel_for
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import queries_of, schema_of_columns
from trendloom.streaming.partition_groups import GroupStep, StreamQueryGroup
from trendloom.streaming.state import Kept
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of

EXAMPLES = amount(30)
TYPES = "ABC"
SCHEMA = pa.schema([("time", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("x", pa.int64())])
FINAL = 10**6

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@st.composite
def queries(draw: st.DrawFn, number: int) -> str:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    steps = [f"{kind} v{place}{draw(st.sampled_from(['', '', '+']))}" for place, kind in enumerate(types)]
    if len(steps) > 1 and draw(st.booleans()):
        steps.insert(1, f"NOT {draw(st.sampled_from(TYPES))} n")
    test = f" AND v0.x > {draw(st.integers(0, 2))}" if draw(st.booleans()) else ""
    value = f", SUM({types[0]}.x), MAX({types[-1]}.x)" if draw(st.booleans()) else ""
    window = draw(st.sampled_from(["WITHIN 6 SLIDE 3", "WITHIN 6 SLIDE 6", "WITHIN 4 SLIDE 5", "WITHIN 9 SLIDE 3"]))
    return (
        f"QUERY q{number}: RETURN k, COUNT(*){value} PATTERN SEQ({', '.join(steps)}) WHERE [k]{test} "
        f"GROUP BY k {window}"
    )


@st.composite
def batches(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Batches of events whose times go up, by and large."""
    found, now = [], 0
    for _ in range(draw(st.integers(1, 6))):
        some = [
            {
                "time": now + draw(st.integers(-4, 6)),
                "type": draw(st.sampled_from(TYPES)),
                "k": draw(st.integers(0, 1)),
                "x": draw(st.sampled_from([1, 2, 3, None])),
            }
            for _ in range(draw(st.integers(0, 8)))
        ]
        found.append(some)
        now += draw(st.integers(0, 12))
    return found


@st.composite
def stays(draw: st.DrawFn, count: int) -> list[tuple[int, int]]:
    """For each query from which batch on it is there, and up to which."""
    found = []
    for _ in range(count):
        first = draw(st.sampled_from([0, 0, 1, 2]))
        found.append((first, draw(st.sampled_from([99, 99, first + 1, first + 2]))))
    return found


class Group:
    """A group of flows on a stream, in one bucket."""

    def __init__(self, texts: list[str], stay: list[tuple[int, int]], delay: int) -> None:
        plans = planned(queries_of("\n".join(texts)), schema_of_columns(SCHEMA, Options()))
        self.streaming_queries = [streaming_query_of(one, SCHEMA, "exact") for one in plans.queries]
        self.stay, self.delay = stay, delay
        self.memory, self.watermark, self.greatest = Kept(), None, None
        self.rows: dict[str, list[dict[str, Any]]] = {
            streaming_query.name: [] for streaming_query in self.streaming_queries
        }
        self.joined: dict[str, int | None] = {}
        self.left: dict[str, int] = {}  # the watermark of its last step
        self.in_time: list[dict[str, Any]] = []

    def present(self, batch: int) -> list[StreamingQuery]:
        found = []
        for streaming_query, (first, end) in zip(self.streaming_queries, self.stay, strict=True):
            if first <= batch < end:
                since = None if self.greatest is None else self.greatest + 1
                self.joined.setdefault(streaming_query.name, since)
                found.append(replace(streaming_query, since=self.joined[streaming_query.name], grouped=True))
                self.left[streaming_query.name] = -FINAL if self.watermark is None else self.watermark
        return found

    def step(self, number: int, events: list[dict[str, Any]], *, backwards: bool) -> None:
        streaming_queries = self.present(number)
        accepted = [one for one in events if self.watermark is None or one["time"] >= self.watermark]
        self.in_time += accepted
        if streaming_queries:
            kernel = kernel_for(
                [streaming_query.physical for streaming_query in streaming_queries], ("k",), nothing_known, "exact"
            )
            group = StreamQueryGroup(tuple(streaming_queries), replace(kernel, backwards=backwards), kernel.asked)
            step = GroupStep(group, self.memory, self.watermark)
            for streaming_query, batch in step.rows(pa.Table.from_pylist(events, SCHEMA)):
                self.rows[streaming_query.name] += batch.to_pylist()
            assert (0 if step.late is None else len(step.late)) <= len(events) - len(accepted)
        else:
            self.memory.clear()
        if events:
            self.greatest = max([one["time"] for one in events] + ([] if self.greatest is None else [self.greatest]))
            moved = self.greatest - self.delay
            self.watermark = moved if self.watermark is None else max(self.watermark, moved)

    def finish(self, number: int) -> None:
        self.watermark = FINAL
        self.step(number, [], backwards=False)


def known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: int(value) if value is not None else None for name, value in row.items()}


def test_every_query_has_its_rows() -> None:
    changed = 0

    @thorough(EXAMPLES)
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        nonlocal changed
        texts = [data.draw(queries(number)) for number in range(data.draw(st.integers(1, 4)))]
        stream, stay = data.draw(batches()), data.draw(stays(len(texts)))
        group = Group(texts, stay, data.draw(st.integers(0, 5)))
        for number, events in enumerate(stream):
            group.step(number, events, backwards=data.draw(st.booleans()))
        group.finish(len(stream))
        everything = pa.Table.from_pylist(group.in_time, SCHEMA)
        for streaming_query, text in zip(group.streaming_queries, texts, strict=True):
            wanted = []
            if streaming_query.name in group.joined:
                streaming_query = replace(streaming_query, since=group.joined[streaming_query.name])
                begin = -FINAL if streaming_query.whole_from is None else streaming_query.whole_from
                end = group.left[streaming_query.name]
                rows = tl.run(text, everything).drop_columns(["query"]).to_pylist()
                wanted = [known(row) for row in rows if row["window_start"] >= begin and row["window_end"] <= end]
            found = [known(row) for row in group.rows[streaming_query.name]]
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), text
        changed += any(first or end < len(stream) for first, end in stay)

    compare()
    assert changed >= at_least(0.3, EXAMPLES)
