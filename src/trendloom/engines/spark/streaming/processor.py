"""The stateful operator as Spark calls it: which state there is, and what steps it.

Before a stream starts, Spark runs a Python process of its own to list the state of the operator. `Stepping` is packed,
and unpacked by tasks alone, so that this process loads neither kernels nor plans: a second less for every start. It is
compressed, too: more than a megabyte Spark would broadcast, which that process does not receive.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from trendloom.engines.spark.errors import ERROR

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

    from trendloom.engines.spark.streaming.stepping import Stepping

STATE = "trendloom"
OUTPUT = f"query string, route int, payload binary, kept long, late long, untimed long, {ERROR} string"


class Processor(StatefulProcessor):
    """Keeps an index and chunks of bytes for every query and bucket."""

    def __init__(self, stepping: Stepping) -> None:
        self.packed = zlib.compress(pickle.dumps(stepping))

    @cached_property
    def stepping(self) -> Stepping:
        found: Stepping = pickle.loads(zlib.decompress(self.packed))
        return found

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.indexes = handle.getValueState(f"{STATE}_index", "content binary")
        self.chunks = handle.getMapState(f"{STATE}_chunks", "number long", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        yield from self.stepping.rows(self, key, [bytes(row["payload"]) for row in rows], timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        yield from self.stepping.rows(self, key, [], timerValues)

    def close(self) -> None:
        pass
