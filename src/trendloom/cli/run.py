"""`trendloom run`: queries in, rows out; all of them, or an error and none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trendloom.cli.console import Shown, progress, report_note, report_warnings, spark_prints_into
from trendloom.cli.options import AllEvents, Format, Messages, QueryFile, command_options, picture_target, read_query
from trendloom.errors import OptionError, option
from trendloom.options import OUTPUT, Options, option_field

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


@dataclass(frozen=True, kw_only=True)
class RowOutput:
    """Where rows go, and as what."""

    # fmt: off
    format: str | None = option_field(
        None, "Default: what the name of {output} ends in, else table.", OUTPUT,
        commands="run", short="-f", choices=tuple(Format))
    output: str | None = option_field(
        None, "Write to this file, whole or not at all; else to standard output.", OUTPUT,
        commands="run monitor", short="-o", metavar="PATH")
    picture: str | None = option_field(
        None, "Draw the best matches of a query with RANK BY, or the likeliest of imprecise time; .svg or .png.",
        OUTPUT, commands="run", metavar="FILE")
    # fmt: on


@command_options("run")
def run(query_file: QueryFile, events: AllEvents, options: Options, output: RowOutput, messages: Messages) -> None:
    """Run queries over a file of events and give out the rows."""
    from trendloom.cli.output import choose_delivery, deliver
    from trendloom.engines.answers import answers

    quiet = messages.quiet
    delivery = choose_delivery(output.format, output.output, events)
    picture = None if output.picture is None else MatchPicture(picture_target(output.picture))
    unsorted: list[bool] = []
    with progress(wanted=not quiet) as shown:
        watch = watch_of(shown, unsorted, quiet=quiet, debug=messages.debug)
        rows = answers(read_query(query_file), events, options, watch)
        rows = rows if picture is None else picture.watched(rows)
        shown.say("looking for matches")
        counts = [0] * len(rows)
        counted = [_counted(answer, counts, number) for number, answer in enumerate(rows)]
        count = deliver(counted, delivery, shown.stop)
    if picture is not None:
        picture.draw(rows[0])
    if quiet:
        return
    if picture is not None:
        report_note(f"drawn: {picture.target}")
    for answer in (answer for answer, found in zip(rows, counts, strict=True) if not found):
        report_note(_of_query(answer) + answer.without_rows())
    if unsorted:
        report_note("rows are in the order in which they were found: sorted, they would not fit in memory")
    if output.output is not None:
        report_note(f"{count:,} row{'' if count == 1 else 's'} written to {output.output}")


def _counted(answer: Answer, counts: list[int], number: int) -> Answer:
    """The same answer; counts its rows as they are read."""

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in answer.batches:
            counts[number] += batch.num_rows
            yield batch

    return replace(answer, batches=counted())


def _of_query(answer: Answer) -> str:
    return "" if answer.plan.name is None else f"query {answer.plan.name}: "


def watch_of(shown: Shown, unsorted: list[bool], *, quiet: bool, debug: bool) -> Watch:
    """The callbacks of a run that show its progress and its warnings."""
    from trendloom.engines.answers import Watch

    def warn(warning: QueryWarning, query: str | None) -> None:
        if not quiet:
            report_warnings([warning], query)

    def beforehand(warning: str) -> None:
        shown.say("computing exact numbers")
        report_warnings([] if quiet else [warning])

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


# ---------------------------------------------------------------------------------------------- picture


@dataclass
class MatchPicture:
    """The picture of the best matches, or of the likeliest of imprecise time: rows are kept as they pass by, at most
    ten of each window and partition, or of each batch.
    """

    target: Path
    kept: list[pa.RecordBatch] = field(default_factory=list)
    passed: int = 0

    def watched(self, answers: list[Answer]) -> list[Answer]:
        """The same answers; reading them keeps the rows that are drawn."""
        from trendloom.viz.confidences import likeliest
        from trendloom.viz.leaderboard import check_board, check_events, first_rows

        if len(answers) != 1:
            names = ", ".join(str(answer.plan.name) for answer in answers)
            raise OptionError(
                f"a picture shows one query, these are {len(answers)}", hint=f"choose with {option('query')}: {names}"
            )
        (answer,) = answers
        imprecise = answer.plan.schema.imprecise
        (check_events if imprecise else check_board)(answer.plan)
        shown = likeliest if imprecise else first_rows

        def passing() -> Iterator[pa.RecordBatch]:
            for batch in answer.batches:
                self.kept.append(shown(batch))
                self.passed += batch.num_rows
                yield batch

        return [replace(answer, batches=passing())]

    def draw(self, answer: Answer) -> None:
        """Draw what was kept."""
        import pyarrow as pa

        rows = pa.Table.from_batches(self.kept)
        if answer.plan.schema.imprecise:
            from trendloom.viz.confidences import draw_likely, likely_of

            likely = likely_of(answer.plan, rows, total=self.passed)
            draw_likely(likely, self.target, title=answer.plan.name)
            return
        from trendloom.viz.leaderboard import board_of, draw_board

        draw_board(board_of(answer.plan, rows), self.target, title=answer.plan.name)
