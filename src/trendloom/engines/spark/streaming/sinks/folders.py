"""Rows into a folder with one file of JSON lines per batch, which appears whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.engines.spark.streaming.sinks import SINKS, BatchWriter, batch_name
from trendloom.io.write import write
from trendloom.streaming.connectors import check_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@SINKS.register
@dataclass(frozen=True)
class JsonLinesSink:
    """`jsonl:FOLDER`."""

    scheme: ClassVar[str] = "jsonl"
    form: ClassVar[str] = "jsonl:FOLDER"
    help: ClassVar[str] = ""
    exactly_once: ClassVar[str] = "replaces its file"
    on_console: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    place: str

    def check(self) -> None:
        check_folder(self.place, "the folder of rows")

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        return to_jsonl(self.place)


def to_jsonl(folder: str, *, stream: str | None = None) -> BatchWriter:
    """Rows into a folder with one file of JSON lines per batch, which appears whole or not at all."""

    def write_batch(rows: DataFrame, batch: int) -> None:
        name = batch_name(rows, batch, stream)
        table = rows.toArrow()
        if len(table):
            place = Path(folder)
            place.mkdir(parents=True, exist_ok=True)
            write(table, "jsonl", place / f"{name}.jsonl")

    return write_batch


@SINKS.register
@dataclass(frozen=True)
class ParquetSink:
    """`parquet:FOLDER`."""

    scheme: ClassVar[str] = "parquet"
    form: ClassVar[str] = "parquet:FOLDER"
    help: ClassVar[str] = ""
    exactly_once: ClassVar[str] = "replaces its folder"
    on_console: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    place: str

    def check(self) -> None:
        check_folder(self.place, "the folder of rows")

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        return to_parquet(self.place)


def to_parquet(folder: str, *, stream: str | None = None) -> BatchWriter:
    """Rows into a folder of Parquet that every reader understands, written by the tasks themselves.

    Each batch is a folder `batch=STREAM-NUMBER`, so readers see a column `batch`. A batch that is done again replaces
    its folder. Between a crash and the next start a reader may see a part of the last batch: it has no `_SUCCESS`.
    """
    return ParquetWriter(folder, stream)


@dataclass(frozen=True)
class ParquetWriter:
    """See `to_parquet`."""

    folder: str
    stream: str | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        local = "://" not in self.folder
        base = str(Path(self.folder).resolve()) if local else self.folder.rstrip("/")
        place = f"{base}/batch={batch_name(rows, batch, self.stream)}"
        rows.write.mode("overwrite").parquet(place)
        if local:
            _remove_if_empty(Path(place))


def _remove_if_empty(folder: Path) -> None:
    """Spark writes a file even where there are no rows; a stream has many such batches."""
    if not any(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet")):
        shutil.rmtree(folder)
