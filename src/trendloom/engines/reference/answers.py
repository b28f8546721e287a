"""The reference evaluator as an engine: rows of the definitions as Arrow tables like every engine's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.engines.answers import Answer, Watch
from trendloom.errors import QueryWarning
from trendloom.expr.decimals import exact_array
from trendloom.expr.vectors import from_arrow, from_list, to_arrow
from trendloom.frontend.tree import Query
from trendloom.io.events import Events
from trendloom.logical.bind import bind_workload
from trendloom.logical.plan import RANK, SCORE, Aggregation, Plan, Ranking, Value
from trendloom.model.schema import Kind
from trendloom.model.selection import Trends
from trendloom.options import Options
from trendloom.reference.evaluate import evaluate
from trendloom.reference.stream import Row
from trendloom.runtime.reading import load_needed
from trendloom.runtime.result_columns import events_type, exactly_named, time_array, total_type, value_type
from trendloom.runtime.statistics import describe_passed_later


def answers(
    queries: tuple[Query, ...], source: object, options: Options, _: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """Warnings about the events, and the answers; rows are computed when they are read."""
    events = load_needed(queries, source, options)
    plans = bind_workload(queries, events.schema)
    return events.warnings, [
        Answer(p, run(p, events, limit=options.limit), describe_passed_later(p, events)) for p in plans
    ]


def run(plan: Plan, events: Events, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a query by the definitions; exact numbers only."""
    found = evaluate(plan, plain_rows(events))[:limit]
    yield from table_of_rows(plan, events.table, found).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], table_of_rows(plan, events.table, []).schema)
    ]


def plain_rows(events: Events) -> list[dict[str, Any]]:
    """The events as dictionaries of plain values, times as ticks; of Parquet, only what the query needs was read."""
    columns: dict[str, list[Any]] = {}
    for column in (one for one in events.schema.columns if one.name in events.table.column_names):
        if column.kind is Kind.OTHER:
            columns[column.name] = events.table[column.name].to_pylist()
        else:
            columns[column.name] = from_arrow(events.table[column.name], column.kind).to_list()
    if events.ticks is not None:
        columns[events.schema.time] = events.ticks.tolist()
    names = list(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def table_of_rows(plan: Plan, table: pa.Table, rows: Sequence[Row]) -> pa.Table:
    """Rows of the definitions as an engine gives them; `table`: the events."""
    schema = table.schema
    columns: dict[str, Any] = {}
    given = plan.group_by if isinstance(plan.output, Aggregation) else plan.partition
    for number, name in enumerate(given):
        kind = plan.schema.kind(name) or Kind.OTHER
        keys = from_list([row.partition[number] for row in rows], kind, plan.schema.scale(name))
        columns[name] = to_arrow(keys, schema.field(name).type)
    if plan.window.sliding:
        time_type = schema.field(plan.schema.times).type
        bounds = [row.window or (0, 0) for row in rows]
        columns["window_start"] = time_array(np.array([start for start, _ in bounds], np.int64), time_type)
        columns["window_end"] = time_array(np.array([end for _, end in bounds], np.int64), time_type)
    if isinstance(plan.output, Trends):
        columns["events"] = _events(table, rows)
    else:
        for number, value in enumerate(plan.output.values):
            columns[value.name] = _value(plan, schema, value, [(row.values or ())[number] for row in rows])
    if plan.output is Trends.COLLAPSED:
        columns["matches"] = exact_array([row.matches for row in rows])
    if plan.ranking is not None:
        columns[RANK] = pa.array([row.rank for row in rows], pa.int64())
        columns[SCORE] = _scores(plan.ranking, rows)
    if plan.schema.imprecise and not isinstance(plan.output, Aggregation):
        time_type = schema.field(plan.schema.times).type
        columns["confidence"] = pa.array([float(row.confidence or 0) for row in rows], pa.float64())
        columns["time_low"] = time_array(np.array([row.time_low or 0 for row in rows], np.int64), time_type)
        columns["time_high"] = time_array(np.array([row.time_high or 0 for row in rows], np.int64), time_type)
    exact = [] if isinstance(plan.output, Trends) else [value.name for value in plan.output.values if value.kind.exact]
    return exactly_named(columns, [*exact, SCORE])


def _scores(ranking: Ranking, rows: Sequence[Row]) -> pa.Array:
    """The scores as the type of their kind; exact ones are as wide as they need."""
    type_ = None if ranking.kind.exact else pa.float64()
    return to_arrow(from_list([row.score for row in rows], ranking.kind, ranking.scale), type_)


def _events(table: pa.Table, rows: Sequence[Row]) -> pa.Array:
    bound = [row.events or () for row in rows]
    offsets = np.cumsum([0, *map(len, bound)])
    flat = [pair for events in bound for pair in events]
    taken = table.take(pa.array([number for number, _ in flat], pa.int64()))
    fields = [taken[name].combine_chunks() for name in taken.column_names]
    fields.append(pa.array([variable for _, variable in flat], pa.string()))
    struct = pa.StructArray.from_arrays(fields, fields=list(events_type(table.schema).value_type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct)


def _value(plan: Plan, schema: pa.Schema, value: Value, found: list[Any]) -> pa.Array:
    if isinstance(plan.output, Aggregation):
        wanted = total_type(value, plan, schema, "exact")
        if wanted is None:
            return to_arrow(from_list(found, value.kind, value.scale))
    else:
        wanted = value_type(value, plan, schema)
    return to_arrow(from_list(found, value.kind, value.scale), wanted)
