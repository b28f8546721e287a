"""Rows as Parquet: a folder for each batch, which a repeated batch replaces.

Spark's own file sink is exactly once only for readers that know its log; folders named by batch are for all readers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.engines.spark.streaming.sinks import SINKS, BatchWriter, FolderSink, batch_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@SINKS.register
class ParquetSink(FolderSink):
    """`parquet:FOLDER`."""

    scheme = "parquet"
    form = "parquet:FOLDER"
    exactly_once = "replaces its folder"

    def writer(self, show: Callable[[pa.Table, int], None]) -> BatchWriter:
        return to_parquet(self.place)


def to_parquet(folder: str, *, stream: str | None = None) -> BatchWriter:
    """Rows into a folder of Parquet that every reader understands, written by the tasks themselves.

    Each batch is a folder `batch=STREAM-NUMBER`, so readers see a column `batch`. A batch that is done again replaces
    its folder. Between a crash and the next start a reader may see a part of the last batch: it has no `_SUCCESS`.
    """

    def write_batch(rows: DataFrame, batch: int) -> None:
        local = "://" not in folder
        base = str(Path(folder).resolve()) if local else folder.rstrip("/")
        place = f"{base}/batch={batch_name(rows, batch, stream)}"
        rows.write.mode("overwrite").parquet(place)
        if local:
            _remove_if_empty(Path(place))

    return write_batch


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder without rows: Spark writes a file even then, and a stream has many such batches."""
    if not any(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet")):
        shutil.rmtree(folder)
