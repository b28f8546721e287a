"""How to read the events and run the queries: the options of the command line and of the library, checked at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from trendloom.errors import OptionError, did_you_mean, option
from trendloom.frontend.tql.tree import Query
from trendloom.io.imprecise_options import ImpreciseOptions
from trendloom.logical.bind_patterns import events_of
from trendloom.model.amounts import bytes_of
from trendloom.model.zone import zone_named
from trendloom.planner.limits import MOST_TRENDS, Limits

ENGINES = ("local", "spark", "reference")
NUMERIC = ("exact", "float", "log")


class Columns(TypedDict):
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
    threads: int


@dataclass(frozen=True)
class Options:
    """How to read the events and run the queries: the options of the command line."""

    engine: str = "local"
    time: str = "time"
    type: str = "type"
    time_unit: str | None = None
    time_low: str | None = None
    time_high: str | None = None
    numeric: str = "exact"
    limit: int | None = None
    query: str | None = None
    master: str | None = None
    memory_limit: str | int | None = None
    max_trends: int = MOST_TRENDS
    order: tuple[str, ...] = ()
    schema: str | None = None
    time_zone: str | None = None
    threads: int | None = None
    time_error: str | None = None
    time_probability: str | None = None
    time_grain: str | None = None
    time_points: int | None = None
    query_types: tuple[str, ...] = ()  # no option of a caller's: the types that the queries name, see `for_queries`

    def __post_init__(self) -> None:
        for name, value, known in (("engine", self.engine, ENGINES), ("numeric", self.numeric, NUMERIC)):
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
        """The options that say how the events are read."""
        return {
            "time": self.time,
            "type": self.type,
            "time_unit": self.time_unit,
            "time_low": self.time_low,
            "time_high": self.time_high,
            "time_error": self.time_error,
            "time_probability": self.time_probability,
            "time_grain": self.time_grain,
            "time_points": self.time_points,
            "order": self.order,
            "time_zone": self.time_zone,
            "query_types": self.query_types,
            "threads": self.threads or os.cpu_count() or 1,
        }

    def for_queries(self, queries: Sequence[Query]) -> Options:
        """The options with what reading the events must know of the queries."""
        named = dict.fromkeys(event.type for query in queries for event in events_of(query.pattern))
        return replace(self, query_types=tuple(named))


def columns_named(order: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of `order`: one name, several, or several in one text with commas between them."""
    texts = [order] if isinstance(order, str) else list(order or ())
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())
