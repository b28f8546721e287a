"""A live stream of imprecise times gives the rows of a batch over all events that were not late, however it is cut.

The watermark bounds the earliest times of what is still to come. The stream is played in this process
(`streaming.replay`), with the same steps, state and bytes as on Spark.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.strategies_imprecise import ANY, NEXT, ImpreciseCase, ImpreciseKnobs, Row, imprecise_cases
from tests.property.test_imprecise import assert_rows_equal

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.options import Options
from trendloom.runtime.planning import planned_alone
from trendloom.runtime.reading import schema_of_columns
from trendloom.streaming import state as chunks
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KNOBS = {
    "any": ImpreciseKnobs(semantics=(ANY,), most_events=8, most_worlds=10**6),
    "next": ImpreciseKnobs(semantics=(NEXT,), most_events=8, most_worlds=10**6),
    "NOT": ImpreciseKnobs(types="AAB", conditions=False, most_events=7, most_worlds=10**6),
    "totals": ImpreciseKnobs(outputs=("totals",), most_events=8, most_worlds=10**6),
}
EXAMPLES = amount(40)
WITH_ROWS = 0.2


@dataclass(frozen=True)
class ImpreciseArrivals:
    """A case whose events arrive in batches; `points`: the most that an interval may have."""

    case: ImpreciseCase
    batches: tuple[tuple[Row, ...], ...]
    delay: int
    buckets: int
    restarts: tuple[bool, ...]
    crowd: int


@st.composite
def arrivals(draw: st.DrawFn, knobs: ImpreciseKnobs) -> ImpreciseArrivals:
    """How the events of a case arrive: by their earliest times, in some disorder."""
    case = draw(imprecise_cases(knobs))
    disorder = draw(st.sampled_from([0, 2, 5, 20]))
    keyed = [(event["low"] + draw(st.integers(0, disorder)), n) for n, event in enumerate(case.events)]
    arrival = [case.events[n] for _, n in sorted(keyed)]
    cuts = sorted(draw(st.lists(st.integers(0, len(arrival)), max_size=6)))
    batches = tuple(tuple(arrival[a:b]) for a, b in pairwise([0, *cuts, len(arrival)]))
    query = case.query if "WITHIN" in case.query else _bounded(case.query, draw(st.integers(2, 9)))
    options = {**case.options, "time_points": draw(st.sampled_from([6, 50, 1000]))}
    return ImpreciseArrivals(
        ImpreciseCase(query, case.events, options),
        batches,
        delay=draw(st.sampled_from([0, 0, 1, 3, 8])),
        buckets=draw(st.integers(1, 3)),
        restarts=tuple(draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))),
        crowd=draw(st.sampled_from([0, 1, 2, 16])),
    )


def _bounded(query: str, within: int) -> str:
    """The query with WITHIN, before CONFIDENCE if there is one."""
    before, confidence, rest = query.partition("\nCONFIDENCE")
    return f"{before}\nWITHIN {within}{confidence}{rest}"


def streaming_query(case: ImpreciseCase) -> StreamingQuery:
    columns = case.table(()).schema
    schema = schema_of_columns(columns, Options(**case.options))
    return streaming_query_of(planned_alone(parse_query(case.query), schema), columns, "exact")


def played(live: ImpreciseArrivals) -> tuple[pa.Table, set[int], Replay]:
    """What the stream gives out, the ids of late events, and the stream at its end."""
    replay = Replay(streaming_query(live.case), live.delay, live.buckets)
    found = []
    for events, stop in zip(live.batches, live.restarts, strict=True):
        found.append(replay.batch(live.case.table(events)))
        replay = resumed(replay, live.case) if stop else replay
    found.append(replay.flush())
    return pa.concat_tables(found), {number for late in replay.late for number in late["id"].to_pylist()}, replay


def resumed(replay: Replay, case: ImpreciseCase) -> Replay:
    """The stream with a state that has been through bytes, and a query that has been planned again."""
    memories: dict[int, dict[str, Any]] = pickle.loads(pickle.dumps({n: vars(m) for n, m in replay.memories.items()}))
    again = copy.copy(replay)
    again.streaming_query = streaming_query(case)
    for number, content in memories.items():
        vars(again.memories[number]).update(content)
    return again


@pytest.mark.parametrize("kind", KNOBS)
def test_a_stream_gives_what_a_batch_gives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(arrivals(KNOBS[kind]))
    def check(live: ImpreciseArrivals) -> None:
        nonlocal compared, with_rows
        monkeypatch.setattr(chunks, "MOST_CHUNKS", live.crowd)
        try:
            found, missed, replay = played(live)
        except (BindError, PlanError):
            return
        case = live.case
        in_time = tuple(row for row in case.events if row["id"] not in missed)
        expected = tl.run(case.query, case.table(in_time), **case.options)
        assert_rows_equal(found.select(expected.column_names), expected)
        assert not any(memory.head or memory.chunks for memory in replay.memories.values())
        compared += 1
        with_rows += len(found) > 0

    check()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= at_least(WITH_ROWS, compared)
