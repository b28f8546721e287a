"""Rows for people who look at them, and for functions of the user: printed, called, or kept in Spark's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from trendloom.engines.spark.streaming.sinks import SINKS, BatchWriter
from trendloom.errors import OptionError, option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@SINKS.register
@dataclass(frozen=True)
class ConsoleSink:
    """`console`."""

    scheme: ClassVar[str] = "console"
    form: ClassVar[str] = "console"
    help: ClassVar[str] = ""
    exactly_once: ClassVar[str] = "is printed again"
    on_console: ClassVar[bool] = True
    in_memory: ClassVar[bool] = False

    place: str = ""

    def check(self) -> None:
        if self.place:
            raise OptionError("the console needs no place", hint=option("sink", "console"))

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        return to_call(show)


@SINKS.register
@dataclass(frozen=True)
class MemorySink:
    """`memory:NAME`: a table of the session."""

    scheme: ClassVar[str] = "memory"
    form: ClassVar[str] = "memory:NAME"
    help: ClassVar[str] = "shown at the end"
    exactly_once: ClassVar[str] = "cannot go on from a checkpoint"
    on_console: ClassVar[bool] = False
    in_memory: ClassVar[bool] = True

    place: str

    def check(self) -> None:
        if not self.place.isidentifier():
            raise OptionError(f"'{self.place}' is not a name of a table", hint="letters, digits and _: memory:matches")

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        return to_call(show)


def to_call(function: Callable[[pa.Table, int], None]) -> BatchWriter:
    """Rows as an Arrow table to a function of the user; a batch that is done again calls it again."""

    def call(rows: DataFrame, batch: int) -> None:
        function(rows.toArrow(), batch)

    return call
