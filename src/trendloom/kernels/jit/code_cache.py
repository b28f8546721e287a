"""The folder of compiled code: one per fingerprint, shared by all processes of a user, never stale.

Compiled code depends on more than the file of its function: on what that function calls in other files, on constants,
on Numba and on the processor. All of these go into one fingerprint, which is the name of the folder: code of other
sources is simply not there. A file holds one compiled function for one signature; it is written whole under another
name and then renamed, so that readers see all of it or nothing, and a second writer changes nothing.

`TRENDLOOM_CACHE` names the folder; else it is `$XDG_CACHE_HOME/trendloom`, else `~/.cache/trendloom`. Where that cannot
be written (an image that was warmed when it was built, a home that does not exist), code is read from there and
written to a folder of this user below the temporary one.

Cost: reading and digesting the sources, some ten milliseconds per process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

VARIABLE = "TRENDLOOM_CACHE"
ROOMS = ("kernels", "expr", "model", "pattern", "errors.py")
"""What compiled code can come from: the kernels, and the rooms below them."""
DIGEST = 32
STAMP, LOCKS = "used", "locks"
UNUSED_DAYS = 30
"""Days after which a folder of another fingerprint is removed, if it was not used since."""
PATIENCE = 180.0
"""Seconds to wait for code that another process compiles; then this one compiles it too."""
GLANCE = 0.02
"""Seconds between two tests of whether the other process is done."""


def fingerprint_of(sources: Traversable, *circumstances: object) -> str:
    """A name for the code that these sources give under these circumstances (versions, processor, settings)."""
    digest = hashlib.sha256()
    for name, content in _sources(sources, ROOMS):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    for one in circumstances:
        digest.update(f"{one!r}\0".encode())
    return digest.hexdigest()[:20]


def _sources(folder: Traversable, names: tuple[str, ...] | None, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for child in sorted(folder.iterdir(), key=lambda one: one.name):
        if names is not None and child.name not in names:
            continue
        if child.is_dir():
            yield from _sources(child, None, f"{prefix}{child.name}/")
        elif child.name.endswith(".py"):
            yield prefix + child.name, child.read_bytes()


def state_of(sources: Traversable) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of the same sources: as long as these are equal none was edited. O(files)."""
    if not isinstance(sources, Path):
        return ()
    found = [
        path for room in ROOMS for path in ((sources / room).rglob("*.py") if "." not in room else [sources / room])
    ]
    return tuple(sorted((str(path), about.st_mtime_ns, about.st_size) for path in found for about in [path.stat()]))


def package_sources() -> Traversable:
    """The sources of this package, be they files or in an archive."""
    return files("trendloom")


def wanted_root() -> Path:
    """The folder of all fingerprints, as the user has set it."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home if home and os.path.isabs(home) else os.path.expanduser("~/.cache")) / "trendloom"


@cache
def spare_root() -> Path:
    """A folder that only this user can write: its files are run, so no other user may put code there."""
    mine = Path(tempfile.gettempdir()) / f"trendloom-{os.getuid()}"
    try:
        mine.mkdir(mode=0o700, exist_ok=True)
        about = mine.lstat()
    except OSError:
        about = None
    if about is not None and stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
        return mine
    return Path(tempfile.mkdtemp(prefix="trendloom-"))


def is_writable(folder: Path) -> bool:
    """Whether files can be made there; the folder is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe, name = tempfile.mkstemp(dir=folder)
        os.close(probe)
        os.unlink(name)
    except OSError:
        return False
    return True


@dataclass(eq=False)
class CodeFolder:
    """The code of one fingerprint: `load` and `save` files by name, and `claim` one that is about to be compiled."""

    fingerprint: str
    root: Path = field(default_factory=wanted_root)

    def __post_init__(self) -> None:
        wanted = self.root / self.fingerprint
        writable = is_writable(wanted)
        self.written = wanted if writable else spare_root() / self.fingerprint
        self.read = (wanted,) if writable else (self.written, wanted)
        self._locks = -1
        self._owner = 0
        if not writable and not is_writable(self.written):
            self.written = Path(tempfile.mkdtemp(prefix="trendloom-"))
        self._stamp()

    def _stamp(self) -> None:
        """Mark this folder as used, and remove those that were not used for long."""
        try:
            (self.written / STAMP).touch()
            for other in self.written.parent.iterdir():
                if other != self.written and _unused(other):
                    removed = other.with_name(f"{other.name}.{uuid.uuid4().hex}")
                    os.rename(other, removed)  # at once, so that no process finds half of it
                    shutil.rmtree(removed, ignore_errors=True)
        except OSError:
            return

    def has(self, name: str) -> bool:
        """Whether there is a file."""
        return any((folder / name).exists() for folder in self.read)

    def load(self, name: str) -> bytes | None:
        """The content of a file; None where there is none, or not what was written."""
        for folder in self.read:
            try:
                found = (folder / name).read_bytes()
            except OSError:
                continue
            if hashlib.sha256(found[DIGEST:]).digest() == found[:DIGEST]:
                return found[DIGEST:]
        return None

    def save(self, name: str, content: bytes) -> None:
        """Keep a file; where that is not possible the next process compiles again, which is not an error."""
        path = self.written / name
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
        except OSError:
            part.unlink(missing_ok=True)

    def names(self) -> list[str]:
        """The files there are."""
        return sorted({str(path.relative_to(folder)) for folder in self.read for path in folder.rglob("*.code")})

    # -------------------------------------------------------------------------- one process compiles, others wait

    def claim(self, name: str, waiting: Callable[[], None]) -> bool:
        """Take the right to compile a file; False if another process has written it meanwhile.

        A process holds the claims of all that it is compiling, callers before what they call, so none wait in a circle.
        The system ends the claims of a process that dies.
        """
        deadline = time.monotonic() + PATIENCE
        while not self._try_lock(name):
            waiting()
            time.sleep(GLANCE)
            if time.monotonic() > deadline:
                return True
        return not self.has(name)

    def release(self, name: str) -> None:
        """Give up a claim."""
        if self._locks >= 0 and self._owner == os.getpid():
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, _place(name))

    def _try_lock(self, name: str) -> bool:
        """One byte of one file is the lock of a name; a process that has it gets it again."""
        try:
            if self._owner != os.getpid():
                self._locks = os.open(self.written / LOCKS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._owner = os.getpid()
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(name))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True  # a file system without locks: compile, at worst twice
        return True


def _place(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") >> 1


def _unused(folder: Path) -> bool:
    try:
        return (folder / STAMP).stat().st_mtime < time.time() - UNUSED_DAYS * 86_400
    except OSError:
        return False
