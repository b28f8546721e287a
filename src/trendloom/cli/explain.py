"""`trendloom explain`: what a query was understood to mean, and how it would run.

`trendloom check`: is this a query, does it fit these events, is it probably what was meant?
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from trendloom.cli.console import output_console, report_note, report_warnings
from trendloom.cli.options import Messages, QueryFile, SomeEvents, command_options, picture_target, read_query
from trendloom.errors import QueryNote
from trendloom.options import ENGINE, EVENTS, OUTPUT, Options, option_field

if TYPE_CHECKING:
    from trendloom.engines.introspection import Explained


EXPLAIN_EPILOG = """
[bold]Examples[/]

  trendloom explain kites.tql

  trendloom explain kites.tql --events checks.parquet --engine local --query kites

  trendloom explain kites.tql --events checks.parquet --memory-limit 512M --analyze

  trendloom explain all.tql --events checks.parquet --picture sharing.svg
"""
HEADINGS = r"^\S.*(?=\n[├└])|^(How far matching gets|Measured)  .*$"
GUIDES = r"(?m)^[│├└─ ]+"


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """What is explained beside the plans."""

    # fmt: off
    analyze: bool = option_field(
        False,
        "Also show how many events pass each condition, how far matching gets and what stops it; and run the query, in "
        "this process, to see what that takes beside what was estimated.",
        ENGINE, commands="explain")
    checkpoint: str | None = option_field(
        None, "The checkpoint of `trendloom stream`: expect of a query what the stream's earlier batches tell.", EVENTS,
        commands="explain", metavar="FOLDER")
    picture: str | None = option_field(
        None, "Draw the pattern of a query, or what the queries of a workload may share; .svg or .png.", OUTPUT,
        commands="explain", metavar="FILE")
    # fmt: on


@command_options("explain")
def explain(
    query_file: QueryFile, *, events: SomeEvents = None, options: Options, more: ExplainOptions, messages: Messages
) -> None:
    """Show the logical, optimized and physical plan of queries, and why each algorithm was chosen.

    Nothing runs without --analyze. Where an algorithm builds a graph first, it is built, to show how it is cut.
    """
    from trendloom.engines.introspection import explain_queries

    text = read_query(query_file)
    target = None if more.picture is None else picture_target(more.picture)
    explained = explain_queries(text, events or None, options, analyze=more.analyze, checkpoint=more.checkpoint)
    _print(explained.text)
    if target is not None:
        _draw(explained, target)


def _draw(explained: Explained, target: Path) -> None:
    from trendloom.viz.query import draw_explained

    draw_explained(explained.plans, explained.shared, target)
    report_note(f"drawn: {target}")


def _print(text: str) -> None:
    console = output_console()
    if not console.is_terminal:
        typer.echo(text)
        return
    styled = Text(text)
    styled.highlight_regex(r"(?m)" + HEADINGS, "bold")
    styled.highlight_regex(GUIDES, "dim")
    styled.highlight_regex(r"(?m)^-- .*$", "yellow")
    console.print(styled, soft_wrap=True)


# ----------------------------------------------------------------------------------------------- check


CHECK_EPILOG = """
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
