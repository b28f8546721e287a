"""Errors of ours on their way from a task to whoever asked for rows: plain text, and an error again where we catch it.

What a task raises, PySpark shows as a traceback of the worker. So a task does not raise: it gives out a row that holds
the text of the error, and Spark itself raises that text (`raise_error`), message first and nothing else. `unwrap` makes
the error of the text again, wherever Spark has put it. Cost: one more column of NULLs, dropped at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trendloom import errors
from trendloom.errors import RunError, TrendloomError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COMPLAINT = "_trendloom_complaint"
"""The column of a task's results that holds the text of an error; NULL: all is well."""

_TOLD = re.compile(
    r"trendloom\.errors\.(?P<kind>\w+): (?P<message>.*?)(?:\nhint: (?P<hint>[^\n]*?))?"
    r"(?:\s*SQLSTATE: \w{5}|\s*JVM stacktrace:|\n\s*at |\n===|\s*$)",
    flags=re.DOTALL,
)


def complaint(error: TrendloomError) -> str:
    """The text of an error, as Python itself would print it; what Spark adds begins on a line of its own."""
    return f"{errors.__name__}.{type(error).__name__}: {error}\n"


def unwrap(error: Exception) -> Exception:
    """The error that a task complained of, out of what Spark made of it; any other error as it is."""
    told = _TOLD.search(str(error))
    if told is None:
        return error
    known = getattr(errors, told["kind"], RunError)
    found: Exception = known(told["message"], hint=told["hint"])
    return found


def heeded(df: DataFrame) -> DataFrame:
    """The rows without the column of complaints; the first complaint ends the action that asks for rows."""
    from pyspark.sql import functions as F

    return df.filter(F.coalesce(raised(F.col(COMPLAINT)), F.lit(True))).drop(COMPLAINT)


def raised(text: Column) -> Column:
    """NULL as long as the text is; else Spark raises it."""
    from pyspark.sql import functions as F

    return F.when(text.isNotNull(), F.raise_error(text).cast("boolean"))


# ------------------------------------------------------------------------------------------ what Spark says

PLAN = "=== Streaming Query ==="
STACK = "JVM stacktrace:"


@contextmanager
def in_our_words() -> Iterator[None]:
    """Ask Spark for rows in this block: what fails there is an error of ours, with no Java in it."""
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
    """What Spark says, without the plan of the query, in which anything may be written."""
    message, _, rest = str(error).partition(PLAN)
    return message + rest.partition(STACK)[2]


def cause(error: object) -> str:
    """The line of a long message that says most: the last cause in it."""
    text = (said(error) if isinstance(error, BaseException) else str(error)).strip()
    causes = re.findall(r"^(?:: |Caused by: )?(?:[\w$.]+\.)?(\w*(?:Exception|Error)): (.+)$", text, flags=re.MULTILINE)
    if causes:
        return first_line(causes[-1][1]).strip()
    return first_line(text) or type(error).__name__
