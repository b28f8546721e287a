"""`trendloom diagnose`: why was this stretch of a chart abnormal? A table of features, and a sentence.

`trendloom monitor`: look for a kept reason in the archive; without a name, the list of monitors.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from trendloom.cli.archive import open_archive_at
from trendloom.cli.console import output_console, plain_table, progress, report_note, spark_prints_into, user_warnings
from trendloom.cli.options import Format, Messages, command_options, picture_target
from trendloom.errors import OptionError
from trendloom.options import COMMAND, ENGINE, EVENTS, OUTPUT, Options, option_field

if TYPE_CHECKING:
    import pyarrow as pa

    from trendloom.archive import Archive
    from trendloom.diagnosis.diagnosis import CandidateFeature, Diagnosis
    from trendloom.diagnosis.monitors import Monitor


# Options that take an interval: `--abnormal FROM TO`, `--reference [KEY=VALUE ...] FROM TO`.
#
# An interval of another partition names it before its times, so these options take two words or more. The command's
# parser takes fixed numbers of words only: the words of an interval are joined before it runs.


BETWEEN = "\x1f"
"""Stands between the words of one interval; nobody types it."""

INTERVALS = ("--abnormal", "--reference")
ATTRIBUTE = re.compile(r"[^=]+=.*", re.DOTALL)
FLAG = re.compile(r"--?[^\W\d]")

Interval = tuple[dict[str, object] | None, str, str]


class IntervalCommand(TyperCommand):
    """A command whose intervals take as many words as they need."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, joined_intervals(args))


def joined_intervals(words: Sequence[str]) -> list[str]:
    """The words, with those of each interval as one."""
    found: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name not in INTERVALS:
            found.append(word)
            continue
        if equals:
            waiting.insert(0, value)
        found += [name, BETWEEN.join(_taken(name, waiting))]
    return found


def _taken(name: str, waiting: list[str]) -> list[str]:
    """The words of an interval, which leave the queue."""
    taken = []
    while waiting and ATTRIBUTE.fullmatch(waiting[0]) and not FLAG.match(waiting[0]):
        taken.append(waiting.pop(0))
    times = [waiting.pop(0) for _ in range(2) if waiting and not FLAG.match(waiting[0])]
    if len(times) < 2:
        raise typer.BadParameter(f"{name} takes two times, FROM and TO: {name} '2024-01-31 12:00' '2024-01-31 12:30'")
    return [*taken, *times]


def interval_of(text: str, name: str) -> Interval:
    """The partition, if one is named, and the two times of an interval."""
    *partition, begin, end = text.split(BETWEEN)
    return (attributes_of(partition, name) if partition else None), begin, end


def attributes_of(words: Sequence[str] | None, name: str) -> dict[str, Any]:
    """Attributes written as KEY=VALUE."""
    found: dict[str, Any] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise OptionError(f"'{word}' does not say an attribute and its value", hint=f"{name} KEY=VALUE")
        found[key] = value
    return found


DIAGNOSE_EPILOG = """
[bold]Examples[/]

  trendloom diagnose --archive history --query queue --partition job=j7 --abnormal '2024-01-31 12:00' '2024-01-31 12:20'

  trendloom diagnose --archive history --query queue --partition job=j7 --abnormal 1200 2400
  --reference job=j6 1100 2900 --related-by program,dataset --picture why.svg --save-as memory_low

An interval begins at FROM and ends before TO. Without --reference, the rest of the partition is the reference.
"""
ANNOTATION = "Annotation"
SHOWN = 20
"""Features in the table beside those that are kept."""


