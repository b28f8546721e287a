"""Write result rows as JSON lines, CSV or Parquet: batch by batch, and all or nothing.

A file is written beside its destination and moved there when it is complete, so half a file is never visible. Rows for
standard output are held in a temporary file (in memory while it is small) for the same reason. Memory: one batch.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from trendloom.errors import OptionError, RunError, did_you_mean

Format = Literal["jsonl", "csv", "parquet"]
Rows: TypeAlias = "pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]"
Destination = str | os.PathLike[str] | IO[bytes] | None

_ROWS_AT_ONCE = 10_000  # text of so many rows is held in memory
_SPOOL = 16 * 1024 * 1024  # bytes for standard output kept in memory before they go to disk


def write(rows: Rows, format: str, destination: Destination = None) -> int:
    """Write all rows and return their number. `destination`: a path, an open binary file, or None for standard output.

    An iterable begins with a batch, if only to name the columns; without one there are none.
    """
    if format not in get_args(Format):
        raise OptionError(f"unknown format '{format}'", hint=did_you_mean(format, get_args(Format)))
    if isinstance(destination, str | os.PathLike):
        path = Path(destination)
        check_destination(path)
        with _replacing(path) as file:
            return _write_rows(rows, format, file)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as spool:
        count = _write_rows(rows, format, spool)
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


def _write_rows(rows: Rows, format: str, file: IO[bytes]) -> int:
    schema, batches = _opened(rows)
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


def _opened(rows: Rows) -> tuple[pa.Schema | None, Iterator[pa.RecordBatch]]:
    """The schema of the rows, if there is any, and their batches."""
    if isinstance(rows, pa.Table):
        return rows.schema, iter(rows.to_batches(max_chunksize=_ROWS_AT_ONCE))
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, iter(rows)
    batches: Iterator[pa.RecordBatch] = iter(rows)
    first = next(batches, None)
    if first is None:
        return None, iter(())
    return first.schema, chain([first], batches)


# -------------------------------------------------------------------------------------- values as text
#
# A row is joined from cells that are finished text, so that integers of any size and decimals stay exact (a JSON
# library would go through floats, and Python refuses to print integers beyond 4300 digits). Times are ISO-8601 UTC,
# with a fraction only where there is one; NaN and the infinities, which JSON does not have, are NULL.


EXACT = {b"trendloom.exact": b"text"}
"""Metadata of a field whose integers are held as decimal text because no Arrow number is wide enough."""

Cells = list[str | None]


def is_exact_text(field: pa.Field) -> bool:
    return bool(field.metadata) and field.metadata.get(b"trendloom.exact") == b"text"


# ------------------------------------------------------------------------------------------------- JSON


def json_lines(batch: pa.RecordBatch) -> list[str]:
    """One JSON object per row."""
    columns = [json_cells(batch.column(index), field) for index, field in enumerate(batch.schema)]
    return _objects(batch.schema.names, columns, batch.num_rows)


def json_cells(array: pa.Array, field: pa.Field) -> list[str]:
    """Each value of a column as JSON; NULL is `null`."""
    if is_exact_text(field):
        return ["null" if value is None else value for value in array.to_pylist()]
    return _json_values(array)


def _json_values(array: pa.Array) -> list[str]:
    kind = array.type
    if types.is_dictionary(kind):
        return _json_values(array.dictionary_decode())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _json_arrays(array)
    if types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        columns = [json_cells(column, field) for column, field in zip(array.flatten(), fields, strict=True)]
        objects = _objects([field.name for field in fields], columns, len(array))
        return [text if valid else "null" for text, valid in zip(objects, array.is_valid().to_pylist(), strict=True)]
    quoted = not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))
    shown = _quoted if quoted and not types.is_duration(kind) else str
    return ["null" if cell is None else shown(cell) for cell in plain_cells(array)]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _objects(names: Sequence[str], columns: Sequence[Sequence[str]], rows: int) -> list[str]:
    """Rows of finished cells as JSON objects."""
    if not columns:
        return ["{}"] * rows
    template = "{" + ", ".join(_quoted(name).replace("%", "%%") + ": %s" for name in names) + "}"
    return [template % row for row in zip(*columns, strict=True)]


def _json_arrays(array: pa.Array) -> list[str]:
    values = iter(json_cells(array.flatten(), array.type.value_field))
    lengths = pc.list_value_length(array).to_pylist()
    return ["null" if length is None else "[" + ", ".join(islice(values, length)) + "]" for length in lengths]


# -------------------------------------------------------------------------------------------------- CSV


def csv_header(schema: pa.Schema) -> str:
    return ",".join(_csv_quoted(name) for name in schema.names)


def csv_lines(batch: pa.RecordBatch) -> list[str]:
    """One line per row; lists and structs are JSON text, NULL is nothing, empty text is two quotes."""
    columns = [_csv_cells(batch.column(index), field) for index, field in enumerate(batch.schema)]
    return [",".join(row) for row in zip(*columns, strict=True)] if columns else [""] * batch.num_rows


def _csv_cells(array: pa.Array, field: pa.Field) -> list[str]:
    if types.is_nested(array.type):
        cells: Cells = [None if cell == "null" else cell for cell in json_cells(array, field)]
    else:
        cells = plain_cells(array)
    return ["" if cell is None else _csv_quoted(cell) for cell in cells]


def _csv_quoted(text: str) -> str:
    if text and not any(sign in text for sign in ',"\r\n') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


# ------------------------------------------------------------------------------------------------ values


def plain_cells(array: pa.Array) -> Cells:
    """Each value of a flat column as bare text; None for NULL (and for numbers that are none)."""
    kind = array.type
    if types.is_dictionary(kind):
        return plain_cells(array.dictionary_decode())
    if types.is_timestamp(kind):
        return _moments(array)
    if types.is_float32(kind) or types.is_float16(kind):
        narrow = np.float32 if types.is_float32(kind) else np.float16  # the shortest text that reads back the same
        return [None if value is None or not np.isfinite(value) else str(narrow(value)) for value in array.to_pylist()]
    if types.is_duration(kind):
        return _each(array.cast(pa.duration("us"), safe=False).cast(pa.int64()), str)
    return _each(array, _writer(kind))


def _writer(kind: pa.DataType) -> Callable[[object], str | None]:
    if types.is_floating(kind):
        return lambda value: None if value - value != 0 else repr(value)  # type: ignore[operator]
    if types.is_decimal(kind):
        return lambda value: format(value, "f")
    if types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return lambda value: base64.b64encode(value).decode("ascii")  # type: ignore[arg-type]
    return str  # integers, text; dates and times of day write themselves as ISO-8601


def _each(array: pa.Array, shown: Callable[[object], str | None]) -> Cells:
    return [None if value is None else shown(value) for value in array.to_pylist()]


def _moments(array: pa.Array) -> Cells:
    """Timestamps as ISO-8601 UTC; what is finer than microseconds keeps its digits."""
    unit = array.type.unit
    counts = array.cast(pa.timestamp(unit)).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    texts = np.datetime_as_string(counts.astype(f"datetime64[{unit}]")).tolist()
    if unit != "s":
        texts = [text.rstrip("0").rstrip(".") for text in texts]
    return [text + "Z" if there else None for text, there in zip(texts, array.is_valid().to_pylist(), strict=True)]
