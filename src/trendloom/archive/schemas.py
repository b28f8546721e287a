"""The columns of files, kept once each: a commit names them by a hash, so nobody opens a file to learn its columns.

A schema is written under the hash of its own bytes, so writing it again changes nothing. Values are stored plainly
(no dictionaries, one kind of text, moments in UTC), so that files by any writer fit together; where types differ from
file to file, the type that holds all values is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.archive.commits import SCHEMAS, write_whole


def keep_schema(root: Path, schema: pa.Schema) -> str:
    """The name of a schema, which is in the archive from now on."""
    content = schema.serialize().to_pybytes()
    name = hashlib.sha256(content).hexdigest()[:16]
    path = root / SCHEMAS / f"{name}.arrow"
    if not path.exists():
        write_whole(path, content)
    return name


@lru_cache(maxsize=10_000)
def read_schema(root: Path, name: str) -> pa.Schema:
    """The schema of that name; it never changes."""
    return pa.ipc.read_schema(pa.BufferReader((root / SCHEMAS / f"{name}.arrow").read_bytes()))


def joint_columns(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of all, each of the type that holds the values of every file."""
    found: dict[str, pa.Field] = {}
    for field in (field for schema in schemas for field in schema):
        known = found.get(field.name)
        if known is None or known.type == field.type:
            found.setdefault(field.name, field)
        else:
            found[field.name] = pa.field(field.name, _joint_type(known.type, field.type))
    return pa.schema(list(found.values()))


def _joint_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    try:
        both = [pa.schema([pa.field("x", kind)]) for kind in (one, other)]
        return pa.unify_schemas(both, promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.float64() if _is_number(one) and _is_number(other) else pa.string()


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def with_all_columns(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The table with exactly these columns; those that it lacks are NULL."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.chunked_array([pa.nulls(len(table), field.type)])
        for field in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


# ------------------------------------------------------------------------------------------------ plain values


def plain_values(table: pa.Table, keep: Sequence[str] = ()) -> pa.Table:
    """Values as they are stored; columns of no type at all are left out, unless they are to be kept."""
    names, columns = [], []
    for field in table.schema:
        column = table.column(field.name)
        if types.is_null(field.type) and field.name not in keep:
            continue
        wanted = plain_type(field.type)
        column = column if column.type == wanted else column.cast(wanted)
        names.append(field.with_type(wanted))
        columns.append(_without_nan(column))
    return pa.Table.from_arrays(columns, schema=pa.schema(names)) if columns else table.select([])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """One kind of text and of bytes, no dictionaries, moments in UTC."""
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return kind


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """NaN in the data is read as NULL."""
    if not (types.is_float32(column.type) or types.is_float64(column.type)):
        return column
    nan = pc.is_nan(column)
    return pc.if_else(nan, pa.scalar(None, column.type), column) if pc.any(nan).as_py() else column
