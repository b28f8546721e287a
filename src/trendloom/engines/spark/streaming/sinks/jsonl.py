"""Rows as JSON lines: a file for each batch, which a repeated batch replaces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark.streaming.sinks import SINKS, BatchWriter, FolderSink, batch_name
from trendloom.io.write import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@SINKS.register
class JsonLinesSink(FolderSink):
    """`jsonl:FOLDER`."""

    scheme = "jsonl"
    form = "jsonl:FOLDER"
    exactly_once = "replaces its file"

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
