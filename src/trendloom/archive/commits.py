"""What an archive holds: the files that its commits list, and no others; and the locks of its writers.

A commit is one small file of JSON that is written last, by a rename. So a crash leaves files that no commit lists,
which are not part of the archive, and never half of anything. A commit of the same name replaces the one before. One
that takes over the files of others (compaction, retention) says whose: they are dead from that moment on, whether their
files of JSON are gone already or not.

A stream does its last batch again after a crash, so the newest commit of each stream is never taken over. Of streams it
is enough to remember up to which batch: what a commit has taken over stays short.
Cost: opening reads every commit once; compaction keeps them few.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from trendloom.errors import DataError, RunError

EVENTS, RESULTS, PARTITIONS = "events", "results", "partitions"
KINDS = (EVENTS, RESULTS, PARTITIONS)
"""What files of an archive hold."""

SETTINGS = "archive.json"
COMMITS, SCHEMAS, QUERIES, MONITORS = "commits", "schemas", "queries", "monitors"
COMMITTING = ".committing"
"""The file whose lock is held from reading the commits that another one depends on until that is written."""
LONGEST = 150
"""Characters of a quoted name: what is longer is cut. Most file systems allow 255 with all that stands around it."""


def quoted(name: str) -> str:
    """A name as a part of a path: never empty, hidden, or a step upwards.

    Types, queries and commits may be called anything, so their names are percent-quoted, as Hive and Spark do it, and
    cut with a hash where they are too long for a file system. The commit that lists a file has its real names.
    """
    text = quote(name, safe="")
    text = "%2E" + text[1:] if text.startswith(".") else text or "%"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}~{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"


def data_path(kind: str, commit: str, of: str, chunk: int | None, name: str) -> str:
    """Where a file of a commit lies, from the root of the archive; `of`: the type or the query."""
    folder = f"{kind}/{quoted(commit)}/{'type' if kind == EVENTS else 'query'}={quoted(of)}"
    return f"{folder}/{name}.parquet" if chunk is None else f"{folder}/chunk={chunk}/{name}.parquet"


def commit_path(root: Path, name: str) -> Path:
    return root / COMMITS / f"{quoted(name)}.json"


def write_whole(path: Path, content: bytes) -> None:
    """A file that appears whole or not at all, in place of the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


PATIENCE = 5
"""So many times commits are listed again where one vanishes between listing and reading: another took it over."""


@dataclass(frozen=True)
class ArchivedFile:
    """A file of a commit: what it holds (`of`: a type or a query), and the first and last time in it, in ticks.

    `path` is relative to the root. `schema` names the file's columns (see `schemas`). `varying`: of partitions, the
    columns that were seen to have several values within one.
    """

    path: str
    kind: str
    of: str
    chunk: int | None
    rows: int
    low: int | None
    high: int | None
    bytes: int
    schema: str
    varying: tuple[str, ...] = ()

    def overlaps(self, low: int | None, high: int | None) -> bool:
        """Whether a time in it may lie in [low, high)."""
        if self.low is None or self.high is None:
            return True
        return (low is None or self.high >= low) and (high is None or self.low < high)


@dataclass(frozen=True)
class Replaced:
    """Commits whose files another one has taken over: by name, and of each stream up to a batch."""

    names: frozenset[str] = frozenset()
    streams: Mapping[str, int] = field(default_factory=dict)

    def covers(self, commit: Commit) -> bool:
        """Whether a commit is dead."""
        if commit.stream is not None and commit.batch is not None:
            return commit.batch <= self.streams.get(commit.stream, -1)
        return commit.name in self.names


@dataclass(frozen=True)
class Commit:
    """Files that came into the archive at once. `stream` and `batch`: of a live stream, whose batches have numbers."""

    name: str
    files: tuple[ArchivedFile, ...] = ()
    stream: str | None = None
    batch: int | None = None
    replaces: Replaced = Replaced()


def stream_commit(stream: str, batch: int) -> str:
    """The name of the commit of a batch: done again, it has the same."""
    return f"{stream}-{batch:09d}"


