"""`trendloom dashboard`: archives on a page, to see results, to ask why, and to try queries."""

from __future__ import annotations

from typing import Annotated

import typer

from trendloom.cli.console import report_note
from trendloom.cli.options import Messages, command_options

EPILOG = """
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
