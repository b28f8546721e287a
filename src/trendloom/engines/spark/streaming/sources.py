"""Where live events come from: folders into which files are put, Kafka, and a rate of made-up events for trying things.

`source_of` reads what people write behind `--source` without starting Spark; `open_source` makes a streaming DataFrame
of it. Files are read as `trendloom run` reads them: the same kinds are recognised, and times in text are parsed by us.

What cannot be read never becomes a row of NULLs in silence: it stops the stream (`strict`), or becomes an event without
a time, which the stream sets apart and counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from trendloom.engines.spark.error_transport import first_line
from trendloom.engines.spark.streaming.folder_files import FILE, LISTED, MARKS, TEXT, Dialect, Reading, dialect_of
from trendloom.engines.spark.streaming.metrics import READ
from trendloom.engines.spark.timestamps import nanosecond_columns, schema_with_numbers, with_times
from trendloom.errors import DataError, OptionError, StateError, did_you_mean, option
from trendloom.io.convert import parse_schema
from trendloom.io.files import place
from trendloom.io.read import read
from trendloom.model.zone import UTC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "jsonl": (".jsonl", ".ndjson", ".json"),
}
KINDS = (*ENDINGS, "rate", "kafka")
WAYS = "parquet:FOLDER, csv:FOLDER, jsonl:FOLDER, rate:ROWS or kafka:HOST:PORT/TOPIC"
FILES_LOOKED_AT = 5
"""Files of text whose columns are looked at; what they leave open, `schema` says."""

UNFINISHED = "files must appear whole: write them elsewhere, then move them into the folder"
COLUMNS = "trendloom_columns.json"
KAFKA = "kafka"
SOME_COLUMNS = "time timestamp, type string, ..."
"""The format under which Spark knows its connector."""

UNREADABLE = "_trendloom_unreadable"
MESSAGE = {"kafka_" + name: name for name in ("key", "topic", "partition", "offset", "timestamp")}
"""Columns that come from the message itself, not from its value, if the schema names them."""

CYCLE, KEYS = "ABC", 10
"""Types and number of keys of made-up events."""


@dataclass(frozen=True)
class EventSource:
    """A place of events: a folder of files of one kind, `HOST:PORT/TOPIC`, or rows per second."""

    kind: str
    place: str
    schema: str | None = None
    max_files: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        return self.kind in ENDINGS


def source_of(
    text: str, *, schema: str | None = None, max_files: int | None = None, options: Mapping[str, str] | None = None
) -> EventSource:
    """What is meant by `parquet:FOLDER`, `kafka:HOST:PORT/TOPIC`, ...; what cannot be meant is refused."""
    kind, colon, place = text.partition(":")
    if colon and kind not in KINDS and re.fullmatch(r"\w+", kind) and not place.startswith("//"):
        raise OptionError(f"there is no source '{kind}'", hint=did_you_mean(kind, KINDS))
    if not colon or kind not in KINDS:
        kind, place = _kind_of_folder(text), text
    found = EventSource(kind, place, schema, max_files, dict(options or {}))
    _CHECKS.get(kind, _check_folder)(found)
    if max_files is not None and (max_files < 1 or not found.is_folder):
        raise OptionError(f"{option('max_files')} is a number of files, at least 1, and for folders only")
    return found


def open_source(
    spark: SparkSession, source: EventSource, *, times: tuple[str, ...] = ("time",), time_zone: str | None = None,
    strict: bool = True, checkpoint: str | None = None,
) -> DataFrame:  # fmt: skip
    """The events as a streaming DataFrame.

    `times`: the columns of times, which may be text. `time_zone`: that of times in text that do not say theirs.
    `strict`: what cannot be read stops the stream; else it becomes an event without a time. `checkpoint`: where an
    earlier start has noted the columns (`note_columns`).
    """
    if source.kind == "rate":
        return _made_up(spark, source)
    if source.kind == "kafka":
        assert source.schema is not None
        return events_of_kafka(_messages(spark, source), source.schema, strict=strict, time_zone=time_zone)
    return _files(spark, source, times, time_zone, strict, checkpoint)


def note_columns(events: DataFrame, checkpoint: str) -> None:
    """Note the columns in the checkpoint: files that come later must not change what they are at the next start."""
    system, folder = place(checkpoint)
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/{COLUMNS}") as sink:
        sink.write(events.drop(*MARKS).schema.json().encode())


def _noted_columns(checkpoint: str) -> StructType | None:
    from pyspark.sql.types import StructType

    system, folder = place(checkpoint)
    path = f"{folder}/{COLUMNS}"
    if system.get_file_info(path).type is not fs.FileType.File:
        return None
    try:
        with system.open_input_stream(path) as source:
            return StructType.fromJson(json.loads(source.read()))
    except (ValueError, KeyError) as error:
        raise StateError(
            f"the checkpoint {checkpoint} cannot be read: {COLUMNS}: {error}",
            hint=f"put back a copy of the whole folder, or say the columns with {option('schema')}",
        ) from None


# --------------------------------------------------------------------------------------- what was written


def _kind_of_folder(text: str) -> str:
    if "://" in text:
        raise OptionError(f"{text} does not show its format", hint=f"give {WAYS}")
    folder = Path(text)
    _refuse_no_folder(folder)
    present = {kind for kind in ENDINGS if _files_in(folder, kind)}
    if len(present) == 1:
        return present.pop()
    state = "holds files of several formats" if present else "holds no files of events yet"
    raise OptionError(
        f"{text} {state}, so its format is not known", hint=f"say parquet:{text}, csv:{text} or jsonl:{text}"
    )


def _files_in(folder: Path, kind: str) -> list[Path]:
    """The files Spark would read: hidden ones are not finished."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS[kind] and path.is_file())
    return sorted(path for path in found if not any(p.startswith((".", "_")) for p in path.relative_to(folder).parts))


