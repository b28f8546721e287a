"""DataFrames as streams of events: where they come from, what their columns are, and whether their times are sound.

Parquet is read by Spark itself. Files that were found (`io.files`) are handed to it one by one, so both engines read
the same ones, and columns that folders give (`key=value`) get the types that they have elsewhere: to Spark alone `007`
would be 7. URIs of other machines (s3a://, hdfs://, ...) go to Spark as they are, with the access of the session.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from trendloom.engines.spark.columns import (
    column,
    in_utc,
    moment_of,
    nanosecond_columns,
    schema_with_numbers,
    time_in_text,
    with_times,
    without_time,
)
from trendloom.engines.spark.errors import first_line
from trendloom.errors import DataError, OptionError, QueryWarning
from trendloom.io.convert import parse_schema
from trendloom.io.events import Events, prepare, types_elsewhere
from trendloom.io.files import ENDINGS, File, places_of, scheme_of
from trendloom.io.parquet import ParquetFiles
from trendloom.io.read import refuse_schema
from trendloom.io.timestamps import (
    EPOCHS,
    FIRST_DATE,
    FIRST_SECOND,
    LAST_DATE,
    LAST_SECOND,
    TIME_OF_DAY,
    Sizes,
    doubt_of_unit,
)
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import UTC
from trendloom.runtime.reading import load, opened

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from trendloom.options import Columns, Options

WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
NOT_FOR_SPARK = ("http", "https", "ftp")


@dataclass(frozen=True, eq=False)
class Frame:
    """A DataFrame, the types of its columns (`arrow`), what they mean (`schema`), and its Parquet files, if any.

    `given`: the types with the zones that the events had before Spark read them, which results have again. `warnings`:
    about the events, as far as they were read. `only_type`: that of every event, where a column of it was added.
    """

    df: DataFrame
    arrow: pa.Schema
    schema: Schema
    given: pa.Schema
    files: tuple[Path, ...] = ()
    warnings: tuple[QueryWarning, ...] = ()
    only_type: str | None = None


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
        frame = _with_zones(frame, prepare(found.columns.empty_table(), **options.columns()))
        return replace(frame, files=paths if len(paths) == len(local) else ())
    events = found if isinstance(found, Events) else load(found, options)
    frame = _with_zones(describe(_from_table(spark, events.table), options.columns()), events)
    schema = replace(frame.schema, columns=events.schema.columns, present=events.schema.present)
    return replace(frame, schema=schema, warnings=events.warnings)


def describe(df: Any, options: Columns) -> Frame:
    """Check the columns of a DataFrame as those of a stream; reads no event."""
    _refuse_names_alike(df)
    arrow = to_arrow_schema(df.schema, timezone=UTC)
    events = prepare(arrow.empty_table(), **options)
    given = events.table.schema
    return Frame(
        _as_described(df, arrow, events, options),
        in_utc(given),
        replace(events.schema, present=None),
        given,
        warnings=events.warnings,
        only_type=options["query_types"][0] if events.schema.type not in arrow.names else None,
    )


def inspect(frame: Frame, *, unit_given: bool) -> Frame:
    """Read the times and types once, before anything runs: missing times are refused, types kept in the schema.

    Whole numbers of time whose unit is not given get a warning where they hardly count seconds.
    """
    time, kind = column(frame.schema.times), column(frame.schema.type)
    counted = not unit_given and not frame.schema.axis.timestamp
    found = frame.df.agg(
        F.count_if(without_time(frame.schema)).alias("missing"),
        F.count(F.lit(1)).alias("rows"),
        F.collect_set(kind).alias("types"),
        *(_sizes(time) if counted else ()),
        *(
            F.bool_or(column(name).eqNullSafe(F.lit(frame.only_type))).alias(f"holds {name}")
            for name in _maybe_types(frame)
        ),
    ).first()
    assert found is not None
    for name in _maybe_types(frame):
        if frame.only_type is not None and found[f"holds {name}"]:
            raise types_elsewhere(frame.schema.type, name, frame.only_type)
    if found["missing"]:
        named = "' or '".join(frame.schema.bounds or (frame.schema.time,))
        raise DataError(
            f"{found['missing']} of {found['rows']} events have no time: "
            f"column '{named}' is NULL or cannot be read as a time",
            hint="drop these rows or fill in their time first",
        )
    warnings = list(frame.warnings)
    if counted and found["rows"]:
        epochs = {name: found[name] for name in EPOCHS}
        doubt = doubt_of_unit(frame.schema.times, Sizes(found["rows"], found["most"], epochs, found["dates"]))
        warnings += [] if doubt is None else [doubt]
    return replace(frame, schema=replace(frame.schema, present=frozenset(found["types"])), warnings=tuple(warnings))


def with_null_columns(frame: Frame) -> Frame | None:
    """The frame with columns that hold nothing but NULL known as such (they fit everywhere); None if there are none."""
    names = frame.schema.names
    found = frame.df.agg(*(F.count(column(name)).alias(str(at)) for at, name in enumerate(names))).first()
    rows = frame.df.limit(1).count()
    assert found is not None
    empty = {name for at, name in enumerate(names) if rows and found[str(at)] == 0}
    if not empty:
        return None
    columns = tuple(Column(c.name, Kind.NULL) if c.name in empty else c for c in frame.schema.columns)
    return replace(frame, schema=replace(frame.schema, columns=columns))


def finite(df: Any) -> DataFrame:
    """The DataFrame, if it is not a stream: its rows can be collected."""
    if df.isStreaming:
        raise OptionError(
            "a streaming DataFrame has no last row, so its matches cannot be collected",
            hint="trendloom.spark.detect gives a streaming DataFrame of them",
        )
    found: DataFrame = df
    return found


def _with_zones(frame: Frame, events: Events) -> Frame:
    """The frame with the zones of the events, which Spark does not keep."""
    zones = {column.name: column.zone for column in events.schema.columns}
    columns = tuple(replace(column, zone=zones.get(column.name)) for column in frame.schema.columns)
    known = set(events.table.column_names)
    given = [events.table.schema.field(f.name) if f.name in known else f for f in frame.arrow]
    return replace(frame, schema=replace(frame.schema, columns=columns), given=pa.schema(given))


def _from_table(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a DataFrame. Times without a zone stay so: Spark would take them for times of its session's zone."""
    for at, field in enumerate(table.schema):
        table = table.set_column(at, field.name, _storable(field.name, table.column(at)))
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _storable(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in a type that Spark has: decimals of up to 38 digits, none before the unit, and no unsigned integers."""
    kind = values.type
    if pa.types.is_decimal(kind):
        digits, scale = kind.precision - min(kind.scale, 0), max(kind.scale, 0)
        try:
            return values.cast(pa.decimal128(min(digits, 38), scale))
        except (pa.ArrowInvalid, ValueError):
            raise DataError(
                f"column '{name}' is of {kind}, and holds numbers that Spark's decimals of 38 digits cannot",
                hint="round the column, or use the local engine",
            ) from None
    if kind != pa.uint64():
        return values.cast(WIDER.get(kind, kind))
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.cast(pa.decimal128(20, 0))


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


def _as_described(df: DataFrame, arrow: pa.Schema, events: Events, options: Columns) -> DataFrame:
    """The DataFrame with the columns of the checked events.

    Text and dates in the time column become times (unreadable text becomes NULL and is refused later), local times
    become moments of the zone that was named, and a column of the only type is added where there is none.
    """
    zone = options["time_zone"]
    for field in events.table.schema:
        if field.name not in arrow.names:
            df = df.withColumn(field.name, F.lit(options["query_types"][0]))
            continue
        kind, value = arrow.field(field.name).type, column(field.name)
        if kind == field.type:
            continue
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            df = df.withColumn(field.name, time_in_text(value, zone))
        elif pa.types.is_temporal(kind):
            local = value.cast("timestamp_ntz")
            df = df.withColumn(field.name, local if zone is None else moment_of(local, zone))
    return df


def _maybe_types(frame: Frame) -> list[str]:
    """Columns that may hold types, where no column is known to."""
    texts = [one.name for one in frame.schema.columns if one.kind is Kind.STRING and one.name != frame.schema.type]
    return texts if frame.only_type is not None else []


def _sizes(time: SparkColumn) -> list[SparkColumn]:
    """The sums over times that `io.timestamps` needs."""
    number = time.cast("bigint")
    date = F.when(number > LAST_DATE, F.floor(number / TIME_OF_DAY)).otherwise(number)
    month, day = F.floor(date / 100) % 100, date % 100
    written = date.between(FIRST_DATE, LAST_DATE) & month.between(1, 12) & day.between(1, 31)
    epochs = [
        F.count_if((number >= FIRST_SECOND * scale) & (number < LAST_SECOND * scale)).alias(name)
        for name, scale in EPOCHS.items()
    ]
    return [F.max(number).alias("most"), F.count_if(written).alias("dates"), *epochs]


# ------------------------------------------------------------------------------------------------------------- Parquet


@dataclass(frozen=True)
class RemoteParquet:
    """Files, folders or globs of Parquet on other machines, which Spark finds by itself."""

    uris: tuple[str, ...]


def remote_parquet(source: object, schema: str | None) -> RemoteParquet | None:
    """The URIs of a source that Spark can read without us; None: it is something else."""
    places = places_of(source) or []
    kinds = {ENDINGS.get(Path(re.sub(r"\.(gz|zst|bz2|lz4)$", "", place)).suffix.lower(), "parquet") for place in places}
    schemes = [scheme_of(place) for place in places]
    if kinds != {"parquet"} or any(scheme is None or scheme in NOT_FOR_SPARK for scheme in schemes):
        return None
    refuse_schema([] if schema is None else list(parse_schema(schema)), "Parquet")
    return RemoteParquet(tuple(places))


def read_remote(spark: SparkSession, remote: RemoteParquet) -> DataFrame:
    """The files as one DataFrame; those whose types do not go together are refused by Spark, which names one."""
    try:
        return spark.read.option("mergeSchema", "true").parquet(*remote.uris)
    except Exception as error:
        raise DataError(
            f"{', '.join(remote.uris)} cannot be read by Spark: {first_line(error)}",
            hint="check the address, the session's access to it, and that all files have one schema",
        ) from error


def read_found(spark: SparkSession, found: ParquetFiles) -> DataFrame:
    """The files that were found as one DataFrame, with the columns in the same order as elsewhere."""
    groups: dict[str | None, list[str]] = {}
    for file in found.files:
        groups.setdefault(_base(file), []).append(_for_spark(file))
    frames = [_read(spark, found, base, paths) for base, paths in groups.items()]
    return reduce(lambda one, other: one.unionByName(other), frames)


def _read(spark: SparkSession, found: ParquetFiles, base: str | None, paths: list[str]) -> DataFrame:
    nanoseconds = nanosecond_columns(found.footers[0].schema, found.files[0].name)
    reader = spark.read
    if base is not None or nanoseconds:
        stored = schema_with_numbers(spark, paths[0], nanoseconds)
        reader = reader.schema(_with_keys(stored, found))
    if base is not None:
        reader = reader.option("basePath", base)
    names = found.columns.names
    df = with_times(reader.parquet(*paths), nanoseconds)
    return df.select(*map(column, names)) if df.columns != names else df


def _with_keys(stored: StructType, found: ParquetFiles) -> StructType:
    kinds = {name: values.type for name, values in found.keys.items()}
    fields = [(name, pa.string() if pa.types.is_null(kind) else kind) for name, kind in kinds.items()]
    given = from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)
    return StructType([field for field in stored.fields if field.name not in kinds] + given.fields)


def _base(file: File) -> str | None:
    """The folder below which folders are keys, which is not a glob to Spark; None if none is."""
    if not file.keys:
        return None
    parts = (file.path if file.local is not None else file.name).split("/")
    keys = [at for at, part in enumerate(parts[:-1]) if "=" in part]
    return "/".join(parts[: keys[-len(file.keys)]])


def _for_spark(file: File) -> str:
    """The path of a file for Spark, to which every path is a glob."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", file.path) if file.local is not None else file.name
