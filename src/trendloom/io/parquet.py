"""Parquet files as one table: what their footers hold, without reading an event, and the requested columns.

All files have the same columns and types; their order means nothing, nor does how text is packed (dictionaries, long
or short offsets). Folders named `key=value` add columns, recognised as those of text files are. Cost: every footer is
read once; columns that are not requested are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from trendloom.errors import DataError
from trendloom.io.convert import ConversionFailure, convert, form_of_text, type_of
from trendloom.io.files import File, decode_names, guarded, refuse_duplicates

READERS = 8
"""Files that are read at the same time: storage answers slowly more often than it sends slowly."""

_HINT = "the file is damaged, or not complete"
_Done = TypeVar("_Done")


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """Files that fit together, their footers, and the columns of the whole."""

    files: tuple[File, ...]
    footers: tuple[pq.FileMetaData, ...]
    columns: pa.Schema
    keys: Mapping[str, pa.ChunkedArray]  # the values of the columns that folders give, one for each file

    @property
    def rows(self) -> int:
        """How many there are in all files."""
        return sum(footer.num_rows for footer in self.footers)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All files as one table, or those of its columns that are named and there."""
        wanted = [field for field in self.columns if columns is None or field.name in set(columns)]
        tables = _each(lambda at: self._part(at, wanted), range(len(self.files)))
        return pa.concat_tables(tables)

    def _part(self, at: int, wanted: list[pa.Field]) -> pa.Table:
        stored = [field.name for field in wanted if field.name not in self.keys]
        file, rows = self.files[at], self.footers[at].num_rows
        table = guarded(file.name, lambda: _stored(file, stored), _HINT)
        columns = [
            pa.repeat(self.keys[field.name][at], rows) if field.name in self.keys else table.column(field.name)
            for field in wanted
        ]
        schema = pa.schema([pa.field(field.name, field.type) for field in wanted])
        return guarded(file.name, lambda: pa.table(columns, names=schema.names).cast(schema), _HINT)

    def without_values(self) -> frozenset[str]:
        """Columns that are NULL in every row, by the footers."""
        nulls: dict[str, int] = {}
        for footer in self.footers:
            for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
                for chunk in (group.column(number) for number in range(group.num_columns)):
                    statistics = chunk.statistics
                    known = statistics.null_count if statistics is not None and statistics.has_null_count else 0
                    nulls[chunk.path_in_schema] = nulls.get(chunk.path_in_schema, 0) + known
        return frozenset(name for name, count in nulls.items() if 0 < self.rows == count and name not in self.keys)


def open_parquet(files: tuple[File, ...], schema: Mapping[str, pa.DataType], zone: str) -> ParquetFiles:
    """Read the footers, and refuse files that do not fit together. `schema` names columns that folders give."""
    footers = tuple(_each(_footer, files))
    schemas = [_arrow(file, footer) for file, footer in zip(files, footers, strict=True)]
    for file, other in zip(files[1:], schemas[1:], strict=True):
        _refuse_difference(files[0], schemas[0], file, other)
    keys = _keys(files, schema, zone)
    stored = [_joint(field, schemas) for field in schemas[0] if field.name not in keys]
    given = [pa.field(name, values.type) for name, values in keys.items()]
    return ParquetFiles(files, footers, pa.schema([*stored, *given]), keys)


# ------------------------------------------------------------------------------------------------------- footers


def _footer(file: File) -> pq.FileMetaData:
    def read() -> pq.FileMetaData:
        with file.system.open_input_file(file.path) as opened, pq.ParquetFile(opened) as parquet:
            return parquet.metadata

    return guarded(file.name, read, _HINT)


def _arrow(file: File, footer: pq.FileMetaData) -> pa.Schema:
    def read() -> pa.Schema:
        schema = footer.schema.to_arrow_schema().remove_metadata()
        decode_names(schema)
        return schema

    schema = guarded(file.name, read, _HINT)
    refuse_duplicates(schema.names, file.name)
    return schema


def _refuse_difference(first: File, one: pa.Schema, second: File, other: pa.Schema) -> None:
    left, right = ({field.name: field.type for field in schema} for schema in (one, other))
    for name in [*left, *right]:
        here, there = left.get(name), right.get(name)
        if here is None or there is None or unpacked_type(here) != unpacked_type(there):
            raise DataError(
                f"column '{name}' is {_shown(here)} in {first.name}, but {_shown(there)} in {second.name}",
                hint="write the files with one schema, or read them apart",
            )


def unpacked_type(kind: pa.DataType) -> pa.DataType:
    """The type without how its values are packed."""
    if types.is_dictionary(kind):
        return unpacked_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    return pa.binary() if types.is_large_binary(kind) or types.is_binary_view(kind) else kind


def _joint(field: pa.Field, schemas: list[pa.Schema]) -> pa.Field:
    """The column as all files have it; where they pack it differently, plain."""
    alike = all(schema.field(field.name).type == field.type for schema in schemas)
    return pa.field(field.name, field.type if alike else unpacked_type(field.type))


def _shown(kind: pa.DataType | None) -> str:
    return "missing" if kind is None else str(kind)


# -------------------------------------------------------------------------------------------------------- columns


def _stored(file: File, columns: list[str]) -> pa.Table:
    """Columns of one file; bytes that are not what the footer says are found here, not in the middle of a run."""
    far = file.local is None  # then few large requests are better than many small ones
    with file.system.open_input_file(file.path) as opened, pq.ParquetFile(opened, pre_buffer=far) as parquet:
        table = parquet.read(columns=columns)
    table.validate(full=True)
    return table


def _keys(files: tuple[File, ...], schema: Mapping[str, pa.DataType], zone: str) -> dict[str, pa.ChunkedArray]:
    names = dict.fromkeys(name for file in files for name, _ in file.keys)
    found: dict[str, pa.ChunkedArray] = {}
    for name in names:
        for file in files:
            if name not in dict(file.keys):
                with_it = next(one for one in files if name in dict(one.keys))
                raise DataError(
                    f"the folders of {with_it.name} give it a column '{name}', but those of {file.name} do not",
                    hint="read them apart, or put all files into folders of that kind",
                )
        values = pa.chunked_array([pa.array([dict(file.keys)[name] for file in files], pa.string())])
        wanted = schema.get(name) or type_of(form_of_text(values), marked=False, zone=zone)
        typed = convert(values, wanted, zone)
        if isinstance(typed, ConversionFailure):
            raise DataError(
                f"{files[typed.row].name}: its folder gives column '{name}' the value {typed.value!r}, "
                f"which is not {wanted}",
                hint="give the column another type in the schema",
            )
        found[name] = typed
    return found


def _each(work: Callable[..., _Done], things: Sequence[object]) -> list[_Done]:
    if len(things) == 1:
        return [work(things[0])]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(work, things))