def _refuse_no_folder(folder: Path) -> None:
    if folder.is_file():
        raise OptionError(
            f"{folder} is a file, and a live stream reads a folder into which files are put",
            hint=f"give its folder, or run the query over the file: {option('events', str(folder))}",
        )
    if not folder.is_dir():
        raise DataError(f"the folder {folder} does not exist", hint=f"make it first; a source is {WAYS}")


def _check_folder(source: EventSource) -> None:
    if not source.place:
        raise OptionError(f"the source {source.kind} needs a folder", hint=f"{source.kind}:FOLDER")
    if "://" not in source.place:
        _refuse_no_folder(Path(source.place))
        if source.schema is None and not _files_in(Path(source.place), source.kind):
            raise OptionError(
                f"{source.place} holds no {source.kind} files yet, so its columns are not known",
                hint=f"give {option('schema', SOME_COLUMNS)}",
            )
    elif source.schema is None and source.kind != "parquet":
        raise OptionError(f"the columns of {source.place} are not known", hint=f"give {option('schema', SOME_COLUMNS)}")


def _check_rate(source: EventSource) -> None:
    if not source.place.isdecimal() or int(source.place) < 1:
        raise OptionError(
            f"'{source.place}' is not a rate", hint="rate:ROWS is a number of events per second: rate:1000"
        )
    if source.schema is not None:
        raise OptionError(
            "made-up events have columns of their own: time, type, key, value", hint=f"leave out {option('schema')}"
        )


def _check_kafka(source: EventSource) -> None:
    servers, slash, topics = source.place.rpartition("/")
    if not slash or not topics or not all(re.fullmatch(r".+:\d+", one) for one in servers.split(",")):
        raise OptionError(f"'{source.place}' does not name a broker and a topic", hint="kafka:HOST:PORT/TOPIC")
    if source.schema is None:
        raise OptionError(
            "the columns of the messages are not known",
            hint=f"give {option('schema', SOME_COLUMNS)}: the fields of the JSON in their values",
        )


_CHECKS = {"rate": _check_rate, "kafka": _check_kafka}


# ------------------------------------------------------------------------------------------------ folders


def _files(
    spark: SparkSession,
    source: EventSource,
    times: tuple[str, ...],
    time_zone: str | None,
    strict: bool,
    checkpoint: str | None,
) -> DataFrame:
    local = "://" not in source.place
    path = str(Path(source.place).resolve()) if local else source.place
    nanoseconds = _nanoseconds(source) if local and source.kind == "parquet" else {}
    if source.schema is not None:
        schema = struct_of(source.schema)
    else:
        noted = None if checkpoint is None else _noted_columns(checkpoint)
        schema = noted or _found_schema(spark, source, path, times, nanoseconds)
    if source.kind == "csv" or nanoseconds:
        return _read_by_tasks(spark, source, path, schema, times, time_zone or UTC, strict)
    zone = {"timeZone": time_zone or UTC} if source.kind != "parquet" else {}  # else that of the session
    reader = _reader(spark, source, "json" if source.kind == "jsonl" else source.kind, {**zone, **source.options})
    if source.kind == "parquet":
        return reader.schema(schema).load(path)
    if strict:
        return reader.option("mode", "FAILFAST").schema(schema).load(path)
    from pyspark.sql.types import StringType, StructField, StructType

    marked = StructType([*schema.fields, StructField(UNREADABLE, StringType())])
    read = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=UNREADABLE).schema(marked).load(path)
    return _without_unreadable(read, schema.names)


