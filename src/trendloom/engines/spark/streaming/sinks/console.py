"""Rows for people who look at them, and for functions of the user: printed, called, or kept in Spark's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark.streaming.sinks import SINKS, BatchWriter, RowSink
from trendloom.errors import OptionError, option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@SINKS.register
class ConsoleSink(RowSink):
    """`console`: rows for people who look at them."""

    scheme = "console"
    form = "console"
    exactly_once = "is printed again"
    on_console = True

    def check(self) -> None:
        if self.place:
            raise OptionError("the console needs no place", hint=option("sink", "console"))

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        return to_call(show)


@SINKS.register
class MemorySink(RowSink):
    """`memory:NAME`: a table of the session."""

    scheme = "memory"
    form = "memory:NAME"
    help = "shown at the end"
    exactly_once = "cannot go on from a checkpoint"
    in_memory = True

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
