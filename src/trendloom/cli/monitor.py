"""`trendloom monitor`: look for a kept reason in the archive; without a name, the monitors that there are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from trendloom.cli import options as o
from trendloom.cli.archive import open_archive_at
from trendloom.cli.console import output_console, progress, reporting, spark_prints_into, tell_note, warnings_told
from trendloom.cli.diagnose import DiagnosisEngine
from trendloom.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from trendloom.archive import Archive
    from trendloom.diagnosis.monitors import Monitor

EPILOG = """
[bold]Examples[/]

  trendloom monitor --archive history

  trendloom monitor memory_low --archive history --from '2024-01-31' --format jsonl

`trendloom stream --monitor memory_low --archive history --source ...` watches live events.
"""


def monitor(
    archive: Annotated[
        str,
        typer.Option("--archive", "-a", metavar="FOLDER", rich_help_panel=o.INPUT, show_default=False,
                     help="The archive that keeps the monitor, and its events."),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", show_default=False, help="What `trendloom diagnose --save-as NAME` kept."),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", rich_help_panel=o.INPUT, show_default=False,
                     help="Only windows from this time on."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", rich_help_panel=o.INPUT, show_default=False,
                     help="Only windows before this time."),
    ] = None,
    time_zone: o.TimeZone = None,
    engine: Annotated[
        DiagnosisEngine,
        typer.Option("--engine", rich_help_panel=o.ENGINE, help="Where features are made: this process, or Spark."),
    ] = DiagnosisEngine.local,
    master: o.Master = None,
    format: Annotated[
        o.Format, typer.Option("--format", "-f", rich_help_panel=o.OUTPUT, help="How alerts are given out.")
    ] = o.Format.table,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="PATH", rich_help_panel=o.OUTPUT, show_default=False,
                     help="Write to this file, whole or not at all; else to standard output."),
    ] = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:  # fmt: skip
    """Find the windows of an archive in which a monitor's formula holds."""
    with reporting(debug=debug):
        from trendloom.cli.output import choose_delivery
        from trendloom.diagnosis.instants import tick_of
        from trendloom.diagnosis.monitors import find_monitor

        with warnings_told(quiet=quiet):
            opened = open_archive_at(archive)
            if name is None:
                _list(opened)
                return
            found = find_monitor(opened, name)
            delivery = choose_delivery(None if format is o.Format.table and output else format.value, output, [])
            low, high = (
                None if text is None else tick_of(text, opened.axis, time_zone, option)
                for text, option in ((begin, "from"), (end, "to"))
            )
            if low is not None and high is not None and low >= high:
                raise OptionError(f"nothing lies from {begin} to {end}", hint="--from comes before --to")
            with progress(wanted=not quiet) as shown:
                shown.say("looking for alerts")
                alerts = _alerts(opened, found, low, high, engine, master, debug=debug)
        if delivery.format == "table":
            _show(alerts, found)
        else:
            from trendloom.io.write import write

            write(alerts, delivery.format, delivery.path)
        if not quiet:
            _tell(found, opened, alerts)


def _alerts(
    archive: Archive, found: Monitor, low: int | None, high: int | None, engine: DiagnosisEngine, master: str | None, *,
    debug: bool,
) -> pa.Table:  # fmt: skip
    if engine is DiagnosisEngine.local:
        from trendloom.diagnosis.monitors import run_monitor

        return run_monitor(archive, found, low, high)
    from trendloom.engines.spark.diagnosis.monitors import archive_alerts
    from trendloom.engines.spark.session import session

    with spark_prints_into(None, debug=debug):
        spark = session(master, name="trendloom monitor")
    return archive_alerts(spark, archive, found, low, high)


def _show(alerts: pa.Table, found: Monitor) -> None:
    from trendloom.cli.output import MOST_ROWS, Preview, show
    from trendloom.model.schema import Schema

    shown = alerts.drop_columns(["monitor"])
    show([Preview(found.name, Schema(()), shown.slice(0, MOST_ROWS), len(shown))], output_console())


def _tell(found: Monitor, archive: Archive, alerts: pa.Table) -> None:
    tell_note(f"{found.formula}; {found.grade} when it was made")
    text = found.query(archive.axis)
    if text is not None:
        tell_note("the language can say this monitor, too:\n" + text.rstrip())
    if not len(alerts):
        tell_note("no window is like that")


def _list(archive: Archive) -> None:
    known = archive.monitors()
    if not known:
        sys.stdout.write("no monitors yet: `trendloom diagnose ... --save-as NAME` keeps one\n")
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("monitor", "formula", "precision", "recall"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("precision", "recall") else "left")
    for name, one in known.items():
        numbers = [one.get("precision"), one.get("recall")]
        table.add_row(Text(name), Text(str(one.get("text", ""))), *("" if n is None else f"{n:.2f}" for n in numbers))
    output_console().print(table)
