"""What all pages of a server share: the archives it shows and the errands it runs; nothing that is a visitor's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from dash import html

from trendloom.archive import Archive, open_archive
from trendloom.dashboard.jobs import PageJobs
from trendloom.dashboard.parts import message, trouble
from trendloom.errors import ArchiveWarning, DataError, OptionError, TrendloomError, did_you_mean

# The archives that a page shows: those given when it started, by name, and no others.
#
# What comes from a browser is a name, never a path: a name that is not in the table is refused, so no text can lead
# outside. Archives are opened anew for each question, which reads their commits only: a stream that writes one is seen
# as far as it is.


@dataclass(frozen=True)
class OpenedArchive:
    """An archive as it is now, and what was found to be damaged in it."""

    archive: Archive
    damaged: tuple[str, ...]


@dataclass(frozen=True)
class Archives(Mapping[str, Path]):
    """Folders of archives by the names that the page shows."""

    folders: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.folders[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.folders)

    def __len__(self) -> int:
        return len(self.folders)

    def folder(self, name: object) -> Path:
        """The folder of an archive; an unknown name is refused."""
        if not isinstance(name, str) or name not in self.folders:
            raise DataError(f"there is no archive '{name}' here", hint=did_you_mean(str(name), self.folders))
        return self.folders[name]

    def open(self, name: object) -> OpenedArchive:
        """An archive as it is now."""
        return opened_quietly(self.folder(name))


def opened_quietly(folder: Path) -> OpenedArchive:
    """An archive; what is damaged is given to the caller, who has a page to tell it on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArchiveWarning)
        archive = open_archive(folder)
    return OpenedArchive(archive, tuple(archive.damaged))


def archives_at(paths: Sequence[str | Path]) -> Archives:
    """The archives in some folders, each opened once to see that it is one; folders of one name get numbers."""
    if not paths:
        raise OptionError("there is no archive to show", hint="name the folder of one")
    folders: dict[str, Path] = {}
    for path in dict.fromkeys(Path(path).resolve() for path in paths):
        opened_quietly(path)
        name, number = path.name, 2
        while name in folders:
            name, number = f"{path.name} ({number})", number + 1
        folders[name] = path
    return Archives(folders)


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class AppState:
    """The archives and the errands."""

    archives: Archives
    jobs: PageJobs


def told(work: Callable[P, R], *given: P.args, **named: P.kwargs) -> tuple[R | None, html.Div | None]:
    """What work gives, or else what to tell the visitor: whatever goes wrong, the page goes on."""
    try:
        return work(*given, **named), None
    except TrendloomError as error:
        return None, trouble(error)
    except MemoryError:
        return None, message("error", "there is not enough memory for this", "choose a smaller stretch of time")
