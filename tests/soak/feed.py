"""A steady stream of events, as files that appear at the pace of the clock.

Keys come and fall silent for ever, events are a little out of order, and a few are so late that they are late however
files are cut into batches: their value is negative.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.streams import DELAY, SCHEMA, event, write_batch

SECONDS = 2
"""How much time a file covers."""
FIRST = 1000
PACE = 5
"""Seconds between two events of a key, on average: events of one key at one time multiply matches."""
LATE_AFTER = 40
"""No file before this one has late events: the first batches have no watermark yet."""
BEHIND = 300


@dataclass
class Feed:
    """Writes files in a thread, until it is asked to stop."""

    folder: Path
    rate: int
    seed: int
    written: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.thread = threading.Thread(target=self._write_on_time, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Write no more than an event that moves the clock past everything."""
        self.stopping.set()
        self.thread.join()
        write_batch(self.folder, self.written, pa.Table.from_pylist([event("Z", 10**7, 0, 0)], SCHEMA))

    def _write_on_time(self) -> None:
        begin = time.monotonic()
        while not self.stopping.wait(max(begin + self.written * SECONDS - time.monotonic(), 0)):
            write_batch(self.folder, self.written, self._events(self.written))
            self.written += 1

    def _events(self, number: int) -> pa.Table:
        draw = random.Random(self.seed * 10**6 + number)
        count, start = self.rate * SECONDS, FIRST + number * SECONDS
        times = [start + draw.randrange(SECONDS) - draw.randrange(DELAY // 2) for _ in range(count)]
        alive = self.rate * PACE
        oldest = start // 60 * (alive // 4)  # a quarter of the keys is new every minute
        keys = [oldest + draw.randrange(alive) for _ in range(count)]
        values = [draw.randrange(9) for _ in range(count)]
        if number >= LATE_AFTER:
            times[0], values[0] = times[0] - BEHIND, -1
        kinds = draw.choices("ABC", k=count)
        return pa.table([kinds, times, keys, values], schema=SCHEMA)

    def events(self) -> tuple[pa.Table, pa.Table]:
        """All events that were on time, and all that were late."""
        whole = pa.concat_tables([pq.read_table(path) for path in sorted(self.folder.glob("*.parquet"))])
        late = [value < 0 for value in whole["x"].to_pylist()]
        return whole.filter(pa.array([not one for one in late])), whole.filter(pa.array(late))
