"""The data files of an archive: which columns they have, and how the requested rows of them are read.

The commits list the times of a file, so most files are never opened; of those that are, only row groups whose
statistics allow a wanted time (and wanted values, where a partition is requested) are read, and only the columns
requested. Rows that remain are filtered. Pages carry checksums: a flipped bit is a damaged file, not a wrong number.

The columns of files are stored once each: a schema is written under the hash of its bytes, which a commit lists for
each file, so that no file is opened to learn its columns. Values are stored plainly (no dictionaries, one kind of text,
moments in UTC), so that files by any writer fit together; where types differ from file to file, the type that holds all
values is found.
Cost: a few opened files for each chunk of the stretch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from trendloom.archive.commits import SCHEMAS, ArchivedFile, write_whole
from trendloom.io.events import without_nan
from trendloom.io.parquet import unpacked_type

READERS = 8
"""Files that are read at the same time."""


@dataclass(frozen=True)
class RowSelection:
    """Rows with a time in [low, high), in ticks of column `time`, and with these values."""

    time: str
    low: int | None = None
    high: int | None = None
    values: Mapping[str, object] = field(default_factory=dict)


class MissingFileError(Exception):
    """A file that a commit listed is gone: the archive was compacted since it was opened."""


Damaged = Callable[[ArchivedFile, str], None]
"""What is done with a file that cannot be read, and why it cannot."""


def read_files(
    root: Path, files: Sequence[ArchivedFile], schema: pa.Schema, wanted: RowSelection, damaged: Damaged
) -> pa.Table:
    """The wanted rows of these columns, from files that hold one type or one query."""

    def read(file: ArchivedFile) -> pa.Table | None:
        try:
            return read_file(root / file.path, schema, wanted)
        except FileNotFoundError as problem:
            raise MissingFileError(file.path) from problem
        except (pa.ArrowException, OSError, ValueError) as problem:
            damaged(file, str(problem).strip().partition("\n")[0])
            return None

    chosen = [file for file in files if file.overlaps(wanted.low, wanted.high)]
    tables = [schema.empty_table(), *(table for table in _each(read, chosen) if table is not None)]
    return pa.concat_tables(tables)


def _each(work: Callable[[ArchivedFile], pa.Table | None], files: list[ArchivedFile]) -> Iterable[pa.Table | None]:
    if len(files) < 2:
        return [work(file) for file in files]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(work, files))


def read_file(path: Path, schema: pa.Schema, wanted: RowSelection) -> pa.Table:
    """The wanted rows of one file, with exactly these columns."""
    with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
        there = set(parquet.schema_arrow.names)
        if any(name not in there and value is not None for name, value in wanted.values.items()):
            return schema.empty_table()  # a column that the file lacks is NULL in all its rows
        groups = row_groups(parquet.metadata, wanted)
        needed = {*schema.names, *wanted.values, *([] if wanted.low is wanted.high is None else [wanted.time])}
        table = parquet.read_row_groups(groups, columns=[name for name in parquet.schema_arrow.names if name in needed])
    return with_all_columns(_filtered(table, wanted), schema)


def schema_of_file(root: Path, file: ArchivedFile) -> pa.Schema:
    """The columns of a file, from its footer where the archive's note of them is lost."""
    try:
        return read_schema(root, file.schema)
    except (OSError, pa.ArrowException):
        pass
    try:
        return pq.read_schema(root / file.path).remove_metadata()
    except FileNotFoundError as problem:
        raise MissingFileError(file.path) from problem


def row_groups(footer: pq.FileMetaData, wanted: RowSelection) -> list[int]:
    """The row groups that may hold a selected row, by their statistics."""
    names = [footer.schema.column(at).path for at in range(footer.num_columns)]
    time = names.index(wanted.time) if wanted.time in names else None
    tested = [(names.index(name), value) for name, value in wanted.values.items() if name in names]
    return [
        number
        for number in range(footer.num_row_groups)
        if (time is None or _may_lie(footer.row_group(number).column(time).statistics, wanted.low, wanted.high))
        and all(_may_hold(footer.row_group(number).column(at).statistics, value) for at, value in tested)
    ]


def _may_lie(statistics: pq.Statistics | None, low: int | None, high: int | None) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    least, most = statistics.min_raw, statistics.max_raw
    return (low is None or most >= low) and (high is None or least < high)


def _may_hold(statistics: pq.Statistics | None, value: Any) -> bool:
    if statistics is None:
        return True
    if value is None:
        return not statistics.has_null_count or bool(statistics.null_count)
    if not statistics.has_min_max:
        return True
    try:
        return bool(statistics.min <= value <= statistics.max)
    except TypeError:
        return True  # values of another kind: they are compared one by one


def _filtered(table: pa.Table, wanted: RowSelection) -> pa.Table:
    tests = []
    if wanted.time in table.column_names and not (wanted.low is wanted.high is None):
        ticks = table.column(wanted.time).cast(pa.int64())
        tests += [] if wanted.low is None else [pc.greater_equal(ticks, wanted.low)]
        tests += [] if wanted.high is None else [pc.less(ticks, wanted.high)]
    for name, value in wanted.values.items():
        if name in table.column_names:
            tests.append(equals(table.column(name), value))
    for test in tests:
        if not pc.all(test, min_count=0).as_py():
            mask = tests[0]
            for other in tests[1:]:
                mask = pc.and_(mask, other)
            return table.filter(mask)
    return table


def equals(column: pa.ChunkedArray, value: object) -> pa.ChunkedArray:
    """Where a column has this value; NULL equals NULL, and text that spells a value is that value."""
    if value is None:
        return column.is_null()
    try:
        found = pc.equal(column, pa.scalar(value).cast(column.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.repeat(False, len(column))])
    return found.fill_null(False)


# ------------------------------------------------------------------------------------------------- columns


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
    for one in (one for schema in schemas for one in schema):
        known = found.get(one.name)
        if known is None or known.type == one.type:
            found.setdefault(one.name, one)
        else:
            found[one.name] = pa.field(one.name, _joint_type(known.type, one.type))
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
        table.column(one.name).cast(one.type)
        if one.name in table.column_names
        else pa.chunked_array([pa.nulls(len(table), one.type)])
        for one in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


# ------------------------------------------------------------------------------------------------ plain values


def plain_values(table: pa.Table, keep: Sequence[str] = ()) -> pa.Table:
    """Values as they are stored; columns of no type at all are left out, unless they are to be kept."""
    names, columns = [], []
    for one in table.schema:
        column = table.column(one.name)
        if types.is_null(one.type) and one.name not in keep:
            continue
        wanted = plain_type(one.type)
        column = column if column.type == wanted else column.cast(wanted)
        names.append(one.with_type(wanted))
        columns.append(column)
    return without_nan(pa.Table.from_arrays(columns, schema=pa.schema(names))) if columns else table.select([])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """One kind of text and of bytes, no dictionaries, moments in UTC."""
    kind = unpacked_type(kind)
    if types.is_null(kind):
        return pa.string()
    if types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return kind
