"""Sources and sinks as protocols, and the registry that finds one by the scheme before the colon: `kafka:...`.

A source or a sink is one class in one module. It states its form and help, checks its address before anything starts,
and only then loads what it needs, so that the help of the command needs neither Spark nor a network. Modules of the
package's own folders are registered when the first one is looked up; so are the entry points of installed packages
(groups `trendloom.sources` and `trendloom.sinks`). `register` adds a class by hand.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar
from uuid import uuid4

from trendloom.errors import OptionError, RunError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SourceAddress:
    """What follows the scheme (`place`), and the options that say how events are read from there."""

    place: str
    schema: str | None = None
    max_files: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSettings:
    """How the events of a source are read.

    `times`: the columns of times, which may be text. `time_zone`: that of times in text without a zone. `strict`: what
    cannot be read stops the stream; else it becomes an event without a time. `checkpoint`: where an earlier start has
    noted the columns.
    """

    times: tuple[str, ...] = ("time",)
    time_zone: str | None = None
    strict: bool = True
    checkpoint: str | None = None


class Connector(Protocol):
    """What sources and sinks have in common: the texts that the command shows, and an address."""

    scheme: ClassVar[str]
    """What stands before the colon."""
    form: ClassVar[str]
    """How users write it: `kafka:HOST:PORT/TOPIC`."""
    help: ClassVar[str]
    """A few words to add to the form, or nothing."""

    def check(self) -> None:
        """Refuse a bad address, and folders, files or packages that are missing, before anything starts."""
        ...


class Source(Connector, Protocol):
    """Where events come from. Instances are cheap and hold nothing open."""

    def __init__(self, address: SourceAddress) -> None: ...

    @property
    def address(self) -> SourceAddress: ...

    def known_columns(self, times: tuple[str, ...], checkpoint: str | None = None) -> pa.Schema | None:
        """The columns as far as they are known without Spark; None if they can only be found with Spark."""
        ...

    def open(self, spark: Any, settings: ReadSettings) -> Any:
        """The events as a streaming DataFrame."""
        ...


class Sink(Connector, Protocol):
    """Where result rows go."""

    exactly_once: ClassVar[str]
    """What happens to a batch that Spark repeats after a failure."""
    on_console: ClassVar[bool]
    """Whether rows are shown by the process that runs the command."""
    in_memory: ClassVar[bool]
    """Whether a table in Spark's memory takes the rows, instead of a writer; `place` names it."""

    def __init__(self, place: str) -> None: ...

    @property
    def place(self) -> str: ...

    def writer(self, show: Callable[[pa.Table, int], None]) -> Callable[[Any, int], None]:
        """The function that takes the rows of a batch and its number; `show` prints a table on the console."""
        ...


_ConnectorType = TypeVar("_ConnectorType", bound=type[Connector])


class Registry(Generic[_ConnectorType]):
    """Classes by their schemes: those of a folder of this package, of installed packages, and registered by hand."""

    def __init__(self, noun: str, folder: str) -> None:
        """`noun`: "source" or "sink", also the name of the group of entry points; `folder`: a package."""
        self.noun = noun
        self._folder = folder
        self._classes: dict[str, _ConnectorType] = {}
        self._loaded = False

    def register(self, connector: _ConnectorType) -> _ConnectorType:
        """Add a class, also as a decorator. A scheme belongs to one class."""
        taken = self._classes.get(connector.scheme)
        if taken is not None and taken is not connector:
            raise OptionError(f"the {self.noun} '{connector.scheme}' is already {taken.__module__}.{taken.__name__}")
        self._classes[connector.scheme] = connector
        return connector

    def classes(self) -> dict[str, _ConnectorType]:
        """All classes by scheme, in an order that does not depend on what was imported first."""
        if not self._loaded:
            self._loaded = True
            package = importlib.import_module(self._folder)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self._folder}.{module.name}")
            for entry in entry_points(group=f"trendloom.{self.noun}s"):
                self.register(entry.load())
        return dict(sorted(self._classes.items(), key=lambda item: item[1].__module__))

    def find(self, scheme: str, *, hint: str | None = None) -> _ConnectorType:
        """The class of a scheme; `hint` replaces the closest known scheme in the error."""
        classes = self.classes()
        if scheme not in classes:
            raise OptionError(f"there is no {self.noun} '{scheme}'", hint=hint or did_you_mean(scheme, classes))
        return classes[scheme]

    def forms(self) -> str:
        """How to write each of them: "console, parquet:FOLDER or ..."."""
        return any_of([one.form for one in self.classes().values()])

    def help(self) -> str:
        """The same with the words that each one adds."""
        described = (one.form + (f" ({one.help})" if one.help else "") for one in self.classes().values())
        return any_of(list(described))


def any_of(words: list[str]) -> str:
    """ "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


# What `check` needs: refusing places on this machine that cannot be written.


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
