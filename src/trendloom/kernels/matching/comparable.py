"""Both sides of comparisons of consecutive events as int64 columns whose order and equality are those of the values.

See `sides` for how values become such columns; a NOT that depends on one event next to it is two columns, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.comparisons import sides_of
from trendloom.kernels.matching.gap_thresholds import borders
from trendloom.kernels.matching.spec import Compared, EmptyGap

Array = np.ndarray[Any, Any]


def comparable(pairs: tuple[Compared, ...], block: Block) -> tuple[Array, Array, Array]:
    """Left and right columns of every pair, and where each is known: [pair, event] and [side, pair, event]."""
    size = (len(pairs), len(block))
    left, right = np.zeros(size, np.int64), np.zeros(size, np.int64)
    known = np.ones((2, *size), np.bool_)
    for number, pair in enumerate(pairs):
        if isinstance(pair, EmptyGap):
            left[number], right[number] = borders(pair.absence, block)
            continue
        sides = sides_of(pair.left, pair.right, block)
        left[number], right[number] = sides[0].values, sides[1].values
        for side, vector in enumerate(sides):
            if vector.valid is not None:
                known[side, number] = vector.valid
    return left, right, known