@dataclass(frozen=True, kw_only=True)
class FeatureEngine:
    """Where features are made."""

    # fmt: off
    engine: str = option_field(
        "local", "Where features are made: this process, or Spark.", ENGINE,
        commands="diagnose monitor", choices=("local", "spark"))
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions:
    """What is to be explained, with which features, and what becomes of the reason."""

    # fmt: off
    archive: str = option_field(
        "", "Events and results, as `trendloom archive` or `trendloom stream {archive}` wrote them.", EVENTS,
        commands="diagnose", short="-a", metavar="FOLDER", defaults={COMMAND: MISSING})
    abnormal: tuple[str, ...] = option_field(
        (), "What is to be explained; times as text or whole numbers; may be repeated.", ANNOTATION,
        commands="diagnose", metavar="FROM TO", defaults={COMMAND: MISSING})
    query: str | None = option_field(
        None, "The archived query whose chart was looked at; not needed where there is one.", ANNOTATION,
        commands="diagnose", metavar="NAME")
    partition: tuple[str, ...] = option_field(
        (), "The partition of the chart; repeated where it has several attributes.", ANNOTATION,
        commands="diagnose", metavar="KEY=VALUE")
    reference: tuple[str, ...] = option_field(
        (), "What is normal, here or in another partition; may be repeated. Default: the rest of the partition.",
        ANNOTATION, commands="diagnose", metavar="[KEY=VALUE] FROM TO")
    related_by: str | None = option_field(
        None,
        "Partitions that agree in these are related: what separates the intervals there as well is a false positive. "
        "Default: all dimensions of the archive.",
        ANNOTATION, commands="diagnose", metavar="DIMENSION,...")
    window: tuple[str, ...] = option_field(
        ("30 s",), "Features are over windows of this length; may be repeated.", ANNOTATION,
        commands="diagnose", short="--windows", metavar="LENGTH")
    functions: str | None = option_field(
        None, "Only these of count, mean, min, max, deviation, change.", ANNOTATION,
        commands="diagnose", metavar="NAME,...")
    format: str = option_field(
        "table", "For people, or for programs.", OUTPUT, commands="diagnose", short="-f", choices=("table", "json"))
    all: bool = option_field(False, f"All features in the table, not the best {SHOWN}.", OUTPUT, commands="diagnose")
    picture: str | None = option_field(
        None, "Draw each kept feature, abnormal and reference coloured; .svg or .png.", OUTPUT,
        commands="diagnose", metavar="FILE")
    save_as: str | None = option_field(
        None,
        "Keep the reason as a monitor in the archive: `trendloom monitor NAME`, `trendloom stream {monitor}`.",
        OUTPUT, commands="diagnose", metavar="NAME")
    # fmt: on


@command_options("diagnose")
def diagnose(chosen: DiagnoseOptions, features: FeatureEngine, options: Options, messages: Messages) -> None:
    """Say why a stretch of a query's chart is abnormal, from the archived events."""
    from trendloom.diagnosis.monitors import find_monitor
    from trendloom.diagnosis.request import DiagnosisRequest, marked_intervals, names_in
    from trendloom.engines.diagnose import DiagnosisWatch, diagnose_archive

    target = None if chosen.picture is None else picture_target(chosen.picture)
    request = DiagnosisRequest(
        chosen.query,
        attributes_of(chosen.partition, "--partition"),
        marked_intervals([interval_of(one, "--abnormal")[1:] for one in chosen.abnormal], "abnormal"),
        marked_intervals([interval_of(one, "--reference") for one in chosen.reference], "reference", elsewhere=True),
        names_in(chosen.related_by),
        chosen.window,
        names_in(chosen.functions),
        engine=features.engine,
        time_zone=options.time_zone,
        master=options.master,
    )
    with user_warnings(quiet=messages.quiet):
        opened = open_archive_at(chosen.archive)
        with progress(wanted=not messages.quiet) as shown:
            watch = DiagnosisWatch(
                lambda what, share: shown.say(f"{what} ({share:.0%})"),
                lambda: spark_prints_into(None, debug=messages.debug),
            )
            found = diagnose_archive(opened, request, watch=watch, save_as=chosen.save_as)
    monitor = None if chosen.save_as is None else find_monitor(opened, chosen.save_as)
    text = None if monitor is None else monitor.query(opened.axis)
    if chosen.format == "json":
        content = found.to_json() | ({} if monitor is None else {"monitor": monitor.to_json() | {"query": text}})
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    else:
        show_diagnosis(found, output_console(), everything=chosen.all)
    if target is not None:
        from trendloom.viz.reasons import draw_reasons

        draw_reasons(found, target, dated=opened.axis.timestamp)
    if not messages.quiet:
        _report(found, text, chosen.picture)


