"""Where the rows of a run go: a table for people, or a file or stream for programs.

Rows are computed as they are read, so whatever goes wrong goes wrong here: nothing is given out before the last row
is there. JSON lines keep each query's own columns; CSV and Parquet have one set of columns, the union of all.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trendloom.cli.console import output_console, plain_table
from trendloom.engines.answers import Answer, table_of
from trendloom.errors import OptionError
from trendloom.io.files import find_files, scheme_of
from trendloom.io.timestamps import local_times
from trendloom.io.write import check_destination, json_cells, plain_cells, write
from trendloom.logical.bind.workload import refuse_clashing_columns
from trendloom.model.schema import Schema

# Result rows as a table on a terminal: the first rows, and how many there are.
#
# A match is one line: `a:a1 → b:b2,b5 → c:c7`, each variable with its events, by their `id` where they have one, else
# by type and time. Times with a zone are shown as its clocks show them, and the zone stands in the heading. Memory:
# the rows that are shown.


MOST_ROWS = 40
MOST_EVENTS = 6  # of one variable in a row
MOST_RUNS = 12  # runs of one variable each in a match


@dataclass(frozen=True, eq=False)
class Preview:
    """The first rows of a query, and the number of all."""

    name: str | None
    schema: Schema
    head: pa.Table
    rows: int


def preview(answer: Answer) -> Preview:
    """Compute all rows of an answer and keep the first."""
    kept: list[pa.RecordBatch] = []
    rows = 0
    for batch in answer.batches:
        if not kept or rows < MOST_ROWS:
            kept.append(batch.slice(0, MOST_ROWS - rows))
        rows += batch.num_rows
    return Preview(answer.plan.name, answer.plan.schema, pa.Table.from_batches(kept), rows)


def show(previews: Sequence[Preview], console: Console) -> None:
    """One table per query, one below the other."""
    for number, one in enumerate(previews):
        if number:
            console.print()
        if one.name is not None:
            console.print(Text(one.name, "bold"))
        if one.rows:
            console.print(_table(one))
        console.print(Text(_footer(one), "dim"))


def _footer(one: Preview) -> str:
    counted = f"{one.rows:,} row{'' if one.rows == 1 else 's'}" if one.rows else "no rows"
    hidden = one.rows - one.head.num_rows
    return f"{counted}, the first {one.head.num_rows} shown (--format jsonl gives all)" if hidden else counted


def _table(one: Preview) -> Table:
    table = plain_table()
    cells: list[Iterable[Text]] = []
    for field in one.head.schema:
        column = one.head.column(field.name).combine_chunks()
        table.add_column(
            _one_line(_heading(field, one.schema)),
            justify="right" if _is_number(field.type) else "left",
            overflow="fold",
        )
        cells.append(_cells(column, field, one.schema))
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    return table


def _heading(field: pa.Field, schema: Schema) -> str:
    """The name of a column, with the zone of its times where they have one."""
    kind = field.type
    if field.name == "events" and pa.types.is_list(kind) and "id" not in schema.names:
        where = kind.value_type.get_field_index(schema.times)
        kind = kind.value_type.field(where).type if where >= 0 else kind
    zone = getattr(kind, "tz", None)
    return field.name if zone is None else f"{field.name} ({zone})"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cells(column: pa.Array, field: pa.Field, schema: Schema) -> Iterable[Text]:
    if field.name == "events" and pa.types.is_list(field.type):
        return [show_match(events, schema) for events in column.to_pylist()]
    if pa.types.is_nested(field.type):
        return [Text(cell) for cell in json_cells(column, field)]
    shorter = _short_time if pa.types.is_timestamp(field.type) else str
    if getattr(field.type, "tz", None) is not None:
        column = local_times(pa.chunked_array([column])).combine_chunks()
    return [Text("NULL", "dim") if cell is None else _one_line(shorter(cell)) for cell in plain_cells(column)]


def _one_line(text: str) -> Text:
    """Cut where the terminal ends, widest columns first; a match instead takes the lines it needs."""
    return Text(text, overflow="ellipsis", no_wrap=True)


def _short_time(text: str) -> str:
    return text.removesuffix("Z").replace("T", " ").removesuffix(":00")


# ----------------------------------------------------------------------------------------------- matches


def show_match(events: Sequence[Mapping[str, Any]], schema: Schema) -> Text:
    """The events of a match in order, events of one variable together."""
    names = _Names(schema)
    runs = [(variable, list(run)) for variable, run in groupby(events, key=lambda event: str(event["var"]))]
    kept = runs if len(runs) <= MOST_RUNS else [*runs[: MOST_RUNS - 1], runs[-1]]
    left_out = sum(len(run) for _, run in runs) - sum(len(run) for _, run in kept)
    shown = Text()
    for number, (variable, run) in enumerate(kept):
        if number:
            shown.append(" → ", "dim")
        if left_out and number == len(kept) - 1:
            shown.append(f"{left_out} more events → ", "dim")
        shown.append_text(_run(variable, run, names))
    return shown


def _run(variable: str, run: list[Mapping[str, Any]], names: _Names) -> Text:
    if len(run) > MOST_EVENTS:
        first = ",".join(names.of(event) for event in run[: MOST_EVENTS - 2])
        texts = f"{first}, {len(run) - MOST_EVENTS + 1} more, {names.of(run[-1])}"
    else:
        texts = ",".join(names.of(event) for event in run)
    return Text.assemble((f"{variable}:", "cyan"), texts)


class _Names:
    """Names for the events of one match; a date appears once, not at every event."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.by_id = "id" in schema.names
        self.date: datetime.date | None = None

    def of(self, event: Mapping[str, Any]) -> str:
        if self.by_id and event["id"] is not None:
            return str(event["id"])
        kind = "" if event["var"] == event[self.schema.type] else str(event[self.schema.type])
        return f"{kind}@{self.time(event)}"

    def time(self, event: Mapping[str, Any]) -> str:
        if self.schema.bounds is None:
            return self.moment(event[self.schema.time])
        low, high = self.schema.bounds
        return f"{self.moment(event[low])}..{self.moment(event[high])}"

    def moment(self, value: object) -> str:
        """A time as clocks of its own zone show it."""
        if not isinstance(value, datetime.datetime):
            return str(value)
        text = value.time().isoformat().removesuffix(":00")
        if value.date() == self.date:
            return text
        self.date = value.date()
        return f"{self.date} {text}"


