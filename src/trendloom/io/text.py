"""Values as text, a column at a time: the cells of JSON lines and CSV.

A row is joined from cells that are finished text, so that integers of any size and decimals stay exact (a JSON library
would go through floats, and Python refuses to print integers beyond 4300 digits). Times are ISO-8601 UTC, with a
fraction only where there is one; NaN and the infinities, which JSON does not have, are NULL.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import DataError

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
    valid = array.is_valid().to_pylist()
    if unit == "s":
        return [text + "Z" if there else None for text, there in zip(texts, valid, strict=True)]
    return [text.rstrip("0").rstrip(".") + "Z" if there else None for text, there in zip(texts, valid, strict=True)]


# Names of columns: every one is text, and no two are the same.


def refuse_duplicates(names: Sequence[str], where: str) -> None:
    """Two columns of one name: nobody could say which is meant."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataError(f"{where} has more than one column '{twice[0]}'", hint="rename or drop all but one of them")


def decode_names(columns: pa.Schema | pa.DataType) -> None:
    """Look at every name, inside of nested columns too: Arrow fails at the first that is not UTF-8."""
    fields = columns if isinstance(columns, pa.Schema) else [columns.field(at) for at in range(columns.num_fields)]
    for field in fields:
        field.name.encode()
        if pa.types.is_nested(field.type):
            decode_names(field.type)