def _reader(spark: SparkSession, source: EventSource, form: str, options: Mapping[str, str]) -> DataStreamReader:
    reader = spark.readStream.format(form)
    if source.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files)
    return reader.options(**options)


def _read_by_tasks(
    spark: SparkSession,
    source: EventSource,
    path: str,
    schema: StructType,
    times: tuple[str, ...],
    zone: str,
    strict: bool,
) -> DataFrame:
    """Spark finds the files, tasks read them; files that are not on a disk are handed to them as bytes."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema

    from trendloom.engines.spark.tasks import Task, mapped

    dialect, options = dialect_of(source.options) if source.kind == "csv" else (Dialect(), dict(source.options))
    listed = _reader(spark, source, "binaryFile", options).schema(LISTED).load(path)
    content = F.lit(None).cast("binary") if "://" not in path else F.col("content")
    reading = Reading(source.kind, to_arrow_schema(schema, timezone="UTC"), times, strict, dialect, zone)
    events = mapped(listed.select("path", content.alias("content")), Task(None, reading), reading.result)
    return events.observe(READ, F.count(F.lit(1)).alias("rows"))


def _nanoseconds(source: EventSource) -> dict[str, bool]:
    """The columns in nanoseconds of the files that are there."""
    found: dict[str, bool] = {}
    for file in _files_in(Path(source.place), source.kind)[:FILES_LOOKED_AT]:
        try:
            with pq.ParquetFile(file) as opened:
                found |= nanosecond_columns(opened.schema, str(file))
        except (pa.ArrowException, OSError) as problem:
            raise DataError(f"{file} cannot be read: {first_line(problem)}", hint=UNFINISHED) from problem
    return found


def _found_schema(
    spark: SparkSession, source: EventSource, path: str, times: tuple[str, ...], nanoseconds: Mapping[str, bool]
) -> StructType:
    """The columns of the files that are there; text of times stays text, and is parsed as `trendloom run` does."""
    from pyspark.sql.pandas.types import from_arrow_schema

    if source.kind == "parquet":
        numbers = schema_with_numbers(spark, path, nanoseconds)
        return with_times(spark.createDataFrame([], numbers), nanoseconds).schema
    return from_arrow_schema(_columns_of_text(source, times), prefer_timestamp_ntz=True)


def _columns_of_text(source: EventSource, times: tuple[str, ...]) -> pa.Schema:
    found = read([str(file) for file in _files_in(Path(source.place), source.kind)[:FILES_LOOKED_AT]]).schema
    joint = [(f.name, _as_read(f.type, is_time=f.name in times)) for f in found]
    return pa.schema([(name, pa.string() if pa.types.is_null(kind) else kind) for name, kind in joint])


def known_columns(source: EventSource, times: tuple[str, ...], checkpoint: str | None = None) -> pa.Schema | None:
    """The columns as far as they are known without Spark; None: only Spark can tell."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if source.kind == "rate":
        kinds = (pa.timestamp("us", "UTC"), pa.string(), pa.int32(), pa.int64())
        return pa.schema(zip(("time", "type", "key", "value"), kinds, strict=True))
    if source.schema is not None:
        try:
            return pa.schema(list(parse_schema(source.schema).items()))
        except OptionError:  # Spark knows more types than these
            return None
    noted = None if checkpoint is None else _noted_columns(checkpoint)
    if noted is not None:
        return to_arrow_schema(noted, timezone="UTC")
    if "://" in source.place:
        return None
    if source.kind != "parquet":
        return _columns_of_text(source, times)
    file = _files_in(Path(source.place), source.kind)[0]
    try:
        return pq.read_schema(file).remove_metadata()
    except (pa.ArrowException, OSError) as problem:
        raise DataError(f"{file} cannot be read: {first_line(problem)}", hint=UNFINISHED) from problem


