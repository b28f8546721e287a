"""What is refused before Spark starts, which takes seconds: missing files, wrong columns, queries that cannot run.

Footers of Parquet tell the columns; everything else is read by Arrow anyway, and handed to Spark as it is. What passes
here may still be refused later, by what only Spark or the events know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trendloom.engines.inspect import schema_of
from trendloom.errors import BindError
from trendloom.io.events import Events
from trendloom.io.read import parquet_columns, parquet_path
from trendloom.lang.tree import Query
from trendloom.model.schema import Schema
from trendloom.physical.plan import plan_physically
from trendloom.plan.bind import bind

if TYPE_CHECKING:
    from trendloom.engines.workload import Options


def checked(queries: tuple[Query, ...], source: object, options: Options) -> object:
    """The source, or its events where they had to be read; refuses what cannot be answered."""
    from trendloom.engines.workload import load, schema_of_columns

    path = parquet_path(source)
    if path is None:
        events = source if isinstance(source, Events) else load(source, options)
        _plan(queries, events.schema, options)
        return events
    try:
        _plan(queries, schema_of_columns(parquet_columns(path), options), options)
    except BindError:  # columns that are NULL everywhere fit everywhere, and the footers know them
        _plan(queries, schema_of(source, options), options)
    return source


def _plan(queries: tuple[Query, ...], schema: Schema, options: Options) -> None:
    for plan in [bind(query, schema) for query in queries]:
        plan_physically(plan, options.limits)
