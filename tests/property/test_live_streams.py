"""A live stream gives the rows of the same query over all events that were not late: every kind of query, however the
events are disordered, cut into micro-batches and spread over buckets, and wherever the stream is stopped and resumed.

The stream is played in this process (`streaming.replay`), with the same steps, state and bytes as on Spark;
`tests/spark/test_live_on_spark.py` runs some of it on Spark itself.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.live_cases import (
    BOARDS,
    KINDS,
    RANKED,
    LiveCase,
    live_cases,
    nested_live_cases,
    ordered_live_cases,
    ranked_live_cases,
)
from tests.property.strategies import ARROW, SCHEMA, to_table
from tests.property.strategies_nesting import KINDS as NESTED
from tests.property.strategies_order import Order

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
"""The least share of cases that have a row at all."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def streaming_query(query: str, order: Order = (), *, early: bool = False) -> StreamingQuery:
    return streaming_query_of(
        plan_query(bind(parse_query(query), replace(SCHEMA, order=order))), ARROW, "exact", early=early
    )


def played(case: LiveCase) -> tuple[pa.Table, pa.Table, Replay]:
    """What the stream gives out, the late events, and the stream at its end."""
    replay = Replay(streaming_query(case.query, case.order), case.delay, case.buckets)
    found = []
    for events, stop in zip(case.tables(), case.restarts, strict=True):
        found.append(replay.batch(events))
        replay = resumed(replay) if stop else replay
    found.append(replay.flush())
    return pa.concat_tables(found), pa.concat_tables([ARROW.empty_table(), *replay.late]), replay


def resumed(replay: Replay) -> Replay:
    """The stream with a state that has been through bytes, and a query that has been planned again."""
    memories = pickle.loads(pickle.dumps({n: vars(memory) for n, memory in replay.memories.items()}))
    again = copy.copy(replay)
    plan = replay.streaming_query.physical.plan
    again.streaming_query = streaming_query(plan.query.text or "", plan.schema.order)
    for number, content in memories.items():
        vars(again.memories[number]).update(content)
    return again


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_what_a_batch_gives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(live_cases(kind), EXAMPLES, monkeypatch)


@pytest.mark.parametrize("kind", NESTED)
def test_nested_queries(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(nested_live_cases(kind), EXAMPLES, monkeypatch)


@pytest.mark.parametrize("kind", RANKED)
def test_ranked_queries(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of a window come when it has ended; the best of all partitions are ranked across buckets."""
    compare(ranked_live_cases(RANKED[kind]), EXAMPLES, monkeypatch)


def test_boards_stand_at_all_times_as_the_ranks_of_what_has_come() -> None:
    """With early rows: a row replaces the one before of its window, partition and rank, and none is left over."""
    changed = 0

    @thorough(EXAMPLES)
    @given(ranked_live_cases(BOARDS))
    def check(case: LiveCase) -> None:
        nonlocal changed
        try:
            replay = Replay(streaming_query(case.query, early=True), case.delay, case.buckets)
        except (BindError, PlanError):
            assume(False)
            raise
        board: dict[tuple[Any, ...], dict[str, Any]] = {}
        arrived: list[pa.Table] = []
        for events in case.tables():
            for row in replay.batch(events).to_pylist():
                place = (row["window_start"], row.get("k"), row["rank"])
                changed += place in board and board[place] != row
                board[place] = row
            arrived.append(events)
            missed = {number for late in replay.late for number in late["id"].to_pylist()}
            in_time = [row for table in arrived for row in table.to_pylist() if row["id"] not in missed]
            assert rows_of(board.values()) == rows_of(tl.run(case.query, to_table(in_time), engine="local"))

    check()
    assert changed


@pytest.mark.parametrize("kind", KINDS)
def test_equal_times_in_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns order the events of equal time, which may arrive in any order and in different batches."""
    compare(ordered_live_cases(kind), EXAMPLES // 3, monkeypatch)


def compare(live: st.SearchStrategy[LiveCase], examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play random streams and compare each with a batch over the events that were not late."""
    compared, with_rows = 0, 0

    @thorough(examples)
    @given(live)
    def check(case: LiveCase) -> None:
        nonlocal compared, with_rows
        monkeypatch.setattr(chunks, "MOST_CHUNKS", case.crowd)
        try:
            found, late, replay = played(case)
        except (BindError, PlanError):
            assume(False)
            raise
        events = pa.concat_tables([ARROW.empty_table(), *case.tables()])
        missed = set(late["id"].to_pylist())
        in_time = events.filter(pa.array([number not in missed for number in events["id"].to_pylist()], pa.bool_()))
        expected = tl.run(case.query, in_time, engine="local", order=case.order)
        assert rows_of(found) == rows_of(expected)
        assert not any(memory.head or memory.chunks for memory in replay.memories.values())
        compared += 1
        with_rows += len(found) > 0

    check()
    assert with_rows >= at_least(WITH_ROWS, compared)