def _as_read(kind: pa.DataType, *, is_time: bool) -> pa.DataType:
    if is_time and pa.types.is_temporal(kind):
        return pa.string()
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


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


def _without_unreadable(df: DataFrame, names: list[str]) -> DataFrame:
    """Events with NULL in every column where something could not be read: they have no time, and are set apart.

    Beside them stand the text that could not be read, and its file.
    """
    from pyspark.sql import functions as F

    from trendloom.engines.spark.columns import column

    readable = F.col(UNREADABLE).isNull()
    marks = [F.col(UNREADABLE).alias(TEXT), F.when(~readable, F.col("_metadata.file_path")).alias(FILE)]
    return df.select(*(F.when(readable, column(name)).alias(name) for name in names), *marks)


# -------------------------------------------------------------------------------------------------- Kafka


def _messages(spark: SparkSession, source: EventSource) -> DataFrame:
    """The messages of topics, from the earliest on where the checkpoint does not know better."""
    import pyspark
    from pyspark.errors import AnalysisException

    servers, _, topics = source.place.rpartition("/")
    reader = spark.readStream.format(KAFKA).option("kafka.bootstrap.servers", servers).option("subscribe", topics)
    try:
        return reader.options(**{"startingOffsets": "earliest", **source.options}).load()
    except AnalysisException as error:
        if "Failed to find data source" not in str(error) and error.getCondition() != "DATA_SOURCE_NOT_FOUND":
            raise OptionError(f"the topic cannot be read: {first_line(error)}") from None
    raise OptionError(
        "Spark's connector to Kafka is not there",
        hint=option("packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}")
        + " (spark.jars.packages of a session of your own) fetches it; without a network, put its jars into spark.jars",
    )


def events_of_kafka(
    messages: DataFrame, schema: str | StructType, *, strict: bool = True, time_zone: str | None = None
) -> DataFrame:
    """Kafka's messages (key, value, topic, partition, offset, timestamp) as events: the JSON in their values, decoded.

    `schema` names the fields. Columns named kafka_key, kafka_topic, kafka_partition, kafka_offset or kafka_timestamp
    come from the message. A message without a value (a tombstone) is not an event. One that does not fit the schema
    stops the stream, or, if not `strict`, becomes an event without a time; topic, partition and offset then tell which.
    `time_zone`: that of times in the JSON that do not say theirs; UTC if not given.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    wanted = struct_of(schema) if isinstance(schema, str) else schema
    own = [each for each in wanted.fields if each.name not in MESSAGE]
    mark = [] if strict else [StructField(UNREADABLE, StringType())]
    mode = {"mode": "FAILFAST"} if strict else {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": UNREADABLE}
    mode["timeZone"] = time_zone or UTC
    content = F.from_json(F.col("value").cast("string"), StructType([*own, *mark]), mode)
    given = messages.filter(F.col("value").isNotNull()).select("*", content.alias(UNREADABLE))
    readable = F.lit(True) if strict else F.col(UNREADABLE)[UNREADABLE].isNull()

    def value(each: Any) -> Any:
        if each.name not in MESSAGE:
            return F.when(readable, F.col(UNREADABLE)[each.name]).alias(each.name)
        found = F.col(MESSAGE[each.name]).cast("string" if each.name == "kafka_key" else each.dataType)
        return (F.when(readable, found) if each.name == "kafka_timestamp" else found).alias(each.name)

    marks = [] if strict else [F.when(~readable, F.col("value").cast("string")).alias(TEXT)]
    return given.select(*map(value, wanted.fields), *marks)


# -------------------------------------------------------------------------------------------- made-up events


def _made_up(spark: SparkSession, source: EventSource) -> DataFrame:
    """So many events a second, now: types A, B, C in turn, ten keys, a number that grows."""
    from pyspark.sql import functions as F

    rate = spark.readStream.format("rate").option("rowsPerSecond", source.place).options(**source.options).load()
    number = F.col("value")
    types = F.array(*map(F.lit, CYCLE))
    return rate.select(
        F.col("timestamp").alias("time"),
        F.get(types, F.pmod(number, F.lit(len(CYCLE))).cast("int")).alias("type"),
        F.pmod(F.floor(number / len(CYCLE)), F.lit(KEYS)).cast("int").alias("key"),
        number.alias("value"),
    )
