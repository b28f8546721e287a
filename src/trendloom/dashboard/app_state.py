"""What all pages of a server share: its archives, its jobs and how pages follow them; nothing that is a visitor's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dash import Dash, Input, Output, State, dcc, html, no_update

from trendloom.archive import Archive, open_archive
from trendloom.dashboard.jobs import PageJobs
from trendloom.dashboard.parts import message, trouble
from trendloom.errors import ArchiveWarning, DataError, OptionError, TrendloomError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
PULSE_MS = 400
"""How often a page polls the state of a job."""


class Archives(dict[str, Path]):
    """Folders of archives by the names that the page shows: those given when it started, and no others.

    A browser sends a name, never a path, and an unknown name is refused, so no text can lead outside. Archives are
    opened anew for each request, which reads their commits only: a stream that writes one is seen as far as it is.
    """

    def folder(self, name: object) -> Path:
        """The folder of an archive; an unknown name is refused."""
        if not isinstance(name, str) or name not in self:
            raise DataError(f"there is no archive '{name}' here", hint=did_you_mean(str(name), self))
        return self[name]

    def open(self, name: object) -> Archive:
        """An archive as it is now."""
        return opened_quietly(self.folder(name))


def opened_quietly(folder: Path) -> Archive:
    """An archive, without warnings about damaged files: `Archive.damaged` lists them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArchiveWarning)
        return open_archive(folder)


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


@dataclass(frozen=True)
class AppState:
    """The archives and the jobs."""

    archives: Archives
    jobs: PageJobs


def attempt(work: Callable[P, R], *given: P.args, **named: P.kwargs) -> tuple[R | None, html.Div | None]:
    """The result of work, or else a message for the visitor: whatever goes wrong, the page goes on."""
    try:
        return work(*given, **named), None
    except TrendloomError as error:
        return None, trouble(error)
    except MemoryError:
        return None, message("error", "there is not enough memory for this", "choose a smaller stretch of time")


# ------------------------------------------------------------------------------------------ jobs of a page


def job_stores(name: str) -> list[Any]:
    """Invisible parts: the name of a job, and the clock that polls its state while it runs."""
    return [dcc.Store(id=f"{name}-job"), dcc.Interval(id=f"{name}-clock", interval=PULSE_MS, disabled=True)]


def wire_stop(app: Dash, jobs: PageJobs, name: str) -> None:
    """The button that stops a job, enabled while the job runs."""

    @app.callback(Output(f"{name}-stop", "disabled"), Input(f"{name}-clock", "disabled"))
    def can_stop(still: bool | None) -> bool:
        return still is not False

    @app.callback(
        Output(f"{name}-stop", "n_clicks"),
        Input(f"{name}-stop", "n_clicks"),
        State(f"{name}-job", "data"),
        prevent_initial_call=True,
    )
    def stop(clicks: Any, job: str | None) -> Any:
        if clicks:
            jobs.stop(job)
        return no_update
