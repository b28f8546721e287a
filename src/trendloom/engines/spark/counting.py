"""What tasks count for the driver: the matches they have found, looked at while the job runs, and events of equal time.

Spark hands on what a task has counted when the task ends; a task that failed and was tried again may count twice.
Sessions through Spark Connect have no accumulators.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trendloom.runtime.equal_times import Ties

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


@dataclass(frozen=True)
class TiesCounter:
    """Events of equal time, over all tasks."""

    events: Accumulator[int]
    tied: Accumulator[int]

    def __call__(self, found: Ties) -> None:
        self.events.add(found.events)
        self.tied.add(found.tied)

    @property
    def ties(self) -> Ties:
        return Ties(self.events.value, self.tied.value)


def ties_counter(df: DataFrame) -> TiesCounter | None:
    """A counter of events of equal time; None where the session has none."""
    events, tied = counter_of(df), counter_of(df)
    return None if events is None or tied is None else TiesCounter(events, tied)


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
