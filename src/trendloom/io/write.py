"""Write result rows as JSON lines, CSV or Parquet: batch by batch, and all or nothing.

A file is written beside its destination and moved there when it is complete, so nobody ever sees half of it. Rows for
standard output wait in a temporary file (in memory while it is small) for the same reason. Memory: one batch.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.errors import OptionError, RunError, did_you_mean
from trendloom.io.text import csv_header, csv_lines, json_lines

Format = Literal["jsonl", "csv", "parquet"]
Rows: TypeAlias = "pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]"
Destination = str | os.PathLike[str] | IO[bytes] | None

_ROWS_AT_ONCE = 10_000  # text of so many rows is held in memory
_SPOOL = 16 * 1024 * 1024  # bytes for standard output kept in memory before they go to disk


def write(rows: Rows, format: str, destination: Destination = None, *, schema: pa.Schema | None = None) -> int:
    """Write all rows and return their number. `destination`: a path, an open binary file, or None for standard output.

    `schema` is only needed for plain iterables that may hold no batch at all.
    """
    if format not in get_args(Format):
        raise OptionError(f"unknown format '{format}'", hint=did_you_mean(format, get_args(Format)))
    if isinstance(destination, str | os.PathLike):
        path = Path(destination)
        check_destination(path)
        with _replacing(path) as file:
            return _write_rows(rows, format, file, schema)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as spool:
        count = _write_rows(rows, format, spool, schema)
        spool.seek(0)
        target = sys.stdout.buffer if destination is None else destination
        shutil.copyfileobj(spool, target)
        target.flush()
        return count


def check_destination(destination: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written, before any work is done for it."""
    path = Path(destination)
    if path.is_dir():
        raise OptionError(f"{path} is a folder", hint="give the name of a file to write")
    if not path.parent.is_dir():
        raise OptionError(f"{path} cannot be written: there is no folder {path.parent}", hint="make the folder first")
    if not os.access(path.parent, os.W_OK):
        raise OptionError(f"{path} cannot be written: {path.parent} is read-only", hint="choose another folder")


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when all went well, and is gone when not."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, path)
    except OSError as problem:
        raise RunError(f"{path} cannot be written: {problem.strerror or problem}") from problem
    finally:
        part.unlink(missing_ok=True)


def _write_rows(rows: Rows, format: str, file: IO[bytes], schema: pa.Schema | None) -> int:
    schema, batches = _opened(rows, schema)
    if format == "parquet":
        return _write_parquet(batches, schema, file)
    lines = csv_lines if format == "csv" else json_lines
    if format == "csv" and schema is not None:
        file.write((csv_header(schema) + "\n").encode())
    count = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            piece = batch.slice(start, _ROWS_AT_ONCE)
            file.write(("\n".join(lines(piece)) + "\n").encode())
            count += piece.num_rows
    return count


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema | None, file: IO[bytes]) -> int:
    count = 0
    with pq.ParquetWriter(file, schema or pa.schema([]), compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _opened(rows: Rows, schema: pa.Schema | None) -> tuple[pa.Schema | None, Iterator[pa.RecordBatch]]:
    """The schema of the rows, if there is any, and their batches."""
    if isinstance(rows, pa.Table):
        return rows.schema, iter(rows.to_batches(max_chunksize=_ROWS_AT_ONCE))
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, iter(rows)
    batches: Iterator[pa.RecordBatch] = iter(rows)
    first = next(batches, None)
    if first is None:
        return schema, iter(())
    return first.schema, _chained(first, batches)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
