"""The command `trendloom` with all its commands; here are `dashboard` and `warm`, others have modules of their own.

Commands import engines when they are called, so help and usage errors come at once. The result of a command goes to
standard output; everything about the run (warnings, progress, notes, errors) goes to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from trendloom import __version__
from trendloom.cli import archive, diagnose, explain, run, stream
from trendloom.cli.console import progress, report_note
from trendloom.cli.options import Messages, command_options

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


# ------------------------------------------------------------------------------------ dashboard and warm


DASHBOARD_EPILOG = """
[bold]Examples[/]

  trendloom dashboard archive

  trendloom dashboard archive other-archive --port 8060

  TRENDLOOM_TOKEN=... trendloom dashboard archive --host 0.0.0.0
"""


@command_options("dashboard")
def dashboard(
    messages: Messages,
    archive: Annotated[list[str], typer.Argument(metavar="ARCHIVE...", help="Folders of archives to show.")],
    host: Annotated[str, typer.Option(help="Address to listen at; any but loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0: any that is free.")] = 8050,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TRENDLOOM_TOKEN", show_default=False, help="Visitors must know it; 16 characters at least."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Another name that the page is reached by (a proxy's)."),
    ] = None,
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", help="The longest that a query may run.")] = 60.0,
    row_limit: Annotated[int, typer.Option(metavar="N", help="The most rows of a query that are kept.")] = 100_000,
    memory_limit: Annotated[str, typer.Option(help="What a query may use, e.g. 2G.")] = "2G",
) -> None:
    """Show archives on a page in the browser: results, the reasons behind them, and a workbench for queries."""
    from trendloom.dashboard.app import require_dash, serve

    require_dash()
    from trendloom.dashboard.access import Access
    from trendloom.dashboard.jobs import allowance_of

    access = Access(host, port, token, tuple(allow_host or ()))
    allowance = allowance_of(time_limit, row_limit, memory_limit)

    def ready(address: str) -> None:
        known = "" if token is None else "?token=..."
        report_note(f"the page is at {address}{known} (Ctrl+C ends it)")

    serve(archive, access, allowance, ready)


WARM_EPILOG = """
[bold]Examples[/]

  trendloom warm

  TRENDLOOM_CACHE=/opt/trendloom trendloom warm --processes 8
"""


@command_options("warm")
def warm(
    messages: Messages,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", "-p", metavar="N", min=1, show_default=False,
            help="Compile so many at a time; default: one per core.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Compile what the usual kinds of queries need, once for this version, machine and user."""
    from trendloom.engines.precompile import UsualRun, run_all, usual_runs
    from trendloom.kernels.jit.compiled import code_folder

    wanted, compiled = usual_runs(), 0
    with progress(wanted=not messages.quiet) as shown:
        left = len(wanted)
        shown.say(f"compiling for {left} kinds of queries")

        def done(one: UsualRun, functions: int) -> None:
            nonlocal left, compiled
            left, compiled = left - 1, compiled + functions
            shown.say(f"{one.name}: {functions or 'no'} functions; {left} kinds of queries to go")

        run_all(wanted, processes or os.cpu_count() or 1, done)
    if not messages.quiet:
        did = f"{compiled:,} functions compiled" if compiled else "nothing to compile"
        report_note(f"{did}: {len(wanted)} kinds of queries are ready in {code_folder().written}")


# ---------------------------------------------------------------------------------------- the command line


app.command(epilog=run.EPILOG)(run.run)
app.command(epilog=stream.EPILOG, cls=stream.StreamCommand)(stream.stream)
app.command(epilog=archive.EPILOG)(archive.archive)
app.command(epilog=explain.CHECK_EPILOG)(explain.check)
app.command(epilog=explain.EXPLAIN_EPILOG)(explain.explain)
app.command(epilog=diagnose.DIAGNOSE_EPILOG, cls=diagnose.IntervalCommand)(diagnose.diagnose)
app.command(epilog=diagnose.MONITOR_EPILOG)(diagnose.monitor)
app.command(epilog=DASHBOARD_EPILOG)(dashboard)
app.command(epilog=WARM_EPILOG)(warm)


def main() -> None:
    """Run the command of this process, which `entry` has prepared."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without box characters still shows the rest
    app(prog_name="trendloom")
