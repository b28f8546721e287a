"""Buffers that trends are written to: small at first, so that whoever wants a few waits for a few; then larger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

FIRST = 1 << 14


class TrendBuffer(NamedTuple):
    """Room for trends: number i is `events[offsets[i]:offsets[i+1]]`."""

    offsets: Array
    events: Array


@dataclass
class Chunks:
    """`most`: entries of the largest buffer."""

    most: int = 1 << 21
    size: int = FIRST

    def next(self, longest: int) -> TrendBuffer:
        """A fresh buffer; one trend of `longest` events fits in any case."""
        size = max(min(self.size, self.most), longest)
        self.size = min(2 * self.size, max(self.most, FIRST))
        return TrendBuffer(np.zeros(size + 1, np.int64), np.empty(size, np.int32))
