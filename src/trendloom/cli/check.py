"""`trendloom check`: is this a query, does it fit these events, is it probably what was meant?"""

from __future__ import annotations

import typer

from trendloom.cli.console import report_warnings
from trendloom.cli.options import Messages, QueryFile, SomeEvents, command_options, read_query
from trendloom.errors import QueryNote
from trendloom.options import Options

EPILOG = """
[bold]Examples[/]

  trendloom check kites.tql

  trendloom check kites.tql --events checks.parquet --time at
"""


@command_options("check")
def check(query_file: QueryFile, *, events: SomeEvents = None, options: Options, messages: Messages) -> None:
    """Parse queries and, given events, look up every name and type. Nothing runs."""
    from trendloom.engines.introspection import check_text
    from trendloom.runtime.reading import queries_of

    text = read_query(query_file)
    warnings = check_text(text, events or None, options)
    if messages.quiet:
        return
    report_warnings(warnings)
    doubts = sum(not isinstance(warning, QueryNote) for warning in warnings)
    typer.echo(_verdict(len(queries_of(text, options.query)), doubts, seen=bool(events) or options.schema is not None))


def _verdict(queries: int, warnings: int, *, seen: bool) -> str:
    found = f"ok: {queries} {'query' if queries == 1 else 'queries'}"
    found += f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return found if seen else f"{found} (attributes not looked up; --events FILE does that)"
