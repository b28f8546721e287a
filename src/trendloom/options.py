"""The one list of options: how events are read, how queries run, how a stream runs.

An option is a field with a type, a default, one sentence of help, and the doors that take it. What follows from it: the
flags of the command line (`cli.options`), the keyword arguments of the library (`keyword_options`), the checks, and the
tables of `docs/options.md`. Inside the package options travel as these objects.

This module imports nothing that is slow to load: the help of a command needs no more than this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import Parameter, signature
from typing import Any, TypedDict, TypeVar, cast

from trendloom.errors import OptionError, did_you_mean, option
from trendloom.model.amounts import MOST_TRENDS, Limits, bytes_of
from trendloom.model.imprecision import ImpreciseOptions
from trendloom.model.time import zone_named

ENGINES = ("local", "spark", "reference")
NUMERIC = ("exact", "float", "log")
PATHS = ("auto", "general", "reduced", "cut")

EVENTS, ENGINE, STREAM, ARCHIVE, OUTPUT = "Events", "Engine", "Stream", "Archive", "Output"
"""Groups of options: panels of a command's help."""

COMMAND = "trendloom"
"""A door is a command, `trendloom run`, or a function, `run()`. As a key of defaults this means every command."""

Kind = TypeVar("Kind")
Function = TypeVar("Function", bound=Callable[..., Any])


# ------------------------------------------------------------------------------------------ what an option is


@dataclass(frozen=True)
class OptionSpec:
    """What doors show of an option, and which of them take it. `read`: makes the value of what the user wrote;
    of several values a tuple is made otherwise."""

    help: str
    group: str
    doors: tuple[str, ...]
    short: str | None = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)  # by door, where it is not the field's own
    read: Callable[[Any], Any] | None = None

    def default_at(self, door: str, usual: object) -> object:
        """The default at a door; MISSING where that door insists on a value."""
        return self.defaults.get(door, self.defaults.get(door.partition(" ")[0], usual))

    @property
    def sentence(self) -> str:
        """The help, with other options spelled as users of this door write them: `{time}` is --time or time=."""
        return re.sub(r"\{(\w+)\}", lambda found: option(found[1]), self.help)


def option_field(
    default: object, help: str, group: str, *, commands: str = "", functions: str = "", **more: Any
) -> Any:
    """A field of options. `commands` and `functions`: the doors that take it, separated by spaces."""
    doors = (*(f"{COMMAND} {name}" for name in commands.split()), *(f"{name}()" for name in functions.split()))
    return field(default=default, metadata={"option": OptionSpec(help, group, doors, **more)})


def spec_of(one: Field[Any]) -> OptionSpec:
    """What doors show of a field."""
    found = one.metadata["option"]
    assert isinstance(found, OptionSpec)
    return found


def fields_at(door: str, *kinds: type) -> list[Field[Any]]:
    """The options that a door takes, in the order in which it lists them."""
    listed = (one for kind in kinds for one in fields(kind) if "option" in one.metadata)
    return [one for one in listed if door in spec_of(one).doors]


def options_at(door: str, kind: type[Kind], given: Mapping[str, Any]) -> Kind:
    """The options of one kind among the arguments of a door, with the defaults of that door."""
    values = {}
    for one in fields_at(door, kind):
        spec = spec_of(one)
        value = given.get(one.name, spec.default_at(door, one.default))
        several = isinstance(one.default, tuple)
        values[one.name] = spec.read(value) if spec.read else tuple(value or ()) if several else value
    return kind(**values)


