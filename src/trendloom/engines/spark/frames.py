"""DataFrames as streams of events: where they come from, what their columns are, and whether their times are sound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendloom.engines.spark.columns import column
from trendloom.engines.spark.nanoseconds import epoch_plus
from trendloom.engines.spark.parquet import RemoteParquet, read_found, read_remote
from trendloom.engines.workload import load, opened
from trendloom.errors import DataError, OptionError
from trendloom.io import iso
from trendloom.io.events import Events, prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.model.schema import Column, Kind, Schema

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from trendloom.engines.workload import Columns, Options


@dataclass(frozen=True, eq=False)
class Frame:
    """A DataFrame, the types of its columns (`arrow`), what they mean (`schema`), and its Parquet files, if any."""

    df: DataFrame
    arrow: pa.Schema
    schema: Schema
    files: tuple[Path, ...] = ()


def open_frame(spark: SparkSession, source: object, options: Options) -> Frame:
    """A source as a DataFrame. Parquet is read by Spark itself, everything else goes through Arrow.

    Events that were read already are taken as they are.
    """
    if isinstance(source, RemoteParquet):
        return describe(read_remote(spark, source), options.columns())
    found = source if isinstance(source, Events) else opened(source, options)
    if isinstance(found, ParquetFiles):
        local = [file.local for file in found.files]
        paths = tuple(path for path in local if path is not None)
        frame = describe(read_found(spark, found), options.columns())
        return replace(frame, files=paths if len(paths) == len(local) else ())
    events = found if isinstance(found, Events) else load(found, options)
    frame = describe(_from_table(spark, events.table), options.columns())
    return replace(frame, schema=replace(frame.schema, columns=events.schema.columns, present=events.schema.present))


def finite(df: Any) -> DataFrame:
    """The DataFrame, if it is not a stream: its rows can be collected."""
    if df.isStreaming:
        raise OptionError(
            "a streaming DataFrame has no last row, so its matches cannot be collected",
            hint="trendloom.spark.detect gives a streaming DataFrame of them",
        )
    found: DataFrame = df
    return found


def _from_table(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a DataFrame. Times without a zone stay so: Spark would take them for times of its session's zone."""
    from pyspark.sql.pandas.types import from_arrow_schema

    for at, field in enumerate(table.schema):
        convert = _narrowed if pa.types.is_decimal(field.type) else _signed
        table = table.set_column(at, field.name, convert(field.name, table.column(at)))
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _narrowed(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spark has decimals of up to 38 digits, none of them before the unit."""
    kind = values.type
    digits, scale = kind.precision - min(kind.scale, 0), max(kind.scale, 0)
    try:
        return values.cast(pa.decimal128(min(digits, 38), scale))
    except (pa.ArrowInvalid, ValueError):
        raise DataError(
            f"column '{name}' is of {kind}, and holds numbers that Spark's decimals of 38 digits cannot",
            hint="round the column, or use the local engine",
        ) from None


def _signed(_: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spark has no unsigned integers: the next wider type holds them."""
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    if values.type != pa.uint64():
        return values.cast(wider.get(values.type, values.type))
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.cast(pa.decimal128(20, 0))


def describe(df: Any, options: Columns) -> Frame:
    """Check the columns of a DataFrame as those of a stream; reads no event."""
    from pyspark.sql.pandas.types import to_arrow_schema

    _refuse_names_alike(df)
    arrow = to_arrow_schema(df.schema, timezone="UTC")
    events = prepare(arrow.empty_table(), **options)
    df = _with_times(df, arrow, events.table.schema, options["time"])
    schema = replace(events.schema, present=None)
    return Frame(df, events.table.schema, schema)


def _refuse_names_alike(df: DataFrame) -> None:
    if df.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    first: dict[str, str] = {}
    for name in df.columns:
        other = first.setdefault(name.lower(), name)
        if other != name:
            raise DataError(
                f"columns '{other}' and '{name}' are one to Spark, which does not look at upper and lower case",
                hint="rename one of them, or set spark.sql.caseSensitive to true",
            )


def _with_times(df: DataFrame, given: pa.Schema, wanted: pa.Schema, time: str) -> DataFrame:
    """Text and dates in the time column become timestamps; unreadable text becomes NULL and is refused later."""
    if time not in given.names or given.field(time).type == wanted.field(time).type:
        return df
    kind = given.field(time).type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return df.withColumn(time, _parsed(column(time)))
    return df.withColumn(time, column(time).cast("timestamp_ntz"))


def _parsed(text: SparkColumn) -> SparkColumn:
    """Text as a time without a zone, in UTC whatever the session's zone is."""
    from pyspark.sql import functions as F

    zoned = text.rlike(iso.CLOCK) & text.rlike(iso.ZONE)
    moment = epoch_plus(F.unix_micros(F.try_to_timestamp(text)))
    return F.when(zoned, moment).otherwise(text.try_cast("timestamp_ntz"))


def inspect(frame: Frame) -> Frame:
    """Look at the times and types once, before anything runs: missing times are refused, types remembered."""
    from pyspark.sql import functions as F

    if frame.schema.imprecise:
        return frame
    time, kind = column(frame.schema.time), column(frame.schema.type)
    found = frame.df.agg(
        F.count_if(time.isNull()).alias("missing"), F.count(F.lit(1)).alias("rows"), F.collect_set(kind).alias("types")
    ).first()
    assert found is not None
    if found["missing"]:
        raise DataError(
            f"{found['missing']} of {found['rows']} events have no time: "
            f"column '{frame.schema.time}' is NULL or cannot be read as a time",
            hint="drop these rows or fill in their time first",
        )
    return replace(frame, schema=replace(frame.schema, present=frozenset(found["types"])))


def with_null_columns(frame: Frame) -> Frame | None:
    """The frame with columns that hold nothing but NULL known as such (they fit everywhere); None if there are none."""
    from pyspark.sql import functions as F

    names = frame.schema.names
    found = frame.df.agg(*(F.count(column(name)).alias(str(at)) for at, name in enumerate(names))).first()
    rows = frame.df.limit(1).count()
    assert found is not None
    empty = {name for at, name in enumerate(names) if rows and found[str(at)] == 0}
    if not empty:
        return None
    columns = tuple(Column(c.name, Kind.NULL) if c.name in empty else c for c in frame.schema.columns)
    return replace(frame, schema=replace(frame.schema, columns=columns))
