"""`trendloom check`: is this a query, does it fit these events, is it probably what was meant?"""

from __future__ import annotations

import typer

from trendloom.cli import options as o
from trendloom.cli.console import reporting, tell_warnings
from trendloom.cli.options import read_query
from trendloom.errors import QueryNote

EPILOG = """
[bold]Examples[/]

  trendloom check kites.tql

  trendloom check kites.tql --events checks.parquet --time at
"""


def check(
    query_file: o.QueryFile,
    events: o.SomeEvents = None,
    query: o.QueryName = None,
    time: o.Time = "time",
    type: o.Type = "type",
    time_unit: o.TimeUnit = None,
    time_low: o.TimeLow = None,
    time_high: o.TimeHigh = None,
    time_error: o.TimeError = None,
    time_probability: o.TimeProbability = None,
    time_grain: o.TimeGrain = None,
    time_points: o.TimePoints = None,
    order: o.Order = None,
    schema: o.Columns = None,
    time_zone: o.TimeZone = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Parse queries and, given events, look up every name and type. Nothing runs."""
    with reporting(debug=debug):
        from trendloom.engines.introspection import check_text
        from trendloom.options import Options, columns_named
        from trendloom.runtime.reading import queries_of

        text = read_query(query_file)
        columns = Options(
            time=time, type=type, time_unit=time_unit, time_low=time_low, time_high=time_high, query=query,
            order=columns_named(order), schema=schema, time_zone=time_zone, time_error=time_error,
            time_probability=time_probability, time_grain=time_grain, time_points=time_points,
        )  # fmt: skip
        warnings = check_text(text, events or None, columns)
        if quiet:
            return
        tell_warnings(warnings)
        doubts = sum(not isinstance(warning, QueryNote) for warning in warnings)
        typer.echo(_verdict(len(queries_of(text, query)), doubts, seen=bool(events) or schema is not None))


def _verdict(queries: int, warnings: int, *, seen: bool) -> str:
    found = f"ok: {queries} {'query' if queries == 1 else 'queries'}"
    found += f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return found if seen else f"{found} (attributes not looked up; --events FILE does that)"
