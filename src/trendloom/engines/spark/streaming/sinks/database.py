"""Rows in a table of a database, each exactly once: a transaction takes the rows of a batch and a note of it.

A batch that is done again finds the note and leaves the table alone. Batches of a stream come in order, so the note is
one number per stream and table: the last batch that is done. Rows go through the driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendloom.engines.spark.streaming.sinks import SINKS, BatchWriter, RowSink, stream_of
from trendloom.errors import OptionError
from trendloom.io.write import json_cells, plain_cells
from trendloom.streaming.connectors import check_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOTES = "trendloom_batches"
WAIT_FOR_LOCK = 5.0
"""Seconds that another writer of an SQLite file is waited for; after that the stream tries again."""
SMALL = 2**63
PLACEHOLDERS = {"qmark": "?", "format": "%s", "pyformat": "%s"}


@SINKS.register
class SqliteSink(RowSink):
    """`sqlite:FILE/TABLE`."""

    scheme = "sqlite"
    form = "sqlite:FILE/TABLE"
    exactly_once = "is left out: rows and batch number are one transaction"

    def check(self) -> None:
        file, _, table = self.place.rpartition("/")
        if not file or not table or Path(self.place).suffix in (".db", ".sqlite", ".sqlite3"):
            raise OptionError(
                f"'{self.place}' does not name a file and a table",
                hint="sqlite:FILE/TABLE, e.g. sqlite:rows.db/matches",
            )
        check_file(file)

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        file, _, table = self.place.rpartition("/")
        return to_sqlite(file, table)


def to_sqlite(path: str, table: str, *, stream: str | None = None) -> BatchWriter:
    """Rows into a table of an SQLite file; `events` and other nested values are JSON text.

    Counts beyond 64 bits are text of all their digits, times are ISO-8601 UTC.
    """
    return DatabaseWriter(partial(_open_sqlite, path), table, stream=stream, typed=False)


def to_database(
    connect: Callable[[], Any], table: str, *, paramstyle: str = "qmark", stream: str | None = None
) -> BatchWriter:
    """Rows into a table of any database with a Python driver (DB-API 2.0).

    `connect` opens a connection on the driver; `paramstyle` is that of the driver's module: qmark, format or pyformat.
    The table is made if it is not there, of BIGINT, DOUBLE PRECISION, BOOLEAN, NUMERIC(38, 0) and TEXT.
    """
    if paramstyle not in PLACEHOLDERS:
        raise OptionError(f"unknown paramstyle '{paramstyle}'", hint=f"one of {', '.join(PLACEHOLDERS)}")
    return DatabaseWriter(connect, table, stream=stream, placeholder=PLACEHOLDERS[paramstyle])


@dataclass(frozen=True)
class DatabaseWriter:
    """See `to_database`."""

    connect: Callable[[], Any]
    table: str
    stream: str | None = None
    placeholder: str = "?"
    typed: bool = True

    def __call__(self, rows: DataFrame, batch: int) -> None:
        stream = self.stream or stream_of(rows)
        found = rows.toArrow()
        with closing(self.connect()) as connection:
            try:
                self._write(connection.cursor(), found, stream, batch)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    def _write(self, cursor: Any, rows: pa.Table, stream: str, batch: int) -> None:
        key = f"stream = {self.placeholder} AND target = {self.placeholder}"
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {NOTES} "
            "(stream VARCHAR(64), target VARCHAR(255), last_batch BIGINT, PRIMARY KEY (stream, target))"
        )
        cursor.execute(f"SELECT last_batch FROM {NOTES} WHERE {key}", (stream, self.table))
        done = cursor.fetchone()
        if done is not None and int(done[0]) >= batch:
            return
        if len(rows):
            self._insert(cursor, rows)
        if done is None:
            cursor.execute(f"INSERT INTO {NOTES} VALUES ({self._marks(3)})", (stream, self.table, batch))
        else:
            note = f"UPDATE {NOTES} SET last_batch = {self.placeholder} WHERE {key}"
            cursor.execute(note, (batch, stream, self.table))

    def _insert(self, cursor: Any, rows: pa.Table) -> None:
        columns = [quoted(name) for name in rows.column_names]
        declared = [
            f"{name} {_sql_type(field.type)}" if self.typed else name
            for name, field in zip(columns, rows.schema, strict=True)
        ]
        target = quoted(self.table)
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {target} ({', '.join(declared)})")
        cursor.execute(f"SELECT * FROM {target} WHERE 1 = 0")
        there = {str(about[0]).lower() for about in cursor.description}
        for name, one in zip(rows.column_names, declared, strict=True):
            if name.lower() not in there:  # of a query that has been added
                cursor.execute(f"ALTER TABLE {target} ADD COLUMN {one}")
        values = zip(*(_values(rows.column(at), field) for at, field in enumerate(rows.schema)), strict=True)
        insert = f"INSERT INTO {target} ({', '.join(columns)}) VALUES ({self._marks(len(columns))})"
        cursor.executemany(insert, list(values))

    def _marks(self, count: int) -> str:
        return ", ".join([self.placeholder] * count)


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever signs it has."""
    return '"' + name.replace('"', '""') + '"'


def _open_sqlite(path: str) -> sqlite3.Connection:
    """A connection whose transactions begin by taking the lock: reading the note and writing cannot be torn apart."""
    connection = sqlite3.connect(path, timeout=WAIT_FOR_LOCK, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_integer(kind):
        return "BIGINT"
    if pa.types.is_floating(kind):
        return "DOUBLE PRECISION"
    if pa.types.is_decimal(kind):
        return f"NUMERIC({kind.precision}, {kind.scale})"
    return "TEXT"


def _values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The values of a column as a driver takes them."""
    kind = field.type
    whole = column.combine_chunks()
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return list(whole.to_pylist())
    if pa.types.is_nested(kind):
        return [None if cell == "null" else cell for cell in json_cells(whole, field)]
    cells = plain_cells(whole)
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return [None if cell is None else int(cell) if -SMALL <= int(cell) < SMALL else cell for cell in cells]
    return cells