def _report(found: Diagnosis, query: str | None, picture: str | None) -> None:
    for note in found.notes:
        report_note(note)
    if query is not None:
        report_note("the language can say this monitor, too:\n" + query.rstrip())
    if picture is not None:
        report_note(f"drawn: {picture}")


# ------------------------------------------------------------------------------------------------- the table


def show_diagnosis(found: Diagnosis, console: Console, *, everything: bool) -> None:
    """The features that were kept and the best of the others, and the reason in a sentence."""
    shown = list(found.candidates) if everything else shortened(found.candidates)
    validated = any(one.validated is not None for one in found.candidates)
    table = plain_table()
    table.add_column("feature", overflow="fold")
    table.add_column("reward", justify="right")
    if validated:
        table.add_column("related", justify="right")
    table.add_column("abnormal", overflow="fold")
    table.add_column("kept, or why not", overflow="fold")
    for one in shown:
        over = [] if not validated else [Text("" if one.validated is None else f"{one.validated:.2f}")]
        verdict = Text("kept", "bold green") if one.kept else Text(one.why, "dim")
        name = Text(one.feature.name, "bold" if one.kept else "")
        table.add_row(name, Text(f"{one.reward:.2f}"), *over, Text(found.boundary(one.feature)), verdict)
    console.print(table)
    hidden = len(found.candidates) - len(shown)
    counted = f"{len(found.candidates):,} features, {len(found.kept):,} kept"
    console.print(Text(counted + (f", {hidden:,} not shown (--all shows them)" if hidden else ""), "dim"))
    console.print()
    console.print(Text(found.sentence), soft_wrap=True)


def shortened(candidates: Sequence[CandidateFeature]) -> list[CandidateFeature]:
    """Those that are kept, and the best of the others, in order."""
    others = [one for one in candidates if not one.kept][:SHOWN]
    chosen = {id(one) for one in others}
    return [one for one in candidates if one.kept or id(one) in chosen]


# -------------------------------------------------------------------------------------------- monitors


MONITOR_EPILOG = """
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

    with user_warnings(quiet=messages.quiet):
        opened = open_archive_at(chosen.archive)
        if name is None:
            _list_monitors(opened)
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
        _show_alerts(alerts, found)
    else:
        from trendloom.io.write import write

        write(alerts, delivery.format, delivery.path)
    if not messages.quiet:
        _report_alerts(found, opened, alerts)


def _alerts(
    archive: Archive, found: Monitor, bounds: tuple[int | None, int | None], engine: str, master: str | None, *,
    debug: bool,
) -> pa.Table:  # fmt: skip
    if engine == "local":
        from trendloom.diagnosis.monitors import run_monitor

        return run_monitor(archive, found, *bounds)
    from trendloom.engines.spark.monitors import archive_alerts
    from trendloom.engines.spark.session import session

    with spark_prints_into(None, debug=debug):
        spark = session(master, name="trendloom monitor")
    return archive_alerts(spark, archive, found, *bounds)


def _show_alerts(alerts: pa.Table, found: Monitor) -> None:
    from trendloom.cli.output import MOST_ROWS, Preview, show
    from trendloom.model.schema import Schema

    shown = alerts.drop_columns(["monitor"])
    show([Preview(found.name, Schema(()), shown.slice(0, MOST_ROWS), len(shown))], output_console())


def _report_alerts(found: Monitor, archive: Archive, alerts: pa.Table) -> None:
    report_note(f"{found.formula}; {found.grade} when it was made")
    text = found.query(archive.axis)
    if text is not None:
        report_note("the language can say this monitor, too:\n" + text.rstrip())
    if not len(alerts):
        report_note("no window is like that")


def _list_monitors(archive: Archive) -> None:
    known = archive.monitors()
    if not known:
        sys.stdout.write("no monitors yet: `trendloom diagnose ... --save-as NAME` keeps one\n")
        return
    table = plain_table()
    for heading in ("monitor", "formula", "precision", "recall"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("precision", "recall") else "left")
    for name, one in known.items():
        numbers = [one.get("precision"), one.get("recall")]
        table.add_row(Text(name), Text(str(one.get("text", ""))), *("" if n is None else f"{n:.2f}" for n in numbers))
    output_console().print(table)
