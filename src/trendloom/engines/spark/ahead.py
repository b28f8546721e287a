"""What is refused before Spark starts, which takes seconds: missing files, wrong columns, queries that cannot run.

Footers of Parquet tell the columns; everything else is read by Arrow anyway, and handed to Spark as it is. What passes
here may still be refused later, by what only Spark or the events know.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from trendloom.engines.live.flow import flow_of
from trendloom.engines.looking.inspect import schema_of
from trendloom.engines.options import Options
from trendloom.engines.planning import planned
from trendloom.engines.reading import load, opened, schema_of_columns
from trendloom.engines.spark.parquet import remote_parquet
from trendloom.errors import BindError
from trendloom.io.events import prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.lang.tree import Query


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
    events = prepare(columns.empty_table(), **options.for_queries(queries).columns())
    schema = replace(events.schema, present=None)
    for physical in planned(queries, schema, options.limits).queries:
        flow_of(physical, events.table.schema, options.numeric)
