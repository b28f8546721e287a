"""What people write behind `--sink`, and which folders and files a stream needs: refused before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from trendloom.engines.spark.streaming.database import to_sqlite
from trendloom.engines.spark.streaming.sinks import Sink, to_call, to_jsonl, to_parquet
from trendloom.errors import OptionError, RunError, did_you_mean, option

FOLDERS = {"parquet": to_parquet, "jsonl": to_jsonl}
KINDS = ("console", "memory", *FOLDERS, "sqlite")
WAYS = "console, memory:NAME, parquet:FOLDER, jsonl:FOLDER or sqlite:FILE/TABLE"

Show = Callable[[pa.Table, int], None]


@dataclass(frozen=True)
class Target:
    """A kind of sink and its place: a folder, a name, or a file and a table in it."""

    kind: str
    place: str = ""
    table: str = ""

    def sink(self, show: Show) -> Sink:
        """The function that takes the rows of a batch; `show` is where the console gets them."""
        if self.kind in FOLDERS:
            return FOLDERS[self.kind](self.place)
        if self.kind == "sqlite":
            return to_sqlite(self.place, self.table)
        return to_call(show)


def target_of(text: str) -> Target:
    """What is meant by `parquet:FOLDER`, `sqlite:FILE/TABLE`, ...; what cannot be written is refused."""
    kind, colon, place = text.partition(":")
    if kind not in KINDS:
        raise OptionError(f"there is no sink '{kind}'", hint=did_you_mean(kind, KINDS) if colon else f"give {WAYS}")
    if kind == "console":
        if colon:
            raise OptionError("the console needs no place", hint=option("sink", "console"))
        return Target(kind)
    if not place:
        raise OptionError(f"the sink {kind} needs a place", hint=f"give {WAYS}")
    if kind == "memory":
        if not place.isidentifier():
            raise OptionError(f"'{place}' is not a name of a table", hint="letters, digits and _: memory:matches")
        return Target(kind, place)
    if kind in FOLDERS:
        check_folder(place, "the folder of rows")
        return Target(kind, place)
    file, _, table = place.rpartition("/")
    if not file or not table or Path(place).suffix in (".db", ".sqlite", ".sqlite3"):
        raise OptionError(
            f"'{place}' does not name a file and a table", hint="sqlite:FILE/TABLE, e.g. sqlite:rows.db/matches"
        )
    check_file(file)
    return Target(kind, file, table)


def check_folder(place: str, role: str) -> None:
    """Refuse a folder that cannot be made or written; places elsewhere than on this machine are left to Spark."""
    if "://" in place:
        return
    folder = Path(place)
    probe = folder / f".{uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise RunError(
            f"{role} {place} cannot be written: {problem.strerror or problem}",
            hint="check its permissions and the room on its disk, or give another folder",
        ) from None


def check_file(place: str) -> None:
    """Refuse a file that cannot be written."""
    path = Path(place)
    if path.is_dir():
        raise OptionError(f"{place} is a folder", hint="give the name of a file")
    if not path.parent.is_dir():
        raise OptionError(f"{place} cannot be written: there is no folder {path.parent}", hint="make the folder first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise RunError(f"{place} may not be written", hint="check its permissions, or give another file")
