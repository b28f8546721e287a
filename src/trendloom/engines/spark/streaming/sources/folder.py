"""Folders into which files of events are put, read as `trendloom run` reads files, with times in text parsed by us.

Without a schema, the columns are those of the files that are there; the checkpoint keeps them for the next start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.engines.spark.errors import first_line
from trendloom.engines.spark.streaming.sources import (
    FILE,
    SOME_COLUMNS,
    SOURCES,
    TEXT,
    UNREADABLE,
    EventSource,
    columns_of_schema,
    noted_columns,
    struct_of,
)
from trendloom.errors import DataError, OptionError, option
from trendloom.io.files import ENDINGS
from trendloom.io.read import read
from trendloom.model.time import UTC
from trendloom.streaming.connectors import ReadSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from trendloom.engines.spark.streaming.sources.folder_files import Dialect

MOST_FILES = 5
"""Files whose columns are read when there is no schema."""

UNFINISHED = "files must appear whole: write them elsewhere, then move them into the folder"


class FolderSource(EventSource, ABC):
    """A folder of files of one format."""

    @property
    def place(self) -> str:
        return self.address.place

    @property
    def is_local(self) -> bool:
        return "://" not in self.place

    @property
    def path(self) -> str:
        """The folder as Spark takes it."""
        return str(Path(self.place).resolve()) if self.is_local else self.place

    def files(self) -> list[Path]:
        return _files_in(Path(self.place), self.scheme)

    def check(self) -> None:
        if not self.place:
            raise OptionError(f"the source {self.scheme} needs a folder", hint=self.form)
        schema = option("schema", SOME_COLUMNS)
        if self.is_local:
            _refuse_no_folder(Path(self.place))
            if self.address.schema is None and not self.files():
                raise OptionError(
                    f"{self.place} holds no {self.scheme} files yet, so its columns are not known",
                    hint=f"give {schema}",
                )
        elif self.address.schema is None and self.scheme != "parquet":
            raise OptionError(f"the columns of {self.place} are not known", hint=f"give {schema}")

    def known_columns(self, times: tuple[str, ...], checkpoint: str | None = None) -> pa.Schema | None:
        from pyspark.sql.pandas.types import to_arrow_schema

        if self.address.schema is not None:
            return columns_of_schema(self.address.schema)
        noted = None if checkpoint is None else noted_columns(checkpoint)
        if noted is not None:
            return to_arrow_schema(noted, timezone="UTC")
        return self.columns_of_files(times) if self.is_local else None

    @abstractmethod
    def columns_of_files(self, times: tuple[str, ...]) -> pa.Schema:
        """The columns of the files in a folder on this machine."""

    @abstractmethod
    def open(self, spark: SparkSession, settings: ReadSettings) -> DataFrame: ...

    def schema(self, settings: ReadSettings) -> StructType | None:
        """The columns that the address or the checkpoint gives; needs a session."""
        if self.address.schema is not None:
            return struct_of(self.address.schema)
        return None if settings.checkpoint is None else noted_columns(settings.checkpoint)

    def reader(self, spark: SparkSession, form: str, options: Mapping[str, str]) -> DataStreamReader:
        reader = spark.readStream.format(form)
        if self.address.max_files is not None:
            reader = reader.option("maxFilesPerTrigger", self.address.max_files)
        return reader.options(**options)


@SOURCES.register
class ParquetFolder(FolderSource):
    """`parquet:FOLDER`, read by Spark unless times are in nanoseconds, which Spark cannot read."""

    scheme = "parquet"
    form = "parquet:FOLDER"

    def columns_of_files(self, times: tuple[str, ...]) -> pa.Schema:
        file = self.files()[0]
        try:
            return pq.read_schema(file).remove_metadata()
        except (pa.ArrowException, OSError) as problem:
            raise _unreadable(file, problem) from problem

    def open(self, spark: SparkSession, settings: ReadSettings) -> DataFrame:
        from trendloom.engines.spark.columns import schema_with_numbers, with_times
        from trendloom.engines.spark.streaming.sources.folder_files import Dialect

        nanoseconds = self._nanoseconds() if self.is_local else {}
        schema = self.schema(settings)
        if schema is None:
            numbers = schema_with_numbers(spark, self.path, nanoseconds)
            schema = with_times(spark.createDataFrame([], numbers), nanoseconds).schema
        if nanoseconds:
            return _read_by_tasks(spark, self, schema, settings, Dialect(), self.address.options)
        return self.reader(spark, "parquet", self.address.options).schema(schema).load(self.path)

    def _nanoseconds(self) -> dict[str, bool]:
        """The columns in nanoseconds of the files that are there."""
        from trendloom.engines.spark.columns import nanosecond_columns

        found: dict[str, bool] = {}
        for file in self.files()[:MOST_FILES]:
            try:
                with pq.ParquetFile(file) as opened:
                    found |= nanosecond_columns(opened.schema, str(file))
            except (pa.ArrowException, OSError) as problem:
                raise _unreadable(file, problem) from problem
        return found


class TextFolder(FolderSource):
    """A folder of files of text: their columns are what `trendloom run` would find in them."""

    def columns_of_files(self, times: tuple[str, ...]) -> pa.Schema:
        found = read([str(file) for file in self.files()[:MOST_FILES]]).schema
        kinds = [(field.name, _type_in_files(field.type, is_time=field.name in times)) for field in found]
        return pa.schema([(name, pa.string() if pa.types.is_null(kind) else kind) for name, kind in kinds])

    def schema(self, settings: ReadSettings) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        given = super().schema(settings)
        return given or from_arrow_schema(self.columns_of_files(settings.times), prefer_timestamp_ntz=True)


@SOURCES.register
class CsvFolder(TextFolder):
    """`csv:FOLDER`, read by tasks, because Spark reads CSV by position, whatever its header."""

    scheme = "csv"
    form = "csv:FOLDER"

    def open(self, spark: SparkSession, settings: ReadSettings) -> DataFrame:
        from trendloom.engines.spark.streaming.sources.folder_files import dialect_of

        schema = self.schema(settings)
        dialect, options = dialect_of(self.address.options)
        return _read_by_tasks(spark, self, schema, settings, dialect, options)


@SOURCES.register
class JsonLinesFolder(TextFolder):
    """`jsonl:FOLDER`, read by Spark."""

    scheme = "jsonl"
    form = "jsonl:FOLDER"
    help = "or a folder alone, where its files have one of these formats"

    def open(self, spark: SparkSession, settings: ReadSettings) -> DataFrame:
        from pyspark.sql.types import StringType, StructField, StructType

        schema = self.schema(settings)
        reader = self.reader(spark, "json", {"timeZone": settings.time_zone or UTC, **self.address.options})
        if settings.strict:
            return reader.option("mode", "FAILFAST").schema(schema).load(self.path)
        marked = StructType([*schema.fields, StructField(UNREADABLE, StringType())])
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=UNREADABLE)
        return _without_unreadable(reader.schema(marked).load(self.path), schema.names)


def scheme_of_folder(text: str) -> str:
    """The format of the files in a folder that was given without a scheme."""
    if "://" in text:
        raise OptionError(f"{text} does not show its format", hint=f"give {SOURCES.forms()}")
    folder = Path(text)
    _refuse_no_folder(folder)
    schemes = [scheme for scheme, source in SOURCES.classes().items() if issubclass(source, FolderSource)]
    present = [scheme for scheme in schemes if _files_in(folder, scheme)]
    if len(present) == 1:
        return present[0]
    state = "holds files of several formats" if present else "holds no files of events yet"
    raise OptionError(
        f"{text} {state}, so its format is not known", hint=f"say parquet:{text}, csv:{text} or jsonl:{text}"
    )


def _files_in(folder: Path, format: str) -> list[Path]:
    """The files Spark would read: hidden ones are not finished."""
    found = (path for path in folder.rglob("*") if ENDINGS.get(path.suffix.lower()) == format and path.is_file())
    return sorted(path for path in found if not any(p.startswith((".", "_")) for p in path.relative_to(folder).parts))


def _refuse_no_folder(folder: Path) -> None:
    if folder.is_file():
        raise OptionError(
            f"{folder} is a file, and a live stream reads a folder into which files are put",
            hint=f"give its folder, or run the query over the file: {option('events', str(folder))}",
        )
    if not folder.is_dir():
        raise DataError(f"the folder {folder} does not exist", hint=f"make it first; a source is {SOURCES.forms()}")


def _unreadable(file: Path, problem: Exception) -> DataError:
    return DataError(f"{file} cannot be read: {first_line(problem)}", hint=UNFINISHED)


def _type_in_files(kind: pa.DataType, *, is_time: bool) -> pa.DataType:
    if is_time and pa.types.is_temporal(kind):
        return pa.string()
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _read_by_tasks(
    spark: SparkSession,
    source: FolderSource,
    schema: StructType,
    settings: ReadSettings,
    dialect: Dialect,
    options: Mapping[str, str],
) -> DataFrame:
    """Let Spark find the files, and tasks read them; they receive the bytes of files that are not on a disk."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema

    from trendloom.engines.spark.streaming.metrics import READ
    from trendloom.engines.spark.streaming.sources.folder_files import LISTED, FileReader
    from trendloom.engines.spark.tasks import mapped

    listed = source.reader(spark, "binaryFile", options).schema(LISTED).load(source.path)
    content = F.lit(None).cast("binary") if "://" not in source.path else F.col("content")
    columns = to_arrow_schema(schema, timezone="UTC")
    reading = FileReader(source.scheme, columns, settings.times, settings.strict, dialect, settings.time_zone or UTC)
    events = mapped(listed.select("path", content.alias("content")), reading, reading.result)
    return events.observe(READ, F.count(F.lit(1)).alias("rows"))


def _without_unreadable(df: DataFrame, names: list[str]) -> DataFrame:
    """Events with NULL in every column where something could not be read: they have no time, and are set apart.

    Beside them stand the text that could not be read, and its file.
    """
    from pyspark.sql import functions as F

    from trendloom.engines.spark.columns import column

    readable = F.col(UNREADABLE).isNull()
    marks = [F.col(UNREADABLE).alias(TEXT), F.when(~readable, F.col("_metadata.file_path")).alias(FILE)]
    return df.select(*(F.when(readable, column(name)).alias(name) for name in names), *marks)