def columns_named(order: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of `order`: one name, several, or several in one text with commas between them."""
    texts = [order] if isinstance(order, str) else list(order or ())
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


# ------------------------------------------------------------------------------------------------- the options


class Columns(TypedDict, total=False):
    """Which columns of the events hold their time and type, and how they are read."""

    time: str
    type: str
    time_unit: str | None
    time_low: str | None
    time_high: str | None
    time_error: str | None
    time_probability: str | None
    time_grain: str | None
    time_points: int | None
    order: tuple[str, ...]
    time_zone: str | None
    query_types: tuple[str, ...]
    threads: int | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to read the events and run the queries."""

    # fmt: off
    query: str | None = option_field(
        None, "Only this query of a workload.", "",
        commands="run stream archive check explain", functions="run expand detect archive", metavar="NAME")
    time: str = option_field(
        "time", "The time: whole numbers or timestamps.", EVENTS,
        commands="run stream archive check explain", functions="run check explain expand detect archive watch",
        metavar="COLUMN")
    type: str = option_field(
        "type", "The type of each event.", EVENTS,
        commands="run stream archive check explain", functions="run check explain expand detect archive watch",
        metavar="COLUMN")
    time_unit: str | None = option_field(
        None,
        "What a whole number of time counts: us, ms, s, min, h or d; else seconds, with a warning where they hardly "
        "can be.",
        EVENTS,
        commands="run stream archive check explain", functions="run check explain expand detect archive watch",
        metavar="UNIT")
    time_low: str | None = option_field(
        None, "Imprecise time: the earliest, instead of {time}.", EVENTS,
        commands="run stream archive check explain", functions="run check explain detect archive", metavar="COLUMN")
    time_high: str | None = option_field(
        None, "Imprecise time: the latest.", EVENTS,
        commands="run stream archive check explain", functions="run check explain detect archive", metavar="COLUMN")
    time_error: str | None = option_field(
        None,
        "Imprecise time: how far {time} may be off, to both sides: 7.5s, Load=7.5s,Task=500ms for types (others are "
        "exact), or a column of numbers (in the unit of integer times; seconds for timestamps) or durations.",
        EVENTS,
        commands="run stream archive check explain", functions="run check explain detect archive", metavar="ERROR")
    time_probability: str | None = option_field(
        None,
        "Imprecise time: lists with the probability of each point; NULL, or no such column: all are equally likely.",
        EVENTS, commands="run stream check explain", functions="run check explain detect", metavar="COLUMN")
    time_grain: str | None = option_field(
        None,
        "Imprecise time: how far apart possible times lie, e.g. 1s; else one unit of integer times, 1us of timestamps.",
        EVENTS, commands="run stream check explain", functions="run check explain detect", metavar="DURATION")
    time_points: int | None = option_field(
        None, "Imprecise time: refuse an event with more possible times; default: 1000.", EVENTS,
        commands="run stream check explain", functions="run check explain detect", metavar="N")
    order: tuple[str, ...] = option_field(
        (), "Who comes first among events of equal time: the columns to order them by; may be repeated.", EVENTS,
        commands="run stream archive check explain", functions="run check explain expand detect archive",
        metavar="COLUMN,...", read=columns_named)
    schema: str | None = option_field(
        None, 'What columns of text files are, e.g. "time timestamp, id string"; the others are recognised.', EVENTS,
        commands="run archive check explain", functions="run check explain", metavar="COLUMNS")
    time_zone: str | None = option_field(
        None,
        "The zone of times that do not say theirs, in the events and in the query, e.g. Europe/Paris; else UTC.",
        EVENTS,
        commands="run stream archive check explain diagnose monitor",
        functions="run check explain expand detect archive watch", metavar="ZONE")
    engine: str = option_field(
        "local",
        "spark: all cores, or a cluster. local: this process, starts at once. reference: the definitions, for small "
        "streams.",
        ENGINE, commands="run archive explain", functions="run explain", choices=ENGINES,
        defaults={COMMAND: "spark", "run()": None})
    master: str | None = option_field(
        None, "Spark master, or sc://host:port for Spark Connect; all cores of this machine if not given.", ENGINE,
        commands="run stream archive diagnose monitor", functions="run", metavar="URL")
    numeric: str = option_field(
        "exact", "Counts and sums: exact at any size, float, or log (base-10 logarithms).", ENGINE,
        commands="run stream archive", functions="run detect archive", choices=NUMERIC)
    memory_limit: str | int | None = option_field(
        None,
        "Memory for trends that are stored to find others faster, e.g. 512M (on Spark: of each task); default: a "
        "quarter of what is free.",
        ENGINE, commands="run explain", functions="run explain detect", metavar="SIZE")
    max_trends: int = option_field(
        MOST_TRENDS, "Refuse to give out more matches one by one, before any is built; {limit} bypasses it.", ENGINE,
        commands="run", functions="run detect", metavar="N")
    threads: int | None = option_field(
        None, "Cores that the local engine uses; default: all.", ENGINE, commands="run", functions="run", metavar="N")
    partitions: int | None = option_field(
        None, "Tasks on Spark; Spark decides if not given.", ENGINE, functions="detect", metavar="N")
    path: str | None = option_field(
        None,
        "How aggregates are spread over tasks on Spark: auto lets the engine choose, and for that may look at times "
        "and keys at once; general moves all events by key; reduced and cut ask for one way. If not given: auto for "
        "one query, general for several.",
        ENGINE, functions="detect", choices=PATHS)
    limit: int | None = option_field(
        None, "At most N rows per query.", OUTPUT, commands="run", functions="run", short="-n", metavar="N")
    query_types: tuple[str, ...] = ()  # not an option of users: the types that the queries name
    # fmt: on

    def __post_init__(self) -> None:
        for name, value, known in (
            ("engine", self.engine, ENGINES),
            ("numeric", self.numeric, NUMERIC),
            ("path", self.path or PATHS[0], PATHS),
        ):
            if value not in known:
                raise OptionError(f"there is no {name} '{value}'", hint=did_you_mean(value, known))
        for name, number in (("limit", self.limit), ("max_trends", self.max_trends), ("threads", self.threads)):
            if number is not None and number < 1:
                raise OptionError(f"{option(name)} must be at least 1")
        bytes_of(self.memory_limit)
        imprecise = self.imprecise
        if self.time_zone is not None:
            zone_named(self.time_zone)
        if self.numeric != "exact" and self.engine == "reference":
            raise OptionError("the reference engine has exact numbers only", hint="use another engine")
        if self.numeric == "log" and imprecise.imprecise:
            raise OptionError(
                "with imprecise time, counts and sums are expected values, which have no logarithms here",
                hint=f"leave {option('numeric')} out",
            )

    @property
    def imprecise(self) -> ImpreciseOptions:
        """The options of imprecise time; refuses what contradicts itself."""
        return ImpreciseOptions(
            self.time_low, self.time_high, self.time_error, self.time_probability, self.time_grain, self.time_points,
            self.time,
        )  # fmt: skip

    @property
    def limits(self) -> Limits:
        """What the run may use and give out."""
        return Limits(bytes_of(self.memory_limit), self.max_trends)

    @property
    def time_columns(self) -> tuple[str, ...]:
        """The columns that hold times: that of the times, or of their bounds."""
        return (self.time,) if self.time_low is None or self.time_high is None else (self.time_low, self.time_high)

    def columns(self) -> Columns:
        """The options for reading the events."""
        given: Any = {name: getattr(self, name) for name in Columns.__annotations__}
        return cast(Columns, {**given, "threads": self.threads or os.cpu_count() or 1})


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How a live stream runs: where its events come from, where rows go, when, and what is kept."""

    # fmt: off
    source: str = option_field(
        "", "Where events come from; the help of the command lists the sources.", EVENTS,
        commands="stream", short="-s", metavar="KIND:PLACE", defaults={COMMAND: MISSING})
    checkpoint: str | None = option_field(
        None, "Where the stream keeps its state and how far it is; the same folder goes on.", STREAM,
        commands="stream", functions="detect watch", metavar="FOLDER", defaults={COMMAND: MISSING})
    watch: str | None = option_field(
        None,
        "Instead of QUERY.tql: a file that may change. Queries that are added, removed or changed in it are taken "
        "between two batches; what is wrong is refused and told, and the others go on.",
        STREAM, commands="stream", metavar="QUERIES.tql")
    sink: str = option_field(
        "console", "Where rows go; the help of the command lists the sinks.", OUTPUT,
        commands="stream", metavar="KIND:PLACE")
    schema: str | None = option_field(
        None, 'The columns, e.g. "time timestamp, type string, x long"; else what the files there have.', EVENTS,
        commands="stream", metavar="COLUMNS")
    max_files: int | None = option_field(None, "At most N files per batch.", EVENTS, commands="stream", metavar="N")
    option: tuple[str, ...] = option_field(
        (), "An option of Spark's reader, e.g. startingOffsets=latest; may be given several times.", EVENTS,
        commands="stream", metavar="KEY=VALUE")
    watermark: str | None = option_field(
        "10 seconds", "How long to wait for events that come late; what comes later still is set apart and counted.",
        STREAM, commands="stream", functions="detect watch", metavar="DELAY",
        defaults={"detect()": None, "watch()": None})
    late_to: str | None = option_field(
        None, "Parquet of events that came too late, have no time or cannot be read.", STREAM,
        commands="stream", functions="detect", metavar="FOLDER")
    early: bool = option_field(
        False, "Rows of windows that are still open, whenever events arrive for them.", STREAM, functions="detect")
    archive: str | None = option_field(
        None, "Keep all events of the source and all rows of the queries there, by type and time.", ARCHIVE,
        commands="stream", metavar="FOLDER")
    monitor: tuple[str, ...] = option_field(
        (),
        "Instead of queries: watch for a reason that `trendloom diagnose {save_as} NAME` kept in the archive, which "
        "then is only read; may be repeated. Rows are alerts.",
        ARCHIVE, commands="stream", metavar="NAME")
    archive_chunk: str = option_field(
        "1h", "The stretch of time that a file of the archive holds.", ARCHIVE, commands="stream", metavar="DURATION")
    archive_keep: str | None = option_field(
        None, "Drop what is older than that, e.g. 30d, counted from the newest event; else nothing is dropped.",
        ARCHIVE, commands="stream", metavar="AGE")
    trigger: str | None = option_field(
        None,
        'A batch every so often, e.g. "5 seconds", or available-now: what is there, then end. Default: one batch after '
        "another.",
        STREAM, commands="stream", metavar="WHEN")
    buckets: int = option_field(
        8, "Into how many parts keys are spread; belongs to the checkpoint.", STREAM,
        commands="stream", functions="detect", metavar="N")
    retries: int = option_field(
        3, "How often a failed batch is tried again before the command gives up.", STREAM,
        commands="stream", metavar="N")
    packages: str | None = option_field(
        None, "Packages that Spark fetches, e.g. its connector to Kafka.", ENGINE, commands="stream", metavar="MAVEN")
    conf: tuple[str, ...] = option_field(
        (), "A setting of the Spark session; may be given several times.", ENGINE,
        commands="stream", metavar="KEY=VALUE")
    format: str | None = option_field(
        None, "Rows on the console. Default: table on a terminal, else jsonl.", OUTPUT,
        commands="stream", short="-f", choices=("table", "jsonl"))
    metrics: str | None = option_field(
        None, "Rewrite this file after every batch, as Prometheus reads it.", OUTPUT, commands="stream", metavar="FILE")
    log: str | None = option_field(
        None, "What Spark itself says; else it is not kept ({debug} shows it).", OUTPUT,
        commands="stream", metavar="FILE")
    # fmt: on


# ------------------------------------------------------------------------- keyword arguments of the library
#
# A type checker and an editor need names that are written down; a test compares them with the fields above.


class _TimeArguments(TypedDict, total=False):
    """The options of all functions that read events."""

    time: str
    type: str
    time_unit: str | None
    time_zone: str | None


class WatchArguments(_TimeArguments, total=False):
    """The options of `trendloom.spark.watch`."""

    watermark: str | None
    checkpoint: str | None


class ExpandArguments(_TimeArguments, total=False):
    """The options of `trendloom.expand`."""

    query: str | None
    order: str | Sequence[str] | None


class _EventArguments(_TimeArguments, total=False):
    """The options of all functions that read events, precise or not."""

    time_low: str | None
    time_high: str | None
    time_error: str | None
    order: str | Sequence[str] | None


class ArchiveArguments(_EventArguments, total=False):
    """The options of `trendloom.spark.archive`."""

    query: str | None
    numeric: str


class _PointArguments(_EventArguments, total=False):
    time_probability: str | None
    time_grain: str | None
    time_points: int | None


class CheckArguments(_PointArguments, total=False):
    """The options of `trendloom.check`."""

    schema: str | None


class ExplainArguments(CheckArguments, total=False):
    """The options of `trendloom.explain`."""

    engine: str
    memory_limit: str | int | None


class RunArguments(CheckArguments, total=False):
    """The options of `trendloom.run`."""

    query: str | None
    engine: str | None
    master: str | None
    numeric: str
    memory_limit: str | int | None
    max_trends: int
    threads: int | None
    limit: int | None


class DetectArguments(_PointArguments, total=False):
    """The options of `trendloom.spark.detect`."""

    query: str | None
    numeric: str
    memory_limit: str | int | None
    max_trends: int
    partitions: int | None
    path: str | None
    checkpoint: str | None
    watermark: str | None
    late_to: str | None
    early: bool
    buckets: int


def keyword_options(arguments: type, *kinds: type) -> Callable[[Function], Function]:
    """Show the options of a public function in its signature, with their defaults: `help` and completion read that."""

    def decorate(function: Function) -> Function:
        door = door_of(function)
        written = arguments.__annotations__
        shown = signature(function)
        positional = [one for one in shown.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        options = [
            Parameter(
                one.name,
                Parameter.KEYWORD_ONLY,
                default=None if one.default == () else spec_of(one).default_at(door, one.default),
                annotation=getattr(written.get(one.name), "__forward_arg__", "Any"),
            )
            for one in fields_at(door, *kinds)
        ]
        function.__signature__ = shown.replace(parameters=[*positional, *options])  # type: ignore[attr-defined]
        return function

    return decorate


def door_of(function: Callable[..., Any]) -> str:
    return f"{function.__name__}()"


def keywords_at(door: str, given: Mapping[str, Any], *kinds: type[Any]) -> tuple[Any, ...]:
    """The options of each kind that a public function was called with; refuses others as Python does."""
    known = [one.name for one in fields_at(door, *kinds)]
    for name in given:
        if name not in known:
            near = did_you_mean(name, known)
            raise TypeError(f"{door} got an unexpected keyword argument '{name}'" + (f"; {near}" if near else ""))
    return tuple(options_at(door, kind, given) for kind in kinds)
