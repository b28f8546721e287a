"""From what a caller gives to queries and events: the text parsed, the source found, its events read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from trendloom.errors import OptionError, did_you_mean
from trendloom.frontend.tql.parser import parse
from trendloom.frontend.tree import Event, Query, attributes_of, nodes_of
from trendloom.io.events import Events, prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.io.read import Opened, open_events
from trendloom.model.schema import Schema
from trendloom.model.selection import Trends
from trendloom.options import Options


def queries_of(text: str, name: str | None = None) -> tuple[Query, ...]:
    """The queries of a text, or the one of that name."""
    queries = parse(text)
    if name is None:
        return queries
    chosen = tuple(query for query in queries if query.name == name)
    if not chosen:
        names = [query.name for query in queries if query.name]
        raise OptionError(
            f"there is no query '{name}'", hint=did_you_mean(name, names) or "the text has one unnamed query"
        )
    return chosen


def for_queries(options: Options, queries: Sequence[Query]) -> Options:
    """The options with the types that the queries name, which reading the events depends on."""
    named = dict.fromkeys(event.type for query in queries for event in nodes_of(query.pattern, Event))
    return replace(options, query_types=tuple(named))


def is_spark_frame(source: object) -> bool:
    """Whether this is a DataFrame of Spark's, classic or of Spark Connect; loads nothing to find out."""
    return type(source).__module__.partition(".")[0] == "pyspark" and hasattr(source, "sparkSession")


def opened(source: object, options: Options) -> Opened:
    """The source, found and understood as the options say, before its events are read."""
    return open_events(source, schema=options.schema, time_zone=options.time_zone)


def _coder(texts: Any) -> Any:
    """As `code_short_texts`; loads the kernels, which few events do not need."""
    from trendloom.kernels.columns.keys import code_short_texts

    return code_short_texts(texts)


def load(source: object, options: Options) -> Events:
    """Read and check a stream of events."""
    return prepare(opened(source, options).read(), **options.columns(), coder=_coder)


def schema_of_columns(columns: pa.Schema, options: Options) -> Schema:
    """What columns of these types mean; without events the types present are not known."""
    events = prepare(columns.empty_table(), **options.columns())
    return replace(events.schema, present=None)


def load_needed(queries: tuple[Query, ...], source: object, options: Options) -> Events:
    """Read and check a stream, of Parquet only the columns that the queries name.

    Rows of TRENDS have all of them, and matches of equal scores are ordered by all values of their events.
    """
    found = opened(source, options)
    whole_events = any(isinstance(query.returns, Trends) or query.rank_by is not None for query in queries)
    if not isinstance(found, ParquetFiles) or whole_events or options.type not in found.columns.names:
        return load(found, options)  # whether another column holds the types is seen by all of them
    whole = schema_of_columns(found.columns, options)
    named = {name for query in queries for name in attributes_of(query)}
    given = {
        *options.order,
        *(whole.imprecision.columns if whole.imprecision is not None else ()),
        options.time,
        options.type,
    }
    table = found.read([name for name in found.columns.names if name in named | given])
    events = prepare(table, **options.columns(), coder=_coder)
    columns = tuple(events.schema.column(c.name) or c for c in whole.columns)
    return replace(events, schema=replace(events.schema, columns=columns))
