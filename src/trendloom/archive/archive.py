"""An opened archive: events by type and time, rows of queries, partitions; what its commits said when it was opened.

The view does not change while others write. Where the archive is compacted in between, a file of the view may be
gone: it is then read again, once, as it is. A file that is damaged is named in a warning and
left out; nothing is ever deleted for it.
Cost of opening: the commits, and a look at the size of each file. Files are opened when rows are read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from trendloom.archive.catalog import (
    AT,
    ArchivedQuery,
    ArchiveSettings,
    agree_on_settings,
    read_monitors,
    read_queries,
    read_settings,
    settings_for,
)
from trendloom.archive.commits import EVENTS, KINDS, PARTITIONS, RESULTS, ArchivedFile, Log, read_log
from trendloom.archive.data_files import MissingFileError, RowSelection, joint_columns, read_files, schema_of_file
from trendloom.archive.partitions import FIRST, LAST, POINTS, PartitionRows, table_of_partitions
from trendloom.errors import ArchiveWarning, DataError, OptionError, did_you_mean
from trendloom.model.time import TimeAxis

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class TypeSummary:
    """How many events of a type there are, the first and last time in ticks, and its attributes by name."""

    rows: int
    low: int
    high: int
    columns: Mapping[str, pa.DataType]


@dataclass(frozen=True, eq=False)
class Archive:
    """A folder of events, results and partitions, as it was when it was opened."""

    root: Path
    settings: ArchiveSettings
    files: tuple[ArchivedFile, ...]
    damaged: dict[str, str] = field(default_factory=dict)  # paths of what was left out and why, as they were found

    # ------------------------------------------------------------------------------------------ what it is for

    @property
    def time(self) -> str:
        return self.settings.time

    @property
    def type(self) -> str:
        return self.settings.type

    @property
    def unit(self) -> str | None:
        """What whole numbers of time count; None: times are timestamps, and ticks are microseconds since 1970, UTC."""
        return self.settings.unit

    @property
    def axis(self) -> TimeAxis:
        return self.settings.axis

    @property
    def chunk(self) -> int:
        """The length of a chunk, in ticks."""
        return self.settings.chunk

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last time of all events, in ticks."""
        files = [file for file in self.files if file.kind == EVENTS]
        if not files:
            raise DataError(f"the archive {self.root} has no events", hint="archive some first")
        return min(_low(file) for file in files), max(_high(file) for file in files)

    # ------------------------------------------------------------------------------------------- what it holds

    def types(self) -> Mapping[str, TypeSummary]:
        """The types of events, by name."""
        return self._summaries

    def queries(self) -> Mapping[str, ArchivedQuery]:
        """The queries whose rows are here, by name; a query may have no row."""
        found, damaged = read_queries(self.root)
        self._tell_damaged(damaged)
        return found

    def monitors(self) -> Mapping[str, dict[str, Any]]:
        """The monitors, by name."""
        found, damaged = read_monitors(self.root)
        self._tell_damaged(damaged)
        return found

    def events(
        self, type_: str, low: int | None = None, high: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Events of a type with a time in [low, high), in the order of time: their time, then these attributes."""

        def read(archive: Archive) -> pa.Table:
            files = archive._named(EVENTS, type_, "type")
            schema = archive._chosen(files, [archive.time], columns, f"events of type '{type_}'")
            return archive._read(files, schema, RowSelection(archive.time, low, high))

        return self._retried(read)

    def stream(
        self,
        low: int | None = None,
        high: int | None = None,
        *,
        types: Iterable[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Events of several types (None: all) as one table with a column of types: what queries run over."""
        tables = []
        for name in self._summaries if types is None else types:
            known = self._summaries[name].columns if name in self._summaries else {}
            there = None if columns is None else [one for one in columns if one in known]
            table = self.events(name, low, high, there)
            tables.append(table.add_column(1, self.type, pa.repeat(pa.scalar(name), len(table))))
        empty = pa.schema([(self.time, self.settings.time_type), (self.type, pa.string())]).empty_table()
        return pa.concat_tables([empty, *tables], promote_options="permissive").sort_by(self.time)

    def results(
        self,
        query: str,
        partition: Mapping[str, object] | None = None,
        low: int | None = None,
        high: int | None = None,
    ) -> pa.Table:
        """Rows of a query with `at` in [low, high), in its order; of one partition, if it is given."""

        def read(archive: Archive) -> pa.Table:
            known = archive._query(query)
            _refuse_other_keys(known, partition or {})
            files = archive._named(RESULTS, query)
            if not files:
                return archive._empty(known.kinds, (AT,))
            schema = archive._chosen(files, [AT], None, f"rows of query '{query}'")
            return archive._read(files, schema, RowSelection(AT, low, high, dict(partition or {})))

        return self._retried(read)

    def partitions(self, query: str) -> pa.Table:
        """One row per partition of a query's rows: its attributes, its dimensions, `first`, `last` and `points`."""

        def read(archive: Archive) -> pa.Table:
            known = archive._query(query)
            files = archive._named(RESULTS, query)
            if not files:
                return archive._empty(known.keys, (FIRST, LAST), {POINTS: pa.int64()})
            schema = archive._chosen(files, [AT], known.keys, f"rows of query '{query}'")
            rows = archive._read(files, schema, RowSelection(AT))
            return table_of_partitions(rows, archive._partition_rows(known), known.keys, AT)

        return self._retried(read)

    def leave_out(self, path: str, problem: str) -> None:
        """Note that a file is damaged and was left out; a warning says so, once."""
        if path not in self.damaged:
            self.damaged[path] = problem
            message = f"archive {self.root}: {path} is damaged and left out: {problem}"
            warnings.warn(message, ArchiveWarning, stacklevel=5)

    # ---------------------------------------------------------------------------------------------- inside

    def _retried(self, read: Callable[[Archive], _Answer]) -> _Answer:
        """The answer; where a file has vanished since the archive was opened, that of the archive as it is."""
        try:
            return read(self)
        except MissingFileError:
            pass
        try:
            return read(open_archive(self.root))
        except MissingFileError as gone:
            raise DataError(
                f"the archive {self.root} changes while it is read: {gone} was there a moment ago", hint="ask again"
            ) from gone

    @cached_property
    def _by_name(self) -> dict[str, dict[str, list[ArchivedFile]]]:
        """The files of every kind, by type or query."""
        found: dict[str, dict[str, list[ArchivedFile]]] = {kind: {} for kind in KINDS}
        for file in sorted(self.files, key=lambda file: (file.of, file.low or 0, file.path)):
            found[file.kind].setdefault(file.of, []).append(file)
        return found

    @cached_property
    def _summaries(self) -> dict[str, TypeSummary]:
        return {of: self._summary(files) for of, files in self._by_name[EVENTS].items()}

    def _named(self, kind: str, name: str, what: str | None = None) -> list[ArchivedFile]:
        """The files of a type or query, in the order of time; unless `what` is None, there must be some."""
        by_name = self._by_name[kind]
        if name not in by_name and what is not None:
            hint = did_you_mean(name, by_name) or "it has no events"
            raise DataError(f"the archive {self.root} has no {what} '{name}'", hint=hint)
        return by_name.get(name, [])

    def _query(self, name: str) -> ArchivedQuery:
        known = self.queries()
        if name not in known:
            hint = did_you_mean(name, known) or "it has no queries: archive some with their events"
            raise DataError(f"the archive {self.root} has no query '{name}'", hint=hint)
        return known[name]

    def _schema(self, files: Iterable[ArchivedFile]) -> pa.Schema:
        by_schema = {file.schema: file for file in files}
        return joint_columns(schema_of_file(self.root, file) for file in by_schema.values())

    def _chosen(
        self, files: list[ArchivedFile], always: list[str], columns: Sequence[str] | None, what: str
    ) -> pa.Schema:
        schema = self._schema(files)
        wanted = schema.names if columns is None else columns
        for name in wanted:
            if name not in schema.names:
                raise DataError(f"{what} have no column '{name}'", hint=did_you_mean(name, schema.names))
        return pa.schema([schema.field(name) for name in dict.fromkeys([*always, *wanted])])

    def _summary(self, files: list[ArchivedFile]) -> TypeSummary:
        columns = {one.name: one.type for one in self._schema(files) if one.name != self.time}
        rows = sum(file.rows for file in files)
        return TypeSummary(rows, min(map(_low, files)), max(map(_high, files)), columns)

    def _read(self, files: list[ArchivedFile], schema: pa.Schema, wanted: RowSelection) -> pa.Table:
        table = read_files(self.root, files, schema, wanted, self._leave_out)
        return table.sort_by(wanted.time) if len(table) else table

    def _partition_rows(self, query: ArchivedQuery) -> list[PartitionRows]:
        found = []
        for file in self._named(PARTITIONS, query.name):
            schema = schema_of_file(self.root, file)
            table = read_files(self.root, [file], schema, RowSelection(AT), self._leave_out)
            found.append(PartitionRows(table, file.varying))
        return found

    def _empty(
        self, names: Iterable[str], times: Iterable[str], more: Mapping[str, pa.DataType] | None = None
    ) -> pa.Table:
        """No rows, with the columns that are known without any; only rows have types."""
        kinds = dict.fromkeys(times, self.settings.time_type) | dict.fromkeys(names, pa.null()) | dict(more or {})
        return pa.schema(list(kinds.items())).empty_table()

    def _leave_out(self, file: ArchivedFile, problem: str) -> None:
        self.leave_out(file.path, problem)

    def _tell_damaged(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.leave_out(path, "it cannot be read")


def _low(file: ArchivedFile) -> int:
    assert file.low is not None
    return file.low


def _high(file: ArchivedFile) -> int:
    assert file.high is not None
    return file.high


def _refuse_other_keys(query: ArchivedQuery, partition: Mapping[str, object]) -> None:
    for name in partition:
        if name not in query.keys:
            hint = did_you_mean(name, query.keys) or "its rows are all of one partition"
            raise OptionError(f"query '{query.name}' has no partition attribute '{name}'", hint=hint)


# ------------------------------------------------------------------------------------------------- opening


def open_archive(root: str | Path) -> Archive:
    """The archive as it is now; what is damaged is named in a warning and left out."""
    root = Path(root)
    settings = read_settings(root)
    log = read_log(root)
    missing = _unfit(root, log)
    if any(not (root / path).exists() for path in missing):  # compacted while we looked?
        log = read_log(root)
        missing = _unfit(root, log)
    archive = Archive(root, settings, tuple(file for file in log.files if file.path not in missing))
    archive._tell_damaged(log.damaged)
    for path, problem in missing.items():
        archive.leave_out(path, problem)
    return archive


def _unfit(root: Path, log: Log) -> dict[str, str]:
    """Files that are not there, or not of the size that their commit says."""
    found = {}
    for file in log.files:
        try:
            size = (root / file.path).stat().st_size
        except FileNotFoundError:
            found[file.path] = "it is not there"
        else:
            if size != file.bytes:
                found[file.path] = f"it has {size:,} bytes instead of {file.bytes:,}"
    return found


def create_archive(
    root: str | Path,
    *,
    time: str = "time",
    type: str = "type",
    axis: TimeAxis | None = None,
    unit: str | None = None,
    chunk: str | int = "1 hour",
    retention: str | int | None = None,
) -> Archive:
    """Make an archive for events of these columns, or open the one that is there, if it was made for the same.

    `unit` is what whole numbers of time count; without it, and without an `axis`, times are timestamps. `chunk` and
    `retention` are durations as text, or ticks; older events than `retention`, by the newest, are dropped
    whenever something is archived (None: never).
    """
    axis = axis or (TimeAxis.timestamps() if unit is None else TimeAxis.integer(unit))
    agree_on_settings(Path(root), settings_for(axis, time=time, type=type, chunk=chunk, retention=retention))
    return open_archive(root)
