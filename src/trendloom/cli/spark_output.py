"""What Spark itself prints: into a log, or nowhere, so that standard error is ours.

Java and Spark's workers inherit standard error when they start and keep it, so it is exchanged for just as long as
Spark starts. Errors of Spark's reach us as exceptions, and are shown in our words.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def spark_prints_into(log: str | None, *, debug: bool) -> Iterator[None]:
    """Start Spark in this block: all it ever prints goes to the log; without one nowhere, or here if `debug`."""
    if debug and log is None:
        yield
        return
    # The link to Spark logs a traceback for every failure, which is shown in our words anyway.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    sys.stderr.flush()
    ours = os.dup(2)
    theirs = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(theirs, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, 2)
        os.close(theirs)
        os.close(ours)
