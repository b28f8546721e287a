"""Where result rows go, one module per kind: functions for Spark's `foreachBatch`, which may repeat a batch.

Spark repeats a batch when it stopped before the batch was marked as done. Rows of a batch therefore go to a place that
carries the number of the batch and the identity of the stream, and a repeated batch replaces what is there: a folder
per batch of Parquet, a file per batch of JSON lines, a transaction per batch in a database.

A writer collects the rows once: twice would compute the batch twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from trendloom.errors import OptionError
from trendloom.streaming.connectors import Registry, Sink, any_of, check_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchWriter: TypeAlias = "Callable[[DataFrame, int], None]"
"""What `foreachBatch` calls with the rows of a batch and its number."""
SINKS: Registry[type[Sink]] = Registry("sink", __name__)
STREAM_ID = "sql.streaming.queryId"


def parse_sink(text: str) -> Sink:
    """The sink of a text such as `parquet:FOLDER` or `sqlite:FILE/TABLE`; refuses what cannot be written."""
    scheme, colon, place = text.partition(":")
    found = SINKS.find(scheme, hint=None if colon else f"give {SINKS.forms()}")
    if not place and ":" in found.form:
        raise OptionError(f"the sink {scheme} needs a place", hint=f"give {SINKS.forms()}")
    sink = found(place)
    sink.check()
    return sink


def lasting_forms() -> str:
    """How to write the sinks whose rows outlive the process."""
    return any_of([one.form for one in SINKS.classes().values() if not one.in_memory])


def batch_name(rows: DataFrame, batch: int, stream: str | None) -> str:
    """A name that no other batch of any stream has; names of one stream sort by number."""
    return f"{stream or stream_of(rows)[:8]}-{batch:09d}"


def stream_of(rows: DataFrame) -> str:
    """The identity of the stream whose batch this is; it lives in the checkpoint, so it survives restarts.

    A new checkpoint counts its batches from 0 again: without this, its rows would be taken for those of the old one.
    """
    stream = None
    if hasattr(rows, "_jdf"):
        stream = rows.sparkSession.sparkContext.getLocalProperty(STREAM_ID)
    if stream is None:
        raise OptionError(
            "the stream has no name here, so batches of several streams could not be told apart",
            hint='name it: to_parquet(folder, stream="trips"), and give every new checkpoint a new name',
        )
    return stream


@dataclass(frozen=True)
class RowSink:
    """What sinks of this package have in common."""

    scheme: ClassVar[str]
    form: ClassVar[str]
    exactly_once: ClassVar[str]
    help: ClassVar[str] = ""
    on_console: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    place: str


class FolderSink(RowSink):
    """A folder with a file or a folder for each batch."""

    def check(self) -> None:
        check_folder(self.place, "the folder of rows")
