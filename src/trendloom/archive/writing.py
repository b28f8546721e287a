"""Write into an archive: events by type and chunk, rows of queries by chunk, partitions; then one commit for all.

Files are written under unique names, and are not in the archive until a commit lists them. So tasks on many
machines may write files of one commit, may fail and be done again: the commit lists those of the tasks that counted.
Events are sorted by type and time once, so that each file is a slice; of a type only the columns that it has are
stored. Cost: one sort, and one pass over the columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trendloom.archive.catalog import AT, ArchivedQuery, ArchiveSettings, read_settings, save_query
from trendloom.archive.commits import (
    COMMITTING,
    EVENTS,
    KINDS,
    PARTITIONS,
    RESULTS,
    ArchivedFile,
    Commit,
    data_path,
    locked,
    quoted,
    read_log,
    sole_writer,
    write_commit,
)
from trendloom.archive.data_files import keep_schema, plain_values
from trendloom.archive.partitions import PartitionRows, merged_dimensions
from trendloom.errors import DataError, OptionError
from trendloom.expr.arrays import Array
from trendloom.io.timestamps import ticks as ticks_of

ROWS_IN_GROUP = 65_536
"""Rows in a row group: what statistics can leave out at once."""


@dataclass(frozen=True)
class ArchiveWriter:
    """Writes files that belong to a commit, wherever it runs: in this process, or in a task."""

    root: Path
    settings: ArchiveSettings
    commit: str

    # -------------------------------------------------------------------------------------------------- events

    def events(self, table: pa.Table) -> list[ArchivedFile]:
        """Files of these events, one for each type and chunk."""
        if not len(table):
            return []
        table = self._with_times(table, self.settings.time)
        names = table.column(self.settings.type).cast(pa.string()).combine_chunks().fill_null("").dictionary_encode()
        codes = np.asarray(names.indices)
        ticks = ticks_of(table.column(self.settings.time), self.settings.axis)
        order = np.lexsort((ticks, codes))
        table = plain_values(table.drop_columns([self.settings.type]))
        present = {name: _types_with_values(table.column(name), codes) for name in table.column_names}
        files: list[ArchivedFile] = []
        for code, rows in _runs(codes[order]):
            of = names.dictionary[code].as_py()
            columns = [name for name, known in present.items() if code in known]
            ours = table.select(columns).take(pa.array(order[rows]))
            files += self._chunks(EVENTS, of, ours, ticks[order[rows]])
        return files

    # ------------------------------------------------------------------------------------------------- results

    def results(self, query: ArchivedQuery, rows: pa.Table) -> list[ArchivedFile]:
        """Files of a query's rows, which say in column `at` when they are; one for each chunk."""
        if not len(rows):
            return []
        rows = plain_values(self._with_times(rows, AT), keep=rows.column_names)
        ticks = ticks_of(rows.column(AT), self.settings.axis)
        sorted_by = [pa.array(ticks // self.settings.chunk), *map(rows.column, query.keys), pa.array(ticks)]
        names = [str(number) for number in range(len(sorted_by))]
        order = pc.sort_indices(pa.table(sorted_by, names=names), sort_keys=[(name, "ascending") for name in names])
        return list(self._chunks(RESULTS, query.name, rows.take(order), ticks[np.asarray(order)]))

    def partitions(self, query: ArchivedQuery, parts: Sequence[PartitionRows]) -> list[ArchivedFile]:
        """A file of the dimensions of a query's partitions, of several parts of them."""
        found = merged_dimensions(parts, query.keys) if parts else PartitionRows(pa.table({}))
        if not len(found.table) or not (found.dimensions(query.keys) or found.varying):
            return []
        return [self._file(PARTITIONS, query.name, None, found.table, None, None, found.varying)]

    # --------------------------------------------------------------------------------------------------- files

    def _with_times(self, table: pa.Table, name: str) -> pa.Table:
        """The table with its times as they are stored, in the first column."""
        column, wanted = table.column(name), self.settings.time_type
        if column.null_count:
            raise DataError(f"{column.null_count} rows have no time: column '{name}' is NULL", hint="leave them out")
        if pa.types.is_timestamp(column.type) != pa.types.is_timestamp(wanted):
            raise DataError(
                f"column '{name}' is {column.type}, but times of this archive are {wanted}",
                hint="convert the column, or archive these events elsewhere",
            )
        if pa.types.is_timestamp(wanted) and column.type.tz is None:
            column = column.cast(pa.timestamp("us")).cast(pa.int64())  # local times of UTC
        rest = table.drop_columns([name])
        return rest.add_column(0, name, column.cast(wanted))

    def _chunks(self, kind: str, of: str, table: pa.Table, ticks: Array) -> Iterator[ArchivedFile]:
        for chunk, rows in _runs(ticks // self.settings.chunk):
            part, times = table.slice(rows.start, rows.stop - rows.start), ticks[rows]
            yield self._file(kind, of, int(chunk), part, int(times.min()), int(times.max()))

    def _file(
        self, kind: str, of: str, chunk: int | None, table: pa.Table, low: int | None, high: int | None,
        varying: tuple[str, ...] = (),
    ) -> ArchivedFile:  # fmt: skip
        path = data_path(kind, self.commit, of, chunk, secrets.token_hex(8))
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place, row_group_size=ROWS_IN_GROUP, compression="zstd", write_page_checksum=True)
        schema = keep_schema(self.root, table.schema)
        return ArchivedFile(path, kind, of, chunk, len(table), low, high, place.stat().st_size, schema, varying)


def _types_with_values(column: pa.ChunkedArray, codes: Array) -> frozenset[int]:
    """The types, by code, of which an event has a value in this column."""
    if column.null_count == 0:
        return frozenset(np.unique(codes).tolist())
    if column.null_count == len(column):
        return frozenset()
    return frozenset(np.unique(codes[np.asarray(column.is_valid())]).tolist())


def _runs(values: Array) -> Iterator[tuple[int, slice]]:
    """Equal neighbours: their value, and where they lie."""
    if not len(values):
        return
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=True):
        yield values[start].item(), slice(start, stop)


# ------------------------------------------------------------------------------------------------- committing


def writer_of(root: str | Path, commit: str) -> ArchiveWriter:
    """A writer for files of that commit."""
    if not commit:
        raise OptionError("a commit needs a name", hint="any text will do; the same name replaces it")
    return ArchiveWriter(Path(root), read_settings(Path(root)), commit)


def commit_files(
    root: str | Path, name: str, files: Iterable[ArchivedFile], *,
    stream: str | None = None, batch: int | None = None, again: bool = True,
) -> bool:  # fmt: skip
    """Make files a part of the archive, in place of those that the commit of this name had.

    False: its files are in the archive already, put together with others (see `upkeep`), and cannot be replaced.
    `again` False: this is the first time for sure, so commits are not read. The commit has no other writer meanwhile
    (see `locks`).
    """
    root = Path(root)
    commit = Commit(name, tuple(files), stream, batch)
    with locked(root / COMMITTING):
        taken_over = again and read_log(root).taken_over(commit)
        if not taken_over:
            write_commit(root, commit)
    if taken_over:
        for file in commit.files:
            (root / file.path).unlink(missing_ok=True)
        return False
    _remove_unlisted(root, commit)
    return True


def _remove_unlisted(root: Path, commit: Commit) -> None:
    """Files that earlier attempts at this commit have left: it lists all that it has."""
    listed = {root / file.path for file in commit.files}
    for kind in KINDS:
        for path in (root / kind / quoted(commit.name)).rglob("*.parquet"):
            if path not in listed:
                path.unlink(missing_ok=True)


def write_events(root: str | Path, commit: str, table: pa.Table) -> None:
    """Put events into the archive; events of a commit of that name are replaced."""
    writer = writer_of(root, commit)
    with sole_writer(writer.root, [commit]):
        _commit_or_refuse(root, commit, writer.events(table))


def write_results(
    root: str | Path,
    commit: str,
    query: ArchivedQuery,
    rows: pa.Table,
    partitions: PartitionRows | pa.Table | None = None,
) -> None:
    """Put rows of a query into the archive, and its partition attributes with their dimensions.

    `partitions`: see `dimensions_of_events`; what a table says of `first`, `last` and `points` is left to the rows.
    """
    parts = [PartitionRows(partitions) if isinstance(partitions, pa.Table) else partitions] if partitions else []
    writer = writer_of(root, commit)
    with sole_writer(writer.root, [commit]):
        save_query(Path(root), query)
        _commit_or_refuse(root, commit, [*writer.results(query, rows), *writer.partitions(query, parts)])


def _commit_or_refuse(root: str | Path, commit: str, files: list[ArchivedFile]) -> None:
    if not commit_files(root, commit, files):
        raise OptionError(
            f"commit '{commit}' is in the archive already, compacted together with others",
            hint="give what is new another name",
        )