def write_commit(root: Path, commit: Commit) -> None:
    """From now on the files are in the archive."""
    content = asdict(commit)
    content["replaces"] = {"names": sorted(commit.replaces.names), "streams": dict(commit.replaces.streams)}
    write_whole(commit_path(root, commit.name), (json.dumps(content, separators=(",", ":")) + "\n").encode())


@dataclass(frozen=True)
class Log:
    """The commits that count, those that are dead but not yet deleted, and files of commits that cannot be read."""

    commits: tuple[Commit, ...]
    dead: tuple[Commit, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[ArchivedFile, ...]:
        return tuple(file for commit in self.commits for file in commit.files)

    def taken_over(self, commit: Commit) -> bool:
        """Whether what a commit of this name would bring is in the archive already, together with others."""
        return any(one.replaces.covers(commit) for one in self.commits)


def read_log(root: Path) -> Log:
    """All commits, by name."""
    for _ in range(PATIENCE):
        found = _read_all(root)
        if found is not None:
            break
    else:
        raise DataError(f"commits of the archive {root} vanish faster than they can be read", hint="ask again")
    commits, damaged = found
    taken = [one.replaces for one in commits]
    dead = tuple(one for one in commits if any(other.covers(one) for other in taken))
    names = {one.name for one in dead}
    return Log(tuple(one for one in commits if one.name not in names), dead, damaged)


def _read_all(root: Path) -> tuple[list[Commit], tuple[str, ...]] | None:
    """Every commit and the paths of damaged ones; None: one was there when listed, and gone when read."""
    commits, damaged = [], []
    for path in sorted((root / COMMITS).glob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            commits.append(_commit(json.loads(path.read_bytes())))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            damaged.append(str(path.relative_to(root)))
    return commits, tuple(damaged)


def _commit(content: dict[str, Any]) -> Commit:
    replaces = Replaced(frozenset(content["replaces"]["names"]), content["replaces"]["streams"])
    files = tuple(file_of(one) for one in content["files"])
    return Commit(content["name"], files, content["stream"], content["batch"], replaces)


def file_of(content: dict[str, Any]) -> ArchivedFile:
    """A file as a commit, or the report of a task, lists it."""
    found = ArchivedFile(**{**content, "varying": tuple(content["varying"])})
    if found.kind not in KINDS or Path(found.path).is_absolute() or ".." in Path(found.path).parts:
        raise ValueError(f"not a file of an archive: {found.path}")
    return found


def newest_batches(commits: Iterable[Commit]) -> dict[str, int]:
    """The last batch of each stream: the only one that may be done again."""
    newest: dict[str, int] = {}
    for commit in commits:
        if commit.stream is not None and commit.batch is not None:
            newest[commit.stream] = max(commit.batch, newest.get(commit.stream, commit.batch))
    return newest


# -------------------------------------------------------------------------------------------------- locks
#
# A commit that is written again removes the files that earlier attempts have left: of two writers of one commit each
# would remove the files that the other lists. So a commit has one writer at a time, and the second one is refused.
# Locks are those of the operating system (`flock`): they end with the process that holds them, however it ends, and a
# file of a lock that is left behind locks nothing.


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, once it is free."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def sole_writer(root: Path, commits: Iterable[str]) -> Iterator[None]:
    """Hold the locks of commits, by name; refuse where a process or thread is writing one of them."""
    with ExitStack() as held:
        for commit in sorted(set(commits)):
            held.enter_context(_locked_commit(root / f".{quoted(commit)}.lock", commit))
        yield


@contextmanager
def _locked_commit(path: Path, commit: str) -> Iterator[None]:
    with _opened_and_locked(path, commit) as lock:
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _opened_and_locked(path: Path, commit: str) -> IO[str]:
    """The file with its lock. A holder removes the file at its end; one that was opened before is opened anew."""
    while True:
        lock = path.open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            by = f"process {holder}" if holder else "another process"
            raise RunError(
                f"commit '{commit}' is being written into the archive {path.parent} by {by}",
                hint="wait until it has ended, or give these events another name of a commit",
            ) from None
        if _is_at(lock, path):
            return lock
        lock.close()


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
