"""The command `trendloom`: run queries over files of events, check them, and explain how they would run.

Commands import engines when they are called, so help and usage errors come at once. What a command gives out goes to
standard output; everything about the run (warnings, progress, notes, errors) goes to standard error.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from trendloom import __version__
from trendloom.cli import archive, check, dashboard, diagnose, explain, monitor, run, stream, warm
from trendloom.cli.diagnose import IntervalCommand

EXAMPLES = r"""
[bold]Try[/]

  trendloom check kites.tql

  trendloom explain kites.tql --events checks.parquet

  trendloom run kites.tql --events checks.parquet --engine local --limit 10

Exit status: 0 fine, 1 bad data or a failed run, 2 a bad query or bad options.
"""

app = typer.Typer(
    name="trendloom",
    help="Find, count and rank patterns in event streams, on Apache Spark or in one process.",
    epilog=EXAMPLES,
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trendloom {__version__}")
        raise typer.Exit


@app.callback()
def _trendloom(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find, count and rank patterns in event streams, on Apache Spark or in one process."""


app.command(epilog=run.EPILOG)(run.run)
app.command(epilog=stream.EPILOG, cls=stream.StreamCommand)(stream.stream)
app.command(epilog=archive.EPILOG)(archive.archive)
app.command(epilog=check.EPILOG)(check.check)
app.command(epilog=explain.EPILOG)(explain.explain)
app.command(epilog=diagnose.EPILOG, cls=IntervalCommand)(diagnose.diagnose)
app.command(epilog=monitor.EPILOG)(monitor.monitor)
app.command(epilog=dashboard.EPILOG)(dashboard.dashboard)
app.command(epilog=warm.EPILOG)(warm.warm)


def main() -> None:
    """Run the command that this process was called with; it has been prepared for (`starting`)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without box characters still shows the rest
    app(prog_name="trendloom")
