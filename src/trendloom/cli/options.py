"""The options that commands share: one name, one help text, one panel each."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from trendloom.errors import OptionError, did_you_mean

INPUT = "Events"
ENGINE = "Engine"
OUTPUT = "Output"


class Engine(StrEnum):
    local = "local"
    spark = "spark"
    reference = "reference"


class Numeric(StrEnum):
    exact = "exact"
    float = "float"
    log = "log"


class LiveFormat(StrEnum):
    table = "table"
    jsonl = "jsonl"


class Format(StrEnum):
    table = "table"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


QueryFile = Annotated[
    str,
    typer.Argument(
        metavar="QUERY.tql",
        show_default=False,
        help="A file of one query or of a workload; - reads it from standard input.",
    ),
]
MaybeQueryFile = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUERY.tql]",
        show_default=False,
        help="A file of one query or of a workload; - reads it from standard input.",
    ),
]
QueryName = Annotated[
    str | None, typer.Option("--query", metavar="NAME", show_default=False, help="Only this query of a workload.")
]
EVENTS_HELP = "Parquet, CSV or JSON lines: a file, a folder, a glob in quotes, or a URI; may be repeated."
SomeEvents = Annotated[
    list[str] | None,
    typer.Option("--events", "-e", metavar="FILE", rich_help_panel=INPUT, show_default=False, help=EVENTS_HELP),
]
AllEvents = Annotated[
    list[str],
    typer.Option("--events", "-e", metavar="FILE", rich_help_panel=INPUT, show_default=False, help=EVENTS_HELP),
]
Time = Annotated[
    str, typer.Option("--time", metavar="COLUMN", rich_help_panel=INPUT, help="The time: whole numbers or timestamps.")
]
Type = Annotated[str, typer.Option("--type", metavar="COLUMN", rich_help_panel=INPUT, help="The type of each event.")]
TimeUnit = Annotated[
    str | None,
    typer.Option(
        "--time-unit",
        metavar="UNIT",
        rich_help_panel=INPUT,
        show_default=False,
        help="What a whole number of time counts: us, ms, s, min, h or d; else seconds, with a warning where they "
        "hardly can be.",
    ),
]
TimeLow = Annotated[
    str | None,
    typer.Option(
        "--time-low",
        metavar="COLUMN",
        rich_help_panel=INPUT,
        show_default=False,
        help="Imprecise time: the earliest, instead of --time.",
    ),
]
TimeHigh = Annotated[
    str | None,
    typer.Option(
        "--time-high", metavar="COLUMN", rich_help_panel=INPUT, show_default=False, help="Imprecise time: the latest."
    ),
]
TimeError = Annotated[
    str | None,
    typer.Option(
        "--time-error",
        metavar="ERROR",
        rich_help_panel=INPUT,
        show_default=False,
        help="Imprecise time: how far --time may be off, to both sides: 7.5s, Load=7.5s,Task=500ms for types (others "
        "are exact), or a column of numbers (in the unit of integer times; seconds for timestamps) or durations.",
    ),
]
TimeProbability = Annotated[
    str | None,
    typer.Option(
        "--time-probability",
        metavar="COLUMN",
        rich_help_panel=INPUT,
        show_default=False,
        help="Imprecise time: lists with the probability of each point; NULL, or no such column: all are "
        "equally likely.",
    ),
]
TimeGrain = Annotated[
    str | None,
    typer.Option(
        "--time-grain",
        metavar="DURATION",
        rich_help_panel=INPUT,
        show_default=False,
        help="Imprecise time: how far apart possible times lie, e.g. 1s; else one unit of integer times, 1us of "
        "timestamps.",
    ),
]
TimePoints = Annotated[
    int | None,
    typer.Option(
        "--time-points",
        metavar="N",
        rich_help_panel=INPUT,
        show_default=False,
        help="Imprecise time: refuse an event with more possible times; default: 1000.",
    ),
]
Order = Annotated[
    list[str] | None,
    typer.Option(
        "--order",
        metavar="COLUMN,...",
        rich_help_panel=INPUT,
        show_default=False,
        help="Who comes first among events of equal time: the columns to order them by; may be repeated.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="COLUMNS",
        rich_help_panel=INPUT,
        show_default=False,
        help='What columns of text files are, e.g. "time timestamp, id string"; the others are recognised.',
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        metavar="ZONE",
        rich_help_panel=INPUT,
        show_default=False,
        help="The zone of times that do not say theirs, in the events and in the query, e.g. Europe/Paris; else UTC.",
    ),
]
EngineName = Annotated[
    Engine,
    typer.Option(
        "--engine",
        rich_help_panel=ENGINE,
        help="spark: all cores, or a cluster. local: this process, starts at once. "
        "reference: the definitions, for small streams.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        rich_help_panel=ENGINE,
        show_default=False,
        help="Spark master, or sc://host:port for Spark Connect; all cores of this machine if not given.",
    ),
]
NumericName = Annotated[
    Numeric,
    typer.Option(
        "--numeric",
        rich_help_panel=ENGINE,
        help="Counts and sums: exact at any size, float, or log (base-10 logarithms).",
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        rich_help_panel=ENGINE,
        show_default=False,
        help="Memory for trends that are stored to find others faster, e.g. 512M (on Spark: of each task); "
        "default: a quarter of what is free.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        rich_help_panel=ENGINE,
        show_default=False,
        help="Cores that the local engine uses; default: all.",
    ),
]
MaxTrends = Annotated[
    int,
    typer.Option(
        "--max-trends",
        metavar="N",
        rich_help_panel=ENGINE,
        help="Refuse to give out more matches one by one, before any is built; --limit bypasses it.",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="No warnings, notes or progress; errors only.")
]
Debug = Annotated[bool, typer.Option("--debug", rich_help_panel=OUTPUT, help="Show the traceback of an error.")]


# The text of a query: of a file, or of standard input.


STANDARD_INPUT = "-"


def read_query(name: str) -> str:
    """The text, or an error that helps to find it."""
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(name).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise OptionError(f"there is no query file {name}", hint=_nearby(Path(name))) from None
    except IsADirectoryError:
        raise OptionError(f"{name} is a folder, not a query file", hint=_nearby(Path(name) / "any.tql")) from None
    except UnicodeDecodeError:
        raise OptionError(f"{name} is not text in UTF-8", hint="a query file is plain text, by habit *.tql") from None
    except OSError as problem:
        raise OptionError(f"{name} cannot be read: {problem.strerror or problem}") from None


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    names = [found.name for found in path.parent.glob("*.tql")]
    return did_you_mean(path.name, names) or "write the query into a file, or give - and write it to standard input"
