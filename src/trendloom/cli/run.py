"""`trendloom run`: queries in, rows out; all of them, or an error and none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from trendloom.cli import options as o
from trendloom.cli.console import Shown, progress, reporting, spark_prints_into, tell_note, tell_warnings
from trendloom.cli.options import read_query
from trendloom.cli.picture import MatchPicture, check_target

if TYPE_CHECKING:
    import pyarrow as pa

    from trendloom.engines.answers import Answer, Watch
    from trendloom.errors import QueryWarning

EPILOG = """
[bold]Examples[/]

  trendloom run kites.tql --events checks.parquet

  trendloom run rates.tql -e rates.csv --engine local -f jsonl > rates.jsonl

  trendloom run all.tql --query kites -e day.parquet -o kites.parquet
"""


def run(
    query_file: o.QueryFile,
    events: o.AllEvents,
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
    master: o.Master = None,
    numeric: o.NumericName = o.Numeric.exact,
    format: Annotated[
        o.Format | None,
        typer.Option(
            "--format", "-f", rich_help_panel=o.OUTPUT, show_default=False,
            help="Default: what the name of --output ends in, else table.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", rich_help_panel=o.OUTPUT, show_default=False,
            help="Write to this file, whole or not at all; else to standard output.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", rich_help_panel=o.OUTPUT, show_default=False,
            help="At most N rows per query.",
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(
            "--picture", metavar="FILE", rich_help_panel=o.OUTPUT, show_default=False,
            help="Draw the best matches of a query with RANK BY, or the likeliest of imprecise time; .svg or .png.",
        ),
    ] = None,
    memory_limit: o.MemoryLimit = None,
    max_trends: o.MaxTrends = 1_000_000_000,
    threads: o.Threads = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:  # fmt: skip
    """Run queries over a file of events and give out the rows."""
    with reporting(debug=debug):
        from trendloom.cli.output import choose_delivery, deliver
        from trendloom.engines.answers import answers
        from trendloom.options import Options, columns_named

        delivery = choose_delivery(format.value if format else None, output, events)
        drawn = None if picture is None else MatchPicture(check_target(picture))
        text = read_query(query_file)
        options = Options(
            engine.value, time, type, time_unit, time_low, time_high, numeric.value, limit, query, master,
            memory_limit, max_trends, columns_named(order), schema, time_zone, threads,
            time_error, time_probability, time_grain, time_points,
        )  # fmt: skip
        unsorted: list[bool] = []
        with progress(wanted=not quiet) as shown:
            rows = answers(text, events, options, watch_of(shown, unsorted, quiet=quiet, debug=debug))
            rows = rows if drawn is None else drawn.watched(rows)
            shown.say("looking for matches")
            counts = [0] * len(rows)
            counted = [_counted(answer, counts, number) for number, answer in enumerate(rows)]
            count = deliver(counted, delivery, shown.stop)
        if drawn is not None:
            drawn.draw(rows[0])
            if not quiet:
                tell_note(f"drawn: {drawn.target}")
        if not quiet:
            for answer in (answer for answer, found in zip(rows, counts, strict=True) if not found):
                tell_note(_of_query(answer) + answer.without_rows())
        if unsorted and not quiet:
            tell_note("rows are in the order in which they were found: sorted, they would not fit in memory")
        if output is not None and not quiet:
            tell_note(f"{count:,} row{'' if count == 1 else 's'} written to {output}")


def _counted(answer: Answer, counts: list[int], number: int) -> Answer:
    """The same answer; whoever reads it leaves the number of its rows behind."""

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in answer.batches:
            counts[number] += batch.num_rows
            yield batch

    return replace(answer, batches=counted())


def _of_query(answer: Answer) -> str:
    return "" if answer.plan.name is None else f"query {answer.plan.name}: "


def watch_of(shown: Shown, unsorted: list[bool], *, quiet: bool, debug: bool) -> Watch:
    """What a run tells while it is under way."""
    from trendloom.engines.answers import Watch

    def warn(warning: QueryWarning, query: str | None) -> None:
        if not quiet:
            tell_warnings([warning], query)

    def beforehand(warning: str) -> None:
        shown.say("computing exact numbers")
        tell_warnings([] if quiet else [warning])

    @contextmanager
    def starting() -> Iterator[None]:
        shown.say("starting Spark")
        with spark_prints_into(None, debug=debug):
            yield
        shown.say("reading and planning")

    return Watch(
        progress=shown.found,
        unsorted=lambda: unsorted.append(True),
        foreseen=shown.foreseen,
        starting=starting,
        warn=warn,
        compiling=shown.compiling,
        beforehand=beforehand,
    )
