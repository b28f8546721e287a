"""Where state is kept: a small interface that Spark's state store fits, and one in this process for trials."""

from __future__ import annotations

from typing import Protocol


class Memory(Protocol):
    """The state of one query in one bucket."""

    def index(self) -> bytes | None: ...

    def set_index(self, content: bytes) -> None: ...

    def chunk(self, number: int) -> bytes: ...

    def set_chunk(self, number: int, content: bytes) -> None: ...

    def drop_chunk(self, number: int) -> None: ...

    def clear(self) -> None:
        """Forget everything, the wake-up call too."""
        ...

    def wake_at(self, watermark: int) -> None:
        """Ask for a step when the watermark has come so far, even if nothing arrives."""
        ...


class Kept:
    """State in this process."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.chunks: dict[int, bytes] = {}
        self.wakes: int | None = None

    def index(self) -> bytes | None:
        return self.head

    def set_index(self, content: bytes) -> None:
        self.head = content

    def chunk(self, number: int) -> bytes:
        return self.chunks[number]

    def set_chunk(self, number: int, content: bytes) -> None:
        self.chunks[number] = content

    def drop_chunk(self, number: int) -> None:
        del self.chunks[number]

    def clear(self) -> None:
        self.head, self.wakes = None, None
        self.chunks.clear()

    def wake_at(self, watermark: int) -> None:
        self.wakes = watermark
