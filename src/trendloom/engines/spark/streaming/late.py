"""Events that came after the watermark had passed them: counted, and written to a side table if there is one.

A task writes them itself, into a file that is named by batch, query and bucket: a batch that is done again writes the
same file again, so every late event is in the table once.
"""

from __future__ import annotations

import hashlib
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.errors import DataError, option
from trendloom.io.places import place


def refuse_untimed(count: int, late_to: str | None) -> None:
    """Events without a time belong nowhere: without a side table to put them in, the stream stops."""
    if count and late_to is None:
        raise DataError(
            f"{count} events have no time", hint=f"give {option('late_to', 'FOLDER')}: they are put there, and counted"
        )


def write_late(events: pa.Table, late_to: str | None, query: str, bucket: int) -> None:
    """Put late events into the side table: a folder of Parquet files."""
    if late_to is None:
        return
    system, folder = place(late_to)
    system.create_dir(folder, recursive=True)
    name = f"{folder}/{_batch():09d}-{hashlib.sha256(query.encode()).hexdigest()[:8]}-{bucket:05d}"
    if query:
        events = events.append_column("query", pa.array([query] * len(events), pa.string()))
    unfinished = f"{folder}/.{uuid.uuid4().hex}"
    with system.open_output_stream(unfinished) as sink:
        pq.write_table(events, sink)
    system.move(unfinished, f"{name}.parquet")


def _batch() -> int:
    """The number of the micro-batch that this task belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    told = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    return int(told) if told is not None else 0
