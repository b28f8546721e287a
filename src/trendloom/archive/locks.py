"""Locks of an archive, so that processes and threads that write into one folder do not undo each other's work.

A commit that is written again removes the files that earlier attempts have left: of two writers of one commit each
would remove the files that the other lists. So a commit has one writer at a time, and the second one is refused.
Locks are those of the operating system (`flock`): they end with the process that holds them, however it ends, and a
file of a lock that is left behind locks nothing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from trendloom.archive.commits import quoted
from trendloom.errors import RunError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, as soon as nobody else does."""
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
    """The file with its lock. A holder removes the file at its end: who has opened it before tries a new one."""
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
