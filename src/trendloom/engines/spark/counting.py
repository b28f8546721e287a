"""How many matches the tasks have found so far: an accumulator, looked at while the job runs.

Spark hands on what a task has counted when the task ends. Sessions through Spark Connect have no accumulators.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame

LOOK_EVERY = 0.5
"""Seconds."""


def counter_of(df: DataFrame) -> Accumulator[int] | None:
    """A counter that tasks can add to; None where the session has none."""
    from pyspark.sql import SparkSession

    session = df.sparkSession
    return session.sparkContext.accumulator(0) if type(session) is SparkSession else None


@contextmanager
def counting(counter: Accumulator[int] | None, progress: Callable[[int], None] | None) -> Iterator[None]:
    """Tell `progress` of the counter while the body runs."""
    if counter is None or progress is None:
        yield
        return
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_EVERY):
            if counter.value:
                progress(counter.value)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        progress(counter.value)
