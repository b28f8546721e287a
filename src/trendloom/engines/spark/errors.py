"""Errors on Spark: how ours leave a task, and what Spark's own mean, in our words.

What a task raises, PySpark shows as a traceback of the worker. So a task does not raise: it gives out a row that holds
the text of the error, and Spark itself raises that text (`raise_error`), message first and nothing else. `unwrap` makes
the error of the text again, wherever Spark has put it. Cost: one more column of NULLs, dropped at once.

Spark names most failures of a live stream: by an error condition, which its exceptions have as an attribute, or by the
Java class that was thrown. These decide. A cause that comes as text alone (from a task, or from a server) begins with
the same names. What is left for words (`*_WORDS`) has no name in Spark, or a number that its next version may change.
Anything else keeps Spark's own first line.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trendloom import errors
from trendloom.errors import DataError, OptionError, QueryError, RunError, StateError, TrendloomError, option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERROR = "_trendloom_error"
"""The column of a task's results that holds the text of an error; NULL: all is well."""
WHOLE_MICROSECONDS = "round the times to microseconds first, or give whole numbers"
"""The hint of errors about times in nanoseconds."""
_ERROR_TEXT = re.compile(
    r"trendloom\.errors\.(?P<kind>\w+): (?P<message>.*?)(?:\nhint: (?P<hint>[^\n]*?))?"
    r"(?:\s*SQLSTATE: \w{5}|\s*JVM stacktrace:|\n\s*at |\n===|\s*$)",
    flags=re.DOTALL,
)
PLAN = "=== Streaming Query ==="
STACK = "JVM stacktrace:"


def error_text(error: TrendloomError) -> str:
    """The text of an error, as Python itself would print it; what Spark adds begins on a line of its own."""
    return f"{errors.__name__}.{type(error).__name__}: {error}\n"


def unwrap(error: Exception) -> Exception:
    """The error of a task, out of what Spark made of it; any other error as it is."""
    found = _ERROR_TEXT.search(str(error))
    if found is None:
        return error
    kind: type[TrendloomError] = getattr(errors, found["kind"], RunError)
    return kind(found["message"], hint=found["hint"])


def raise_errors(df: DataFrame) -> DataFrame:
    """The rows without the column of errors; the first error fails the action that computes rows."""
    from pyspark.sql import functions as F

    text = F.col(ERROR)
    failing = F.when(text.isNotNull(), F.raise_error(text).cast("boolean"))
    return df.filter(F.coalesce(failing, F.lit(True))).drop(ERROR)


@contextmanager
def in_our_words() -> Iterator[None]:
    """A block in which Spark computes rows: its failures become errors of ours, with no Java in them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = unwrap(error)
        if isinstance(found, TrendloomError):
            raise found from error
        raise RunError(f"Spark could not do it: {cause(error)}") from error


def first_line(error: object) -> str:
    """The first line of a message, without the class that Spark puts in front."""
    text = str(error).strip().partition("\n")[0]
    return re.sub(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w{5}$", "", text)


def said(error: BaseException) -> str:
    """The text of Spark's error, without the plan of the query, in which anything may be written."""
    message, _, rest = str(error).partition(PLAN)
    return message + rest.partition(STACK)[2]


def cause(error: object) -> str:
    """The most specific line of a long message: the last cause in it."""
    text = (said(error) if isinstance(error, BaseException) else str(error)).strip()
    causes = re.findall(r"^(?:: |Caused by: )?(?:[\w$.]+\.)?(\w*(?:Exception|Error)): (.+)$", text, flags=re.MULTILINE)
    if causes:
        return first_line(causes[-1][1]).strip()
    return first_line(text) or type(error).__name__


# ------------------------------------------------------------------------------------------------------- a live stream


