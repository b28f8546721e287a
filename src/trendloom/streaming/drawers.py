"""The states of several queries in the state of one bucket: a drawer for each.

The index of the whole is a table of contents: for every query the number of its drawer and its own index. A chunk has
the number of its drawer and its number there. The whole is called when the first of the queries wants to be.
Cost: as the states one by one; opening and closing reads and writes one table of contents.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from trendloom.streaming.memory import Memory
from trendloom.streaming.state import unpack_index

CHUNKS = 1 << 32
"""Numbers of chunks in a drawer."""


class Drawer:
    """The state of one query; it is whole again once the drawers are closed."""

    def __init__(self, whole: Memory, number: int, content: bytes | None = None) -> None:
        self.whole, self.number, self.content = whole, number, content
        self.wakes: int | None = None
        self.chunks = set() if content is None else {chunk.number for chunk in unpack_index(content).chunks}

    def index(self) -> bytes | None:
        return self.content

    def set_index(self, content: bytes) -> None:
        self.content = content

    def chunk(self, number: int) -> bytes:
        return self.whole.chunk(self._placed(number))

    def set_chunk(self, number: int, content: bytes) -> None:
        self.chunks.add(number)
        self.whole.set_chunk(self._placed(number), content)

    def drop_chunk(self, number: int) -> None:
        self.chunks.remove(number)
        self.whole.drop_chunk(self._placed(number))

    def clear(self) -> None:
        for number in sorted(self.chunks):
            self.drop_chunk(number)
        self.content, self.wakes = None, None

    def wake_at(self, watermark: int) -> None:
        self.wakes = watermark

    def _placed(self, number: int) -> int:
        return self.number * CHUNKS + number


class Drawers:
    """All drawers of a bucket, open between `__init__` and `close`."""

    def __init__(self, whole: Memory) -> None:
        content = whole.index()
        told = {} if content is None else json.loads(content)
        self.whole = whole
        self.drawers = {name: Drawer(whole, number, index.encode()) for name, (number, index) in told.items()}

    def of(self, name: str) -> Drawer:
        """The drawer of a query, a new one if it has none."""
        if name not in self.drawers:
            taken = {drawer.number for drawer in self.drawers.values()}
            free = next(number for number in range(len(taken) + 1) if number not in taken)
            self.drawers[name] = Drawer(self.whole, free)
        return self.drawers[name]

    def keep_only(self, names: Collection[str]) -> None:
        """Clear the drawers of queries that have been removed."""
        for name, drawer in self.drawers.items():
            if name not in names:
                drawer.clear()

    def close(self) -> None:
        """Write the table of contents, and ask for the first call that any query wants."""
        told = {
            name: (drawer.number, drawer.content.decode())
            for name, drawer in self.drawers.items()
            if drawer.content is not None
        }
        if not told:
            self.whole.clear()
            return
        self.whole.set_index(json.dumps(told).encode())
        wakes = [drawer.wakes for drawer in self.drawers.values() if drawer.wakes is not None]
        if wakes:
            self.whole.wake_at(min(wakes))
