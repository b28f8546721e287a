"""Made-up events at a given rate, for trying queries without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark.streaming.sources import SOURCES, EventSource, refuse_max_files
from trendloom.errors import OptionError, option
from trendloom.streaming.connectors import ReadSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CYCLE, KEYS = "ABC", 10
"""Types and number of keys of made-up events."""


@SOURCES.register
class RateSource(EventSource):
    """`rate:ROWS`: so many events a second: types A, B, C in turn, ten keys, a number that grows."""

    scheme = "rate"
    form = "rate:ROWS"
    help = "made-up events, that many a second"

    def check(self) -> None:
        rows = self.address.place
        if not rows.isdecimal() or int(rows) < 1:
            raise OptionError(f"'{rows}' is not a rate", hint="rate:ROWS is a number of events per second: rate:1000")
        if self.address.schema is not None:
            raise OptionError(
                "made-up events have columns of their own: time, type, key, value",
                hint=f"leave out {option('schema')}",
            )
        if self.address.max_files is not None:
            refuse_max_files()

    def known_columns(self, times: tuple[str, ...], checkpoint: str | None = None) -> pa.Schema | None:
        kinds = (pa.timestamp("us", "UTC"), pa.string(), pa.int32(), pa.int64())
        return pa.schema(zip(("time", "type", "key", "value"), kinds, strict=True))

    def open(self, spark: SparkSession, settings: ReadSettings) -> DataFrame:
        from pyspark.sql import functions as F

        reader = spark.readStream.format("rate").option("rowsPerSecond", self.address.place)
        rate = reader.options(**self.address.options).load()
        number = F.col("value")
        types = F.array(*map(F.lit, CYCLE))
        return rate.select(
            F.col("timestamp").alias("time"),
            F.get(types, F.pmod(number, F.lit(len(CYCLE))).cast("int")).alias("type"),
            F.pmod(F.floor(number / len(CYCLE)), F.lit(KEYS)).cast("int").alias("key"),
            number.alias("value"),
        )
