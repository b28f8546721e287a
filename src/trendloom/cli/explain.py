"""`trendloom explain`: what a query was understood to mean, and how it would run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from trendloom.cli import options as o
from trendloom.cli.console import output_console, reporting, tell_note
from trendloom.cli.options import read_query
from trendloom.cli.picture import check_target

if TYPE_CHECKING:
    from trendloom.engines.introspection import Explained

EPILOG = """
[bold]Examples[/]

  trendloom explain kites.tql

  trendloom explain kites.tql --events checks.parquet --engine local --query kites

  trendloom explain kites.tql --events checks.parquet --memory-limit 512M --analyze

  trendloom explain all.tql --events checks.parquet --picture sharing.svg
"""
HEADINGS = r"^\S.*(?=\n[├└])|^(How far matching gets|Measured)  .*$"
GUIDES = r"(?m)^[│├└─ ]+"


def explain(
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
    engine: o.EngineName = o.Engine.spark,
    memory_limit: o.MemoryLimit = None,
    analyze: Annotated[
        bool,
        typer.Option(
            "--analyze",
            rich_help_panel=o.ENGINE,
            help="Also show how many events pass each condition, how far matching gets and what stops it; and run the "
            "query, in this process, to see what that takes beside what was estimated.",
        ),
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint", metavar="FOLDER", rich_help_panel=o.INPUT, show_default=False,
            help="The checkpoint of `trendloom stream`: expect of a query what the stream's earlier batches tell.",
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(
            "--picture", metavar="FILE", rich_help_panel=o.OUTPUT, show_default=False,
            help="Draw the pattern of a query, or what the queries of a workload may share; .svg or .png.",
        ),
    ] = None,
    debug: o.Debug = False,
) -> None:  # fmt: skip
    """Show the logical, optimized and physical plan of queries, and why each algorithm was chosen.

    Nothing runs without --analyze. Where an algorithm builds a graph first, it is built, to show how it is cut.
    """
    with reporting(debug=debug):
        from trendloom.engines.introspection import explain_queries
        from trendloom.options import Options, columns_named

        options = Options(
            engine.value, time, type, time_unit, time_low=time_low, time_high=time_high, query=query,
            memory_limit=memory_limit, order=columns_named(order), schema=schema, time_zone=time_zone,
            time_error=time_error, time_probability=time_probability, time_grain=time_grain, time_points=time_points,
        )  # fmt: skip
        text = read_query(query_file)
        target = None if picture is None else check_target(picture)
        explained = explain_queries(text, events or None, options, analyze=analyze, checkpoint=checkpoint)
        _show(explained.text)
        if target is not None:
            _draw(explained, target)


def _draw(explained: Explained, target: Path) -> None:
    from trendloom.viz.query import draw_explained

    draw_explained(explained.plans, explained.shared, target)
    tell_note(f"drawn: {target}")


def _show(text: str) -> None:
    console = output_console()
    if not console.is_terminal:
        typer.echo(text)
        return
    shown = Text(text)
    shown.highlight_regex(r"(?m)" + HEADINGS, "bold")
    shown.highlight_regex(GUIDES, "dim")
    shown.highlight_regex(r"(?m)^-- .*$", "yellow")
    console.print(shown, soft_wrap=True)
