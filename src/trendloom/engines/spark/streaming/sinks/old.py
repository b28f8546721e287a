"""Where rows go, each exactly once: functions for Spark's `foreachBatch`, which may call them twice for one batch.

Spark does a batch again when it stopped before the batch was marked as done. Rows of a batch therefore go to a place
that carries the number of the batch and the identity of the stream, and doing it again replaces what is there: a folder
per batch of Parquet, a file per batch of JSON lines, a transaction per batch in a database (`database`).

Spark's own file sink is exactly once only for readers that know its log; folders named by batch are for all readers.
Each function asks for the rows once: asking twice would compute the batch twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.errors import OptionError
from trendloom.io.write import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Sink = Callable[["DataFrame", int], None]
"""What `foreachBatch` calls with the rows of a batch and its number."""

STREAM_ID = "sql.streaming.queryId"


def to_parquet(folder: str, *, stream: str | None = None) -> Sink:
    """Rows into a folder of Parquet that every reader understands, written by the tasks themselves.

    Each batch is a folder `batch=STREAM-NUMBER`, so readers see a column `batch`. A batch that is done again replaces
    its folder. Between a crash and the next start a reader may see a part of the last batch: it has no `_SUCCESS`.
    """
    return ToParquet(folder, stream)


def to_jsonl(folder: str, *, stream: str | None = None) -> Sink:
    """Rows into a folder with one file of JSON lines per batch, which appears whole or not at all."""
    return ToJsonLines(folder, stream)


def to_call(function: Callable[[pa.Table, int], None]) -> Sink:
    """Rows as an Arrow table to a function of yours; a batch that is done again calls it again."""
    return ToCall(function)


@dataclass(frozen=True)
class ToParquet:
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


@dataclass(frozen=True)
class ToJsonLines:
    """See `to_jsonl`."""

    folder: str
    stream: str | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        folder = Path(self.folder)
        name = batch_name(rows, batch, self.stream)
        table = rows.toArrow()
        if len(table):
            folder.mkdir(parents=True, exist_ok=True)
            write(table, "jsonl", folder / f"{name}.jsonl")


@dataclass(frozen=True)
class ToCall:
    """See `to_call`."""

    function: Callable[[pa.Table, int], None]

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self.function(rows.toArrow(), batch)


def batch_name(rows: DataFrame, batch: int, stream: str | None) -> str:
    """A name that no other batch of any stream has; names of one stream sort by number."""
    return f"{stream or stream_of(rows)[:8]}-{batch:09d}"


def stream_of(rows: DataFrame) -> str:
    """The identity of the stream whose batch this is; it lives in the checkpoint, so it survives restarts.

    A new checkpoint counts its batches from 0 again: without this, its rows would be taken for those of the old one.
    """
    told = None
    if hasattr(rows, "_jdf"):
        told = rows.sparkSession.sparkContext.getLocalProperty(STREAM_ID)
    if told is None:
        raise OptionError(
            "the stream has no name here, so batches of several streams could not be told apart",
            hint='name it: to_parquet(folder, stream="trips"), and give every new checkpoint a new name',
        )
    return told


def _remove_if_empty(folder: Path) -> None:
    """Spark writes a file even where there are no rows; a stream has many such batches."""
    if not any(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet")):
        shutil.rmtree(folder)
