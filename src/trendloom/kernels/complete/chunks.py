"""Buffers that trends are written to: small at first, so that whoever wants a few waits for a few; then larger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FIRST = 1 << 14


@dataclass
class Chunks:
    """`most`: entries of the largest buffer."""

    most: int = 1 << 21
    size: int = FIRST

    def next(self, longest: int) -> tuple[Array, Array]:
        """Fresh arrays for offsets and events; one trend of `longest` events fits in any case."""
        size = max(min(self.size, self.most), longest)
        self.size = min(2 * self.size, max(self.most, FIRST))
        return np.zeros(size + 1, np.int64), np.empty(size, np.int32)
