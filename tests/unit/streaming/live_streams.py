"""Small live streams for tests: a query over rows (type, time, k, x), played in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.runtime.planning import plan_query
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of

COLUMNS = {"type": (Kind.STRING, pa.string()), "time": (Kind.INT, pa.int64()), "k": (Kind.INT, pa.int64()),
           "x": (Kind.INT, pa.int64())}  # fmt: skip
ARROW = pa.schema([(name, kind) for name, (_, kind) in COLUMNS.items()])
SCHEMA = Schema(tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()))

Row = tuple[str, int | None, int | None, int]


def streaming_query(query: str, *, early: bool = False, numeric: str = "exact") -> StreamingQuery:
    return streaming_query_of(plan_query(bind(parse_query(query), SCHEMA)), ARROW, numeric, early=early)


def events(rows: Sequence[Row]) -> pa.Table:
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(_columns(rows), ARROW.types, strict=True)], ARROW.names
    )


def _columns(rows: Sequence[Row]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]


def stream(query: str, *, delay: int = 0, buckets: int = 2, early: bool = False) -> Replay:
    return Replay(streaming_query(query, early=early), delay, buckets)
