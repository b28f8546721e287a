"""`trendloom warm`: compile the usual kernels ahead, so that no first answer waits for them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from trendloom.cli.console import progress, report_note
from trendloom.cli.options import Messages, command_options

EPILOG = """
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
