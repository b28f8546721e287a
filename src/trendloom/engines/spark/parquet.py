"""Parquet that Spark reads itself: files that were found, or URIs of file systems that only Spark may know.

Files that were found (`io.files`) are handed to Spark one by one, so both engines read the same ones, and columns that
folders give (`key=value`) get the types that they have elsewhere: to Spark alone `007` would be 7. URIs of other
machines (s3a://, hdfs://, ...) go to Spark as they are, with the access that the session has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark.columns import column
from trendloom.engines.spark.error_transport import first_line
from trendloom.engines.spark.nanoseconds import nanosecond_columns, schema_with_numbers, with_times
from trendloom.errors import DataError
from trendloom.io.files import ENDINGS, File, places_of, scheme_of
from trendloom.io.parquet import ParquetFiles
from trendloom.io.read import refuse_schema
from trendloom.io.schema_text import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NOT_FOR_SPARK = ("http", "https", "ftp")


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
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

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
    """What Spark calls the file; to it, every path is a glob."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", file.path) if file.local is not None else file.name
