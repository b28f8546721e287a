"""Keep an archive small and quick: drop what is old, put small files together. One at a time, and never half.

Both make one commit that takes over the files of others: some as they are, by their paths, some put together, some not
at all. From the moment it is written the others are dead; then their files of JSON are deleted, and then files that no
commit lists any more. A reader then lists the files again (`archive`). Damaged files are taken over as they are:
nothing is deleted that could not be read.

Small files of a chunk are put together when there are several of a size (`tiers`), so that each event is rewritten a
few times however many batches a chunk has: O(log of batches).
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from trendloom.archive.archive import Archive, open_archive
from trendloom.archive.catalog import AT, ArchivedQuery, read_settings
from trendloom.archive.commits import (
    COMMITTING,
    EVENTS,
    KINDS,
    PARTITIONS,
    ArchivedFile,
    Commit,
    Log,
    Replaced,
    commit_path,
    locked,
    newest_batches,
    read_log,
    write_commit,
)
from trendloom.archive.data_files import (
    MissingFileError,
    RowSelection,
    joint_columns,
    read_files,
    schema_of_file,
    with_all_columns,
)
from trendloom.archive.partitions import PartitionRows
from trendloom.archive.writing import ArchiveWriter

LARGE = 1_000_000
"""Rows of a file that is left as it is."""

FANOUT = 8
"""So many files of a size are put together; each size is so many times the one before."""

LOCK = ".upkeep"
UPKEEP = "upkeep"

Files = Sequence[ArchivedFile]
Change = Callable[[Archive, ArchiveWriter, Files], list[ArchivedFile]]
"""What is to become of files: those that stay, and those written in place of others."""


def drop_older(root: str | Path, before: int) -> int:
    """Drop files whose last time lies before a tick, and say how many; a chunk goes as a whole."""

    def young(_: Archive, __: ArchiveWriter, files: Files) -> list[ArchivedFile]:
        return [file for file in files if file.high is None or file.high >= before]

    return _changed(Path(root), young)


def keep_to_retention(root: str | Path) -> int:
    """Drop what is older than the archive's retention, counted from its newest event."""
    log, retention = read_log(Path(root)), read_settings(Path(root)).retention
    newest = max((file.high for file in log.files if file.kind == EVENTS and file.high is not None), default=None)
    if newest is None or retention is None:
        return 0
    oldest = newest - retention
    if all(file.high is None or file.high >= oldest for file in log.files):
        return 0
    return drop_older(root, oldest)


def compact(root: str | Path, before: int | None = None, *, tiered: bool = False) -> int:
    """Put small files together whose times lie before a tick (None: all), and say how many files fewer there are.

    `tiered`: only where there are several of a size, as a stream does it while it runs.
    """

    def together(archive: Archive, writer: ArchiveWriter, files: Files) -> list[ArchivedFile]:
        compaction = Compaction(archive, writer, before, tiered=tiered)
        groups = groupby(sorted(files, key=_place), key=_place)
        return [file for _, group in groups for file in compaction.put_together(list(group))]

    return _changed(Path(root), together)


def _place(file: ArchivedFile) -> tuple[str, str, int]:
    return file.kind, file.of, 0 if file.chunk is None else file.chunk


@dataclass(frozen=True, eq=False)
class Compaction:
    """Puts small files together, of one type or query and one chunk at a time."""

    archive: Archive
    writer: ArchiveWriter
    before: int | None
    tiered: bool

    @cached_property
    def sound(self) -> frozenset[str]:
        return frozenset(file.path for file in self.archive.files)

    @cached_property
    def queries(self) -> Mapping[str, ArchivedQuery]:
        return self.archive.queries()

    def put_together(self, files: Files) -> list[ArchivedFile]:
        """Files of one place, with small ones put together."""
        small = [file for file in files if self._is_small(file)]
        kept = {file.path for file in small}
        found = [file for file in files if file.path not in kept]
        for tier in _tiers(small) if self.tiered else [small]:
            found += self._rewritten(tier) if len(tier) >= (FANOUT if self.tiered else 2) else tier
        return found

    def _is_small(self, file: ArchivedFile) -> bool:
        old = self.before is None or file.high is None or file.high < self.before
        known = file.kind == EVENTS or file.of in self.queries
        return old and known and file.rows < LARGE and file.path in self.sound

    def _rewritten(self, files: Files) -> list[ArchivedFile]:
        """One file in place of several; those that turn out to be damaged stay as they are."""
        kind, of = files[0].kind, files[0].of
        damaged: list[ArchivedFile] = []
        tables = {file.path: self._read(file, damaged) for file in files}
        sound = [file for file in files if file not in damaged]
        if len(sound) < 2:
            return list(files)
        if kind == PARTITIONS:
            parts = [PartitionRows(tables[file.path], file.varying) for file in sound]
            return [*damaged, *self.writer.partitions(self.queries[of], parts)]
        joint = joint_columns(tables[file.path].schema for file in sound)
        table = pa.concat_tables([with_all_columns(tables[file.path], joint) for file in sound])
        if kind == EVENTS:
            typed = table.append_column(self.archive.type, pa.repeat(pa.scalar(of), len(table)))
            return [*damaged, *self.writer.events(typed)]
        return [*damaged, *self.writer.results(self.queries[of], table)]

    def _read(self, file: ArchivedFile, damaged: list[ArchivedFile]) -> pa.Table:
        schema = schema_of_file(self.archive.root, file)
        time = self.archive.time if file.kind == EVENTS else AT
        return read_files(self.archive.root, [file], schema, RowSelection(time), lambda one, _: damaged.append(one))


