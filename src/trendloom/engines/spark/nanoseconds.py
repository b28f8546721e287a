"""Parquet whose times are nanoseconds, as pandas writes it: Spark does not read them, so it reads numbers for us.

The footers name the columns. Spark reads them as whole numbers and divides them by a thousand, which is exact or
refused: times are whole microseconds everywhere. Whether a column counts from 1970 in UTC or without a zone stays as it
is. No setting of the session is changed for longer than it takes to ask for the other columns' types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from trendloom.engines.spark.error_transport import complaint
from trendloom.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"
HINT = "round the times to microseconds first, or give whole numbers"


def nanosecond_columns(stored: pq.ParquetSchema, file: str) -> dict[str, bool]:
    """The columns of a Parquet file with times in nanoseconds, and whether they count from 1970 in UTC."""
    found = {}
    for leaf in (stored.column(number) for number in range(len(stored))):
        told = json.loads(leaf.logical_type.to_json())
        if leaf.physical_type == "INT64" and told["Type"] == "Timestamp" and told["timeUnit"] == "nanoseconds":
            if leaf.path != leaf.name:
                raise DataError(
                    f"{file}: column '{leaf.path.partition('.')[0]}' has times in nanoseconds inside lists or structs, "
                    "which Spark does not read",
                    hint='write microseconds: coerce_timestamps="us" of pandas and pyarrow',
                )
            found[leaf.name] = bool(told["isAdjustedToUTC"])
    return found


def schema_with_numbers(spark: SparkSession, path: str, nanoseconds: Mapping[str, bool]) -> StructType:
    """The columns of a Parquet file or folder as Spark reads them, those in nanoseconds as numbers."""
    if not nanoseconds:
        return spark.read.parquet(path).schema
    with _as_numbers(spark):
        return spark.read.parquet(path).schema


def with_times(df: DataFrame, nanoseconds: Mapping[str, bool]) -> DataFrame:
    """The rows with times instead of numbers of nanoseconds."""
    return df.withColumns({name: _time(name, in_utc) for name, in_utc in nanoseconds.items()}) if nanoseconds else df


def epoch_plus(microseconds: Column) -> Column:
    """So many microseconds after 1970 began, as a time without a zone."""
    from pyspark.sql import functions as F

    return F.timestamp_add("MICROSECOND", microseconds, F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))


def _time(name: str, in_utc: bool) -> Column:
    from pyspark.sql import functions as F

    from trendloom.engines.spark.columns import column

    number = column(name)
    micros = F.call_function("div", number, F.lit(1000))
    told = complaint(DataError(f"column '{name}' has times that are not whole microseconds: \0 ns", hint=HINT))
    text = F.replace(F.lit(told), F.lit("\0"), number.cast("string"))
    whole = F.timestamp_micros(micros) if in_utc else epoch_plus(micros)
    broken = F.raise_error(text).cast("timestamp" if in_utc else "timestamp_ntz")
    return F.when(F.pmod(number, F.lit(1000)) != 0, broken).otherwise(whole)


@contextmanager
def _as_numbers(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(AS_NUMBERS)
    spark.conf.set(AS_NUMBERS, "true")
    try:
        yield
    finally:
        if before == "true":
            spark.conf.set(AS_NUMBERS, before)
        else:
            spark.conf.unset(AS_NUMBERS)
