"""Rows into a folder with one file of JSON lines per batch, which appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

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
