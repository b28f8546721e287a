"""What went wrong in a live stream, in our words and with the way out.

Spark tells a failure as a long text with the cause somewhere in it. Here the causes that people meet are recognised;
anything else keeps Spark's own first line.
"""

from __future__ import annotations

import errno
import re

from trendloom.engines.spark.complaints import cause, first_line, said, unwrap
from trendloom.errors import DataError, OptionError, QueryError, RunError, TrendloomError, option

FULL = re.compile(r"No space left on device|disk is full|Disk quota exceeded", re.IGNORECASE)
BROKEN_CHECKPOINT = re.compile(
    r"Incomplete log file|malformed log|Malformed log|Failed to read log file|Log file was malformed"
    r"|BATCH_METADATA_NOT_FOUND|CANNOT_LOAD_STATE_STORE|STATE_STORE_|STATE_SCHEMA|INVALID_LOG_VERSION|MALFORMED_LOG"
    r"|MALFORMED_CHECKPOINT|CHECKPOINT_|StreamMetadata|OperatorStateMetadata|batch \d+ doesn't exist"
    r"|state directory is empty or missing|Error reading delta file"
)
UNREADABLE = re.compile(r"MALFORMED_RECORD_IN_PARSING|Malformed records are detected")
OTHER_TYPE = re.compile(r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|PARQUET_TYPE_ILLEGAL")
GONE = re.compile(r"FILE_NOT_EXIST|FileNotFoundException")
LOST_OFFSETS = re.compile(r"failOnDataLoss|some data may have been lost", re.IGNORECASE)
NO_RECOVERY = re.compile(r"does not support recovering from checkpoint")
ASSERTION = "assertion failed"
"""All that Spark says where its notes in a checkpoint contradict each other, as when files of it are missing."""


def explained(error: BaseException, checkpoint: str) -> TrendloomError:
    """The error in our words."""
    found = unwrap(error) if isinstance(error, Exception) else error
    if isinstance(found, TrendloomError):
        return found
    text = said(error)
    if (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or FULL.search(text):
        return RunError(f"the disk is full: {cause(error)}", hint=f"make room and {_start_again()}")
    if NO_RECOVERY.search(text):
        return OptionError(
            "rows in memory are gone when a stream ends, so it cannot go on from a checkpoint",
            hint=f"give a new {option('checkpoint')}, or a sink that lasts: parquet:FOLDER, jsonl:FOLDER, "
            "sqlite:FILE/TABLE",
        )
    if UNREADABLE.search(text):
        return DataError(
            f"an event cannot be read: {cause(error)}",
            hint=f"correct it where it lies, or give {option('late_to', 'FOLDER')}: such events are then "
            "counted and put there",
        )
    if OTHER_TYPE.search(text):
        return DataError(
            f"a file has a column of another type than the stream: {cause(error)}",
            hint="write it with the types of the other files, or start again if it has times in nanoseconds: "
            "a start finds out about them",
        )
    if BROKEN_CHECKPOINT.search(text) or first_line(text) == ASSERTION:
        return RunError(
            f"the checkpoint {checkpoint} cannot be read: {cause(error)}",
            hint=f"put back a copy of the whole folder, or give a new {option('checkpoint')}, which begins "
            "from the start",
        )
    if LOST_OFFSETS.search(text):
        return DataError(
            f"the source no longer has all events: {cause(error)}",
            hint=f"put them back, or go on without them: {option('option', 'failOnDataLoss=false')}",
        )
    if GONE.search(text):
        return DataError(
            f"a file that the stream was about to read is gone: {cause(error)}",
            hint="put it back; files may be removed once a later batch is done",
        )
    return RunError(f"the stream failed: {cause(error)}", hint=_start_again())


def _start_again() -> str:
    return f"start again with the same {option('checkpoint')}: nothing is lost, and nothing is done twice"


def is_lasting(error: TrendloomError) -> bool:
    """Whether the same would happen again: the query, the options or the events are wrong."""
    return isinstance(error, QueryError | OptionError | DataError) or "checkpoint" in error.message
