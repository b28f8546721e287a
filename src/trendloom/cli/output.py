"""Where the rows of a run go: a table for people, or a file or stream for programs.

Rows are computed as they are read, so whatever goes wrong goes wrong here: nothing is given out before the last row
is there. JSON lines keep each query's own columns; CSV and Parquet have one set of columns, the union of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from trendloom.cli.console import output_console
from trendloom.cli.table import Preview, preview, show
from trendloom.engines.answers import Answer, table_of
from trendloom.errors import OptionError
from trendloom.io.files import find_files, scheme_of
from trendloom.io.write import check_destination, write
from trendloom.logical.result_columns import refuse_clashing_columns

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
    """What was asked for, refused before anything runs where it cannot be done."""
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
