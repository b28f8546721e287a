"""Where the parts of an input overlap in time: only there must events of different parts meet before they are reduced.

Every part (a Spark partition, some row groups) covers a closed interval of time. A tick that two parts cover is
*contested*. Contested ticks form intervals; between them every event is ordered by its part alone.
Cost: O(parts · log parts), and O(log parts) per event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array


@dataclass(frozen=True)
class InputPart:
    """A part of the input: its first and last tick, and how many events it has."""

    first: int
    last: int
    events: int


@dataclass(frozen=True)
class Zones:
    """Time as zones 0, 1, 2, ...: the odd ones are the contested intervals `low[i]` to `high[i]`, both included."""

    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()

    def __len__(self) -> int:
        """How many zones there are."""
        return 2 * len(self.low) + 1

    def of(self, ticks: Array) -> Array:
        """The zone of every tick."""
        if not self.low:
            return np.zeros(len(ticks), np.int64)
        before = np.searchsorted(np.array(self.low, np.int64), ticks, side="right")
        inside = (before > 0) & (ticks <= np.array(self.high, np.int64)[before - 1])
        return np.asarray(2 * before - inside)

    def share(self, parts: Iterable[InputPart]) -> float:
        """About how much of the events is contested, as if each part had its events evenly spread."""
        contested = whole = 0.0
        for part in parts:
            length = part.last - part.first + 1
            shared = sum(
                max(0, min(part.last, high) - max(part.first, low) + 1)
                for low, high in zip(self.low, self.high, strict=True)
            )
            contested += part.events * (shared / length)
            whole += part.events
        return contested / whole if whole else 0.0


def contested(parts: Iterable[InputPart]) -> Zones:
    """The zones of some parts. A part is contested where it begins before all parts that began earlier have ended."""
    low: list[int] = []
    high: list[int] = []
    covered: int | None = None
    for part in sorted(parts, key=lambda one: (one.first, one.last)):
        if covered is not None and part.first <= covered:
            end = min(part.last, covered)
            if high and part.first <= high[-1] + 1:
                high[-1] = max(high[-1], end)
            else:
                low.append(part.first)
                high.append(end)
        covered = part.last if covered is None else max(covered, part.last)
    return Zones(tuple(low), tuple(high))
