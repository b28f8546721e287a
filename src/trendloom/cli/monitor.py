"""`trendloom monitor`: look for a kept reason in the archive; without a name, the monitors that there are."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from trendloom.cli.archive import open_archive_at
from trendloom.cli.console import output_console, progress, report_note, spark_prints_into, warnings_told
from trendloom.cli.diagnose import FeatureEngine
from trendloom.cli.options import Format, Messages, command_options
from trendloom.errors import OptionError
from trendloom.options import COMMAND, EVENTS, OUTPUT, Options, option_field

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


@dataclass(frozen=True, kw_only=True)
class MonitorOptions:
    """Where to look for a monitor, and what to do with the alerts."""

    # fmt: off
    archive: str = option_field(
        "", "The archive that keeps the monitor, and its events.", EVENTS,
        commands="monitor", short="-a", metavar="FOLDER", defaults={COMMAND: MISSING})
    from_: str | None = option_field(
        None, "Only windows from this time on.", EVENTS, commands="monitor", metavar="TIME")
    to: str | None = option_field(None, "Only windows before this time.", EVENTS, commands="monitor", metavar="TIME")
    format: str = option_field(
        "table", "How alerts are given out.", OUTPUT, commands="monitor", short="-f", choices=tuple(Format))
    output: str | None = option_field(
        None, "Write to this file, whole or not at all; else to standard output.", OUTPUT,
        commands="monitor", short="-o", metavar="PATH")
    # fmt: on


@command_options("monitor")
def monitor(
    chosen: MonitorOptions,
    features: FeatureEngine,
    options: Options,
    messages: Messages,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", show_default=False, help="What `trendloom diagnose --save-as NAME` kept."),
    ] = None,
) -> None:
    """Find the windows of an archive in which a monitor's formula holds."""
    from trendloom.cli.output import choose_delivery
    from trendloom.diagnosis.monitors import find_monitor
    from trendloom.diagnosis.request import tick_of

    with warnings_told(quiet=messages.quiet):
        opened = open_archive_at(chosen.archive)
        if name is None:
            _list(opened)
            return
        found = find_monitor(opened, name)
        as_table = chosen.format == "table" and chosen.output is not None
        delivery = choose_delivery(None if as_table else chosen.format, chosen.output, [])
        low, high = (
            None if text is None else tick_of(text, opened.axis, options.time_zone, option)
            for text, option in ((chosen.from_, "from"), (chosen.to, "to"))
        )
        if low is not None and high is not None and low >= high:
            raise OptionError(f"nothing lies from {chosen.from_} to {chosen.to}", hint="--from comes before --to")
        with progress(wanted=not messages.quiet) as shown:
            shown.say("looking for alerts")
            alerts = _alerts(opened, found, (low, high), features.engine, options.master, debug=messages.debug)
    if delivery.format == "table":
        _show(alerts, found)
    else:
        from trendloom.io.write import write

        write(alerts, delivery.format, delivery.path)
    if not messages.quiet:
        _report(found, opened, alerts)


def _alerts(
    archive: Archive, found: Monitor, bounds: tuple[int | None, int | None], engine: str, master: str | None, *,
    debug: bool,
) -> pa.Table:  # fmt: skip
    if engine == "local":
        from trendloom.diagnosis.monitors import run_monitor

        return run_monitor(archive, found, *bounds)
    from trendloom.engines.spark.diagnosis.monitors import archive_alerts
    from trendloom.engines.spark.session import session

    with spark_prints_into(None, debug=debug):
        spark = session(master, name="trendloom monitor")
    return archive_alerts(spark, archive, found, *bounds)


def _show(alerts: pa.Table, found: Monitor) -> None:
    from trendloom.cli.output import MOST_ROWS, Preview, show
    from trendloom.model.schema import Schema

    shown = alerts.drop_columns(["monitor"])
    show([Preview(found.name, Schema(()), shown.slice(0, MOST_ROWS), len(shown))], output_console())


def _report(found: Monitor, archive: Archive, alerts: pa.Table) -> None:
    report_note(f"{found.formula}; {found.grade} when it was made")
    text = found.query(archive.axis)
    if text is not None:
        report_note("the language can say this monitor, too:\n" + text.rstrip())
    if not len(alerts):
        report_note("no window is like that")


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
