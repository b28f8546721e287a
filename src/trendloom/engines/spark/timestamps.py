"""Times on Spark, whatever the zone of the session: local times become moments, and results get their zones back.

Spark's `timestamp` is a moment without a zone; `timestamp_ntz` is a local time. Neither is ever converted by a cast
here, because casts take the session's zone. Java's rules for hours that clocks skip or repeat are those of
`model.time`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.engines.spark.error_transport import complaint
from trendloom.errors import DataError
from trendloom.io.timestamps import ISO_CLOCK, ISO_ZONE
from trendloom.model.time import UTC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


def moment_of(local: Column, zone: str = UTC) -> Column:
    """A `timestamp_ntz` as the moment when clocks of the zone show it."""

    from pyspark.sql import functions as F

    date = (F.year(local), F.month(local), F.dayofmonth(local))
    return F.make_timestamp(*date, F.hour(local), F.minute(local), F.date_part(F.lit("SECOND"), local), F.lit(zone))


def time_in_text(text: Column, zone: str | None) -> Column:
    """Text as a time: a moment where there is a zone for text that names none, else a time without a zone, in UTC."""

    from pyspark.sql import functions as F

    zoned = text.rlike(ISO_CLOCK) & text.rlike(ISO_ZONE)
    moment, local = F.try_to_timestamp(text), text.try_cast("timestamp_ntz")
    if zone is not None:
        return F.when(zoned, moment).otherwise(moment_of(local, zone))
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return F.when(zoned, F.timestamp_add("MICROSECOND", F.unix_micros(moment), epoch)).otherwise(local)


# ----------------------------------------------------------------------------------------------- Arrow types


def in_utc(schema: pa.Schema) -> pa.Schema:
    """The types as Spark has them: moments have no zone of their own."""
    return pa.schema([pa.field(f.name, _moment_type(f.type, UTC), metadata=f.metadata) for f in schema])


def _moment_type(kind: pa.DataType, zone: str) -> pa.DataType:
    return pa.timestamp("us", zone) if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def shown_in(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The same rows, moments in the zones of these types.

    Nothing else is changed, and nothing but zones is cast: Arrow's cast breaks structs with columns of NULLs.
    """
    for at, field in enumerate(wanted):
        if table.schema.field(at).type != field.type:
            column = table.column(at).combine_chunks()
            shown = _events(column, field.type) if field.name == "events" else _shown(column, field.type)
            table = table.set_column(at, field.name, shown)
    return table


def _events(array: pa.Array, kind: pa.DataType) -> pa.Array:
    fields = [kind.value_type.field(at) for at in range(kind.value_type.num_fields)]
    parts = [_shown(part, field.type) for field, part in zip(fields, array.values.flatten(), strict=True)]
    values = pa.StructArray.from_arrays(parts, names=[field.name for field in fields])
    return pa.ListArray.from_arrays(array.offsets, values)


def _shown(array: pa.Array, kind: pa.DataType) -> pa.Array:
    zone = kind.tz if pa.types.is_timestamp(kind) and pa.types.is_timestamp(array.type) else None
    return array if zone is None else array.cast(_moment_type(array.type, zone))


# Parquet whose times are nanoseconds, as pandas writes it: Spark does not read them, so it reads numbers for us.
#
# The footers name the columns. Spark reads them as whole numbers and divides them by a thousand, which is exact or
# refused: times are whole microseconds everywhere. Whether a column counts from 1970 in UTC or without a zone stays as
# it is. No setting of the session is changed for longer than it takes to ask for the other columns' types.


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