BROKEN_CHECKPOINT = (
    "BATCH_METADATA_NOT_FOUND",
    "CANNOT_LOAD_STATE_STORE",
    "CHECKPOINT_",
    "INVALID_LOG_VERSION",
    "MALFORMED_CHECKPOINT",
    "MALFORMED_LOG",
    "STATE_SCHEMA",
    "STATE_STORE_",
    "STREAMING_CHECKPOINT_MISSING",
    "STREAMING_STATEFUL_OPERATOR_",
)
"""Beginnings of conditions."""
UNREADABLE = ("MALFORMED_RECORD_IN_PARSING",)
OTHER_TYPE = ("FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH", "PARQUET_TYPE_ILLEGAL")
GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST",)
LOST_OFFSETS = ("KAFKA_DATA_LOSS",)
NO_SUCH_FILE = "java.io.FileNotFoundException"
FULL_WORDS = re.compile(r"No space left on device|disk is full|Disk quota exceeded", re.IGNORECASE)
"""Java and SQLite report a full disk by these words alone; an error of Python has a number."""
BROKEN_CHECKPOINT_WORDS = re.compile(
    r"Incomplete log file|Failed to read log file|StreamMetadata|OperatorStateMetadata|batch \d+ doesn't exist"
    r"|Error reading delta file"
)
"""Plain `IllegalStateException` and `IOException`, and what the reader of a note of Spark's stumbles over."""
LOST_OFFSETS_WORDS = re.compile(r"failOnDataLoss|some data may have been lost", re.IGNORECASE)
"""Sources besides Kafka that have this option raise what they like."""
NO_RECOVERY_WORDS = re.compile(r"does not support recovering from checkpoint")
"""An `AnalysisException` whose condition is a number that is going to be replaced by a name."""
ASSERTION = "assertion failed"
"""Spark's whole message where its notes in a checkpoint contradict each other, as when files of it are missing."""
CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)?)\]")
THROWN = re.compile(r"(?:^|: |Caused by: )((?:\w+\.){2,}\w*(?:Exception|Error))\b", re.MULTILINE)


@dataclass(frozen=True)
class _FailureNames:
    """What Spark calls a failure and its causes."""

    conditions: frozenset[str]
    classes: frozenset[str]

    def begin_with(self, beginnings: tuple[str, ...]) -> bool:
        return any(condition.startswith(beginnings) for condition in self.conditions)


def _names_of(error: BaseException) -> _FailureNames:
    conditions, classes = set[str](), set[str]()
    for one in _with_causes(error):
        text = said(one)
        conditions |= {_condition_of(one), *CONDITION.findall(text)}
        classes |= set(THROWN.findall(text))
    return _FailureNames(frozenset(conditions), frozenset(classes))


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, of which PySpark has its own."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = getattr(found, "_cause", None) or found.__cause__


def _condition_of(error: BaseException) -> str:
    from pyspark.errors import PySparkException

    return (error.getCondition() if isinstance(error, PySparkException) else None) or ""


def explained(error: BaseException, checkpoint: str) -> TrendloomError:
    """The error in our words."""
    found = unwrap(error) if isinstance(error, Exception) else error
    if isinstance(found, TrendloomError):
        return found
    text, names = said(error), _names_of(error)
    if (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or FULL_WORDS.search(text):
        return RunError(f"the disk is full: {cause(error)}", hint=f"make room and {_start_again()}")
    if NO_RECOVERY_WORDS.search(text):
        return OptionError(
            "rows in memory are gone when a stream ends, so it cannot go on from a checkpoint",
            hint=f"give a new {option('checkpoint')}, or a sink that lasts: parquet:FOLDER, jsonl:FOLDER, "
            "sqlite:FILE/TABLE",
        )
    if names.begin_with(UNREADABLE):
        return DataError(
            f"an event cannot be read: {cause(error)}",
            hint=f"correct it where it lies, or give {option('late_to', 'FOLDER')}: such events are then "
            "counted and put there",
        )
    if names.begin_with(OTHER_TYPE):
        return DataError(
            f"a file has a column of another type than the stream: {cause(error)}",
            hint="write it with the types of the other files, or start again if it has times in nanoseconds: "
            "a start finds out about them",
        )
    if names.begin_with(BROKEN_CHECKPOINT) or BROKEN_CHECKPOINT_WORDS.search(text) or first_line(text) == ASSERTION:
        return StateError(
            f"the checkpoint {checkpoint} cannot be read: {cause(error)}",
            hint=f"put back a copy of the whole folder, or give a new {option('checkpoint')}, which begins "
            "from the start",
        )
    if names.begin_with(LOST_OFFSETS) or LOST_OFFSETS_WORDS.search(text):
        return DataError(
            f"the source no longer has all events: {cause(error)}",
            hint=f"put them back, or go on without them: {option('option', 'failOnDataLoss=false')}",
        )
    if names.begin_with(GONE) or NO_SUCH_FILE in names.classes:
        return DataError(
            f"a file that the stream was about to read is gone: {cause(error)}",
            hint="put it back; files may be removed once a later batch is done",
        )
    return RunError(f"the stream failed: {cause(error)}", hint=_start_again())


def _start_again() -> str:
    return f"start again with the same {option('checkpoint')}: nothing is lost, and nothing is done twice"


def is_lasting(error: TrendloomError) -> bool:
    """Whether the same would happen again: the query, the options, the events or the stored state are wrong."""
    return isinstance(error, QueryError | OptionError | DataError | StateError)