def _tiers(files: Files) -> list[list[ArchivedFile]]:
    """Files by size: each tier holds those of up to FANOUT times the rows of the one before."""
    found: dict[int, list[ArchivedFile]] = {}
    for file in files:
        size, tier = file.rows, 0
        while size >= FANOUT:
            size, tier = size // FANOUT, tier + 1
        found.setdefault(tier, []).append(file)
    return list(found.values())


# ----------------------------------------------------------------------------------------- one commit for others


def _changed(root: Path, change: Change) -> int:
    """Let one commit take over the files of others, as `change` says; how many files fewer there are."""
    with locked(root / LOCK):  # one upkeep at a time
        log = read_log(root)
        newest = newest_batches(log.commits)
        taken = [one for one in log.commits if one.stream is None or one.batch != newest[one.stream]]
        before = [file for one in taken for file in one.files]
        archive = open_archive(root)
        name = f"{UPKEEP}-{secrets.token_hex(6)}"
        try:
            after = change(archive, ArchiveWriter(root, archive.settings, name), before)
        except MissingFileError:
            return 0  # a commit was done again just now: the next upkeep sees it
        changed = {file.path for file in after} != {file.path for file in before}
        done = changed and _take_over(root, Commit(name, tuple(after), replaces=_replaced(taken)), taken, log)
        _clear(root, read_log(root))
    return len(before) - len(after) if done else 0


def _replaced(taken: Sequence[Commit]) -> Replaced:
    """What a commit has taken over, and what those have that it takes over."""
    names = {one.name for one in taken if one.stream is None}
    streams = newest_batches(taken)
    for one in taken:
        names |= {name for name in one.replaces.names if not name.startswith(f"{UPKEEP}-")}
        streams |= {stream: max(batch, streams.get(stream, batch)) for stream, batch in one.replaces.streams.items()}
    return Replaced(frozenset(names), streams)


def _take_over(root: Path, commit: Commit, taken: Sequence[Commit], log: Log) -> bool:
    """Write the commit, unless one that it takes over was done again in the meantime: then nothing happened."""
    with locked(root / COMMITTING):
        if _same(root, taken):
            write_commit(root, commit)
            return True
    listed = {one.path for one in log.files}
    for file in commit.files:
        if file.path not in listed:
            (root / file.path).unlink(missing_ok=True)
    return False


def _same(root: Path, taken: Sequence[Commit]) -> bool:
    now = {one.name: one for one in read_log(root).commits}
    return all(now.get(one.name) == one for one in taken)


def _clear(root: Path, log: Log) -> None:
    """Delete dead commits, then the files of theirs that no living commit lists."""
    listed = {file.path for file in log.files}
    for one in log.dead:
        commit_path(root, one.name).unlink(missing_ok=True)
    for one in log.dead:
        for file in one.files:
            if file.path not in listed:
                (root / file.path).unlink(missing_ok=True)
                _remove_empty(root, (root / file.path).parent)
    _clear_unfinished(root, {path.split("/")[1] for path in listed})


def _clear_unfinished(root: Path, living: set[str]) -> None:
    """Delete what upkeep has left that did not come to its commit; no other upkeep runs now."""
    for kind in KINDS:
        for folder in (root / kind).glob(f"{UPKEEP}-*"):
            if folder.name not in living:
                shutil.rmtree(folder, ignore_errors=True)


def _remove_empty(root: Path, folder: Path) -> None:
    while folder != root and folder.parent != root:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
