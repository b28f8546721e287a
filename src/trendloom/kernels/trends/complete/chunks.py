"""Buffers that trends are written to: small at first, so that whoever wants a few waits for a few; then larger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.matching.first_chunk import first_chunk

Array = np.ndarray[Any, Any]


class TrendBuffer(NamedTuple):
    """Room for trends: number i is `events[offsets[i]:offsets[i+1]]`."""

    offsets: Array
    events: Array


@dataclass
class Chunks:
    """`most`: entries of the largest buffer, `size`: of the last one."""

    most: int = 1 << 21
    size: int = 0

    def next(self, longest: int) -> TrendBuffer:
        """A fresh buffer; one trend of `longest` events fits in any case."""
        self.size = min(2 * self.size, self.most) if self.size else first_chunk(longest, self.most)
        size = max(self.size, longest)
        return TrendBuffer(np.zeros(size + 1, np.int64), np.empty(size, np.int32))