Done = Callable[[], None]

ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Delivery:
    """A format, and a path or standard output (None)."""

    format: str
    path: Path | None


def choose_delivery(format: str | None, output: str | None, events: list[str]) -> Delivery:
    """The delivery that the options ask for, refused before anything runs where it is impossible."""
    if output is None:
        if format == "parquet":
            raise OptionError("parquet does not go to standard output", hint="give --output rows.parquet")
        return Delivery(format or "table", None)
    path = Path(output)
    check_destination(path)
    if path.exists() and _is_one_of(path, [place for place in events if scheme_of(place) is None]):
        raise OptionError("the output would replace the events", hint="give --output another name")
    if format == "table":
        raise OptionError("a table is for looking at, not for a file", hint="use --format jsonl, csv or parquet")
    chosen = format or ENDINGS.get(path.suffix.lower())
    if chosen is None:
        raise OptionError(f"{path} does not show its format", hint="give --format jsonl, csv or parquet")
    return Delivery(chosen, path)


def _is_one_of(path: Path, events: list[str]) -> bool:
    return bool(events) and any(file.local and path.samefile(file.local) for file in find_files(events).files)


def deliver(answers: list[Answer], delivery: Delivery, done: Done) -> int:
    """Compute all rows, call `done`, give them out, and say how many there are."""
    if delivery.format == "table":
        previews: list[Preview] = [preview(answer) for answer in answers]
        done()
        show(previews, output_console())
        return sum(one.rows for one in previews)
    if delivery.format == "jsonl" or len(answers) == 1:
        return write(_batches(answers, done), delivery.format, delivery.path)
    table = _union(answers)
    done()
    return write(table, delivery.format, delivery.path)


def _batches(answers: list[Answer], done: Done) -> Iterator[pa.RecordBatch]:
    for answer in answers:
        for batch in answer.batches:
            yield batch if answer.plan.name is None else _with_query(batch, answer.plan.name)
    done()


def _with_query(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    return batch.add_column(0, "query", pa.repeat(name, batch.num_rows))


def _union(answers: list[Answer]) -> pa.Table:
    hint = "use --format jsonl, choose one with --query, or rename a column with AS"
    refuse_clashing_columns([answer.plan for answer in answers], hint)
    return table_of(answers)
