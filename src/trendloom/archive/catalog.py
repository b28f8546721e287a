"""The catalog of an archive: its settings, and descriptions of its queries and monitors, small files of JSON.

`archive.json` is written once, when the archive is made: which columns hold time and type, what times count, how long a
chunk is, what is kept. Later writers must agree, because chunks are numbered by it. Queries and monitors have a file
each. Values of a monitor are whatever its maker wrote. A query keeps its name for good: rows of another query under the
same name would be taken for its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendloom.archive.commits import MONITORS, QUERIES, SETTINGS, quoted, write_whole
from trendloom.errors import DataError, OptionError, option
from trendloom.model.imprecision import DURATION
from trendloom.model.time import MICROSECONDS, UNIT_WORDS, TimeAxis

AT = "at"
"""The column of results that says when."""
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
        content = json.loads(path.read_bytes())
        if content.pop("format") != FORMAT:
            raise DataError(f"{root} is an archive of another version", hint=f"this version reads format {FORMAT}")
        found = ArchiveSettings(**content)
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
    content = {"format": FORMAT, **asdict(settings)}
    write_whole(root / SETTINGS, (json.dumps(content, indent=2) + "\n").encode())


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


# ------------------------------------------------------------------------------------- queries and monitors


@dataclass(frozen=True)
class ArchivedQuery:
    """A query whose rows are archived.

    `keys`: the partition attributes among the columns of its rows; `values`: the numeric ones; `kinds` of all columns
    by name; `types`: those of its pattern. `measured`: what RETURN reads of which type; None for a column: it counts.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    measured: tuple[tuple[str, str | None], ...] = ()


def save_query(root: Path, query: ArchivedQuery) -> None:
    """Keep a query, or refuse one whose name another has."""
    if refuse_other_query(root, query) != query:
        content = json.dumps(asdict(query), indent=2) + "\n"
        write_whole(_path(root, QUERIES, query.name), content.encode())


def refuse_other_query(root: Path, query: ArchivedQuery) -> ArchivedQuery | None:
    """The description of a query, unless its name is that of another one; None: nothing that can be read."""
    try:
        there = _query(json.loads(_path(root, QUERIES, query.name).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if there.text != query.text:
        raise OptionError(
            f"the archive has another query '{query.name}' already",
            hint="give the new one another name (QUERY name: ...), or archive it elsewhere",
        )
    return there


def read_queries(root: Path) -> tuple[dict[str, ArchivedQuery], tuple[str, ...]]:
    """The queries by name, and files that cannot be read."""
    content, damaged = _all(root, QUERIES)
    found, wrong = {}, list(damaged)
    for path, one in content.items():
        try:
            query = _query(one)
        except (TypeError, KeyError, ValueError):
            wrong.append(path)
        else:
            found[query.name] = query
    return dict(sorted(found.items())), tuple(wrong)


def _query(content: dict[str, Any]) -> ArchivedQuery:
    content = {**content, **{name: tuple(content[name]) for name in ("keys", "values", "types")}}
    return ArchivedQuery(**{**content, "measured": tuple((kind, column) for kind, column in content["measured"])})


def save_monitor(root: Path, name: str, content: Mapping[str, Any]) -> None:
    """Keep a monitor, in place of the one of that name."""
    named = {"name": name, **content}
    write_whole(_path(root, MONITORS, name), (json.dumps(named, indent=2, allow_nan=False) + "\n").encode())


def read_monitors(root: Path) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """The monitors by name, and files that cannot be read."""
    content, damaged = _all(root, MONITORS)
    named = {path: one for path, one in content.items() if isinstance(one, dict) and "name" in one}
    wrong = (*damaged, *(path for path in content if path not in named))
    return dict(sorted((one["name"], one) for one in named.values())), wrong


def _all(root: Path, folder: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    found: dict[str, Any] = {}
    damaged = []
    for path in sorted((root / folder).glob("*.json")):
        name = str(path.relative_to(root))
        try:
            found[name] = json.loads(path.read_bytes())
        except ValueError:
            damaged.append(name)
    return found, tuple(damaged)


def _path(root: Path, folder: str, name: str) -> Path:
    return root / folder / f"{quoted(name)}.json"
