"""Check queries and their source before Spark starts, which takes seconds.

Missing files, wrong columns and queries that cannot run are refused here. Footers of Parquet give the columns;
everything else is read by Arrow anyway, and handed to Spark as it is. What passes may still be refused later, by what
only Spark or the events show.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from trendloom.engines.introspection import schema_of
from trendloom.engines.spark.frames import remote_parquet
from trendloom.errors import BindError
from trendloom.frontend.tree import Query
from trendloom.io.events import prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.logical.bind.workload import for_every_query, refuse_clashing_columns
from trendloom.options import Options
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import for_queries, load, opened, schema_of_columns
from trendloom.streaming.streaming_query import StreamingQuery, flow_of


def checked(queries: tuple[Query, ...], source: object, options: Options) -> object:
    """The source, or its events where they had to be read; refuses what cannot be answered."""
    remote = remote_parquet(source, options.schema)
    if remote is not None:
        return remote
    found = opened(source, options)
    if not isinstance(found, ParquetFiles):
        events = load(found, options)
        planned(queries, events.schema, options.limits)
        return events
    try:
        planned(queries, schema_of_columns(found.columns, options), options.limits)
    except BindError:  # columns that are NULL everywhere fit everywhere, and the footers know them
        _, schema = schema_of(found, options)
        planned(queries, schema, options.limits)
    return found


def check_live(queries: tuple[Query, ...], columns: pa.Schema, options: Options) -> None:
    """Refuse a workload that cannot run over a stream of events with these columns."""
    events = prepare(columns.empty_table(), **for_queries(options, queries).columns())
    schema = replace(events.schema, present=None)
    workload = planned(queries, schema, options.limits)
    refuse_clashing_columns(workload.bound)
    flows_of(workload.queries, events.table.schema, options.numeric)


def flows_of(
    queries: tuple[Physical, ...], columns: pa.Schema, numeric: str, *, early: bool = False
) -> tuple[StreamingQuery, ...]:
    """The queries as flows over events with these columns; an error names all that a live stream cannot serve."""
    by_name = {physical.plan.name: physical for physical in queries}
    plans = [physical.plan for physical in queries]
    return tuple(for_every_query(plans, lambda plan: flow_of(by_name[plan.name], columns, numeric, early=early)))
