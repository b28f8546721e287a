"""Where live events come from, one module per kind of source.

`parse_source` reads what users write behind `--source`, without starting Spark; `open_source` makes a streaming
DataFrame of it. What cannot be read never becomes a row of NULLs in silence: it stops the stream (`strict`), or becomes
an event without a time, which the stream sets apart and counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from trendloom.engines.spark.errors import first_line
from trendloom.errors import OptionError, StateError, did_you_mean, option
from trendloom.io.convert import parse_schema
from trendloom.streaming.connectors import ReadSettings, Registry, Source, SourceAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SOURCES: Registry[type[Source]] = Registry("source", __name__)

TEXT, FILE = "trendloom_unreadable", "trendloom_file"
"""Columns beside those of an event: the text of what could not be read, and its file; NULL for all others."""

MARKS = (TEXT, FILE)
UNREADABLE = "_trendloom_unreadable"
COLUMNS = "trendloom_columns.json"
SOME_COLUMNS = "time timestamp, type string, ..."


@dataclass(frozen=True)
class EventSource:
    """What sources of this package have in common."""

    scheme: ClassVar[str]
    form: ClassVar[str]
    help: ClassVar[str] = ""

    address: SourceAddress


def parse_source(
    text: str, *, schema: str | None = None, max_files: int | None = None, options: Mapping[str, str] | None = None
) -> Source:
    """The source of a text such as `parquet:FOLDER` or `kafka:HOST:PORT/TOPIC`; refuses what cannot be read."""
    from trendloom.engines.spark.streaming.sources.folder import scheme_of_folder

    scheme, colon, place = text.partition(":")
    schemes = SOURCES.classes()
    if colon and scheme not in schemes and re.fullmatch(r"\w+", scheme) and not place.startswith("//"):
        raise OptionError(f"there is no source '{scheme}'", hint=did_you_mean(scheme, schemes))
    if not colon or scheme not in schemes:
        scheme, place = scheme_of_folder(text), text
    source = SOURCES.find(scheme)(SourceAddress(place, schema, max_files, dict(options or {})))
    source.check()
    if max_files is not None and max_files < 1:
        refuse_max_files()
    return source


def refuse_max_files() -> None:
    raise OptionError(f"{option('max_files')} is a number of files, at least 1, and for folders only")


def open_source(
    spark: SparkSession, source: Source, *, times: tuple[str, ...] = ("time",), time_zone: str | None = None,
    strict: bool = True, checkpoint: str | None = None,
) -> DataFrame:  # fmt: skip
    """The events as a streaming DataFrame; see `ReadSettings`."""
    events: DataFrame = source.open(spark, ReadSettings(times, time_zone, strict, checkpoint))
    return events


def note_columns(events: DataFrame, checkpoint: str) -> None:
    """Note the columns in the checkpoint: files that come later must not change what they are at the next start."""
    from trendloom.engines.spark.streaming.checkpoint import write_note

    write_note(checkpoint, COLUMNS, events.drop(*MARKS).schema.json())


def noted_columns(checkpoint: str) -> StructType | None:
    """The columns that an earlier start has noted."""
    from pyspark.sql.types import StructType

    from trendloom.engines.spark.streaming.checkpoint import read_note

    try:
        content = read_note(checkpoint, COLUMNS)
        return None if content is None else StructType.fromJson(json.loads(content))
    except (ValueError, KeyError) as error:
        raise StateError(
            f"the checkpoint {checkpoint} cannot be read: {COLUMNS}: {error}",
            hint=f"put back a copy of the whole folder, or say the columns with {option('schema')}",
        ) from None


def struct_of(schema: str) -> StructType:
    """The columns that a text such as "time timestamp, type string" names; needs a session."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        found = StructType.fromDDL(schema)
    except PySparkException as error:
        raise OptionError(
            f"the schema cannot be read: {first_line(error)}", hint='for example "time timestamp, type string, x long"'
        ) from None
    assert isinstance(found, StructType)
    return found


def columns_of_schema(schema: str) -> pa.Schema | None:
    """The columns that a text names, without a session; None if only Spark has their types."""
    try:
        return pa.schema(list(parse_schema(schema).items()))
    except OptionError:
        return None
