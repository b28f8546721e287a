"""What an archive is made for: which columns hold time and type, what times count, how long a chunk is, what is kept.

`archive.json` says it once, when the archive is made; later writers must agree, because chunks are numbered by it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

from trendloom.archive.commits import SETTINGS, write_whole
from trendloom.errors import DataError, OptionError, option
from trendloom.model.imprecision import DURATION
from trendloom.model.time import MICROSECONDS, UNIT_WORDS, TimeAxis

FORMAT = 1
"""The version of the format; a reader refuses others."""


@dataclass(frozen=True)
class ArchiveSettings:
    """The columns of time and type; `unit` of whole numbers (None: timestamps); chunk and retention in ticks."""

    time: str
    type: str
    unit: str | None
    chunk: int
    retention: int | None = None

    @property
    def axis(self) -> TimeAxis:
        return TimeAxis.timestamps() if self.unit is None else TimeAxis.integer(self.unit)

    @property
    def time_type(self) -> pa.DataType:
        """How times are stored: moments, or whole numbers."""
        return pa.timestamp("us", "UTC") if self.unit is None else pa.int64()


def settings_for(
    axis: TimeAxis,
    *,
    time: str,
    type: str,
    chunk: str | int = "1 hour",
    retention: str | int | None = None,
    options: tuple[str, str] = ("chunk", "keep"),
) -> ArchiveSettings:
    """Settings for times of this kind; `chunk` and `retention` are durations as text ("1h"), or ticks.

    `options` are those that say them, for messages.
    """
    unit = None if axis.timestamp else next(name for name, size in MICROSECONDS.items() if size == axis.tick)
    length = ticks_of_duration(chunk, axis, options[0])
    keep = None if retention is None else ticks_of_duration(retention, axis, options[1])
    return ArchiveSettings(time, type, unit, length, keep)


def ticks_of_duration(length: str | int, axis: TimeAxis, name: str) -> int:
    """A duration in ticks, at least one; `name` is the option that says it."""
    ticks = Fraction(length) if isinstance(length, int) else _ticks(length, axis, name)
    if ticks.denominator != 1 or ticks < 1:
        raise OptionError(
            f"{option(name)} is a whole number of {_ticks_called(axis)}, at least 1, and '{length}' is not",
            hint=f"give a longer one, e.g. {option(name, '1h')}",
        )
    return int(ticks)


def _ticks(text: str, axis: TimeAxis, name: str) -> Fraction:
    found = DURATION.fullmatch(text.strip())
    word = "" if found is None else found.group(3).lower()
    unit = UNIT_WORDS.get(word.removesuffix("s"), word)
    if found is None or found.group(1) or (unit and unit not in MICROSECONDS):
        raise OptionError(f"'{text}' is not a duration", hint=f"write a number and a unit: {option(name, '1h')}")
    if not unit and axis.timestamp:
        raise OptionError(
            f"a plain number is not a duration where times are timestamps: '{text}'",
            hint=f"write a unit, e.g. {option(name, text + 'h')}",
        )
    amount = Fraction(found.group(2))
    return amount if not unit else amount * MICROSECONDS[unit] / axis.tick


def _ticks_called(axis: TimeAxis) -> str:
    return "microseconds" if axis.timestamp else "units of the time column"


def local_root(folder: str | os.PathLike[str]) -> Path:
    """The folder of an archive, which is one that this machine, and every task, can see."""
    text = os.fspath(folder)
    if "://" in text:
        raise OptionError(f"an archive is a folder, not an address: {text}", hint="mount it, and give its path")
    return Path(text)


# ------------------------------------------------------------------------------------------------- archive.json


def read_settings(root: Path) -> ArchiveSettings:
    """What `archive.json` says, or an error that says what is missing."""
    path = root / SETTINGS
    try:
        told = json.loads(path.read_bytes())
        if told.pop("format") != FORMAT:
            raise DataError(f"{root} is an archive of another version", hint=f"this version reads format {FORMAT}")
        found = ArchiveSettings(**told)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(_missing(root), hint="`trendloom archive FOLDER` with events makes one") from None
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise DataError(
            f"{path} cannot be read: {problem}",
            hint="put back a copy of it: without it nobody knows which column holds the time, and what it counts",
        ) from None
    return found


def _missing(root: Path) -> str:
    if not root.exists():
        return f"there is no archive {root}: there is no such folder"
    return f"{root} is not an archive: " + (f"it has no {SETTINGS}" if root.is_dir() else "it is not a folder")


def write_settings(root: Path, settings: ArchiveSettings) -> None:
    told = {"format": FORMAT, **asdict(settings)}
    write_whole(root / SETTINGS, (json.dumps(told, indent=2) + "\n").encode())


def agree_on_settings(root: Path, wanted: ArchiveSettings) -> ArchiveSettings:
    """Make the archive, or refuse to use one that was made for something else; retention may change."""
    there = refuse_other_settings(root, wanted)
    if there is None:
        write_settings(root, wanted)
        return wanted
    if wanted.retention is not None and wanted.retention != there.retention:
        there = replace(there, retention=wanted.retention)
        write_settings(root, there)
    return there


def refuse_other_settings(root: Path, wanted: ArchiveSettings) -> ArchiveSettings | None:
    """What the archive that is there was made for, unless it is something else; None: there is no archive yet."""
    if not (root / SETTINGS).exists():
        _refuse_occupied(root)
        return None
    there = read_settings(root)
    for name, what in _MEANING.items():
        if getattr(there, name) != getattr(wanted, name):
            raise OptionError(
                f"the archive {root} was made with {what} {_shown(getattr(there, name))}, "
                f"not {_shown(getattr(wanted, name))}",
                hint="give the same, or another folder",
            )
    return there


_MEANING = {
    "time": "times in column",
    "type": "types in column",
    "unit": "times that count",
    "chunk": "chunks of so many ticks:",
}


def _shown(value: object) -> str:
    return "timestamps" if value is None else repr(value)


def _refuse_occupied(root: Path) -> None:
    """A folder with other things in it is not made an archive of: retention deletes files."""
    if root.exists() and (not root.is_dir() or any(not one.name.startswith(".") for one in root.iterdir())):
        raise OptionError(f"{root} is there, and is not an archive", hint="give another folder, or an empty one")
