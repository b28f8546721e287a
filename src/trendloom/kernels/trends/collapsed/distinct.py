"""Number rows of integers: equal rows get equal numbers. O(rows · columns · log rows)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FAR = 2**62


def packed(columns: Sequence[Array]) -> Array:
    """One integer per row that is equal, and sorts, as the row does. Columns hold no negative numbers."""
    code = columns[0].astype(np.int64)
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if (int(code.max(initial=0)) + 1) * width >= FAR:
            code = np.unique(code, return_inverse=True)[1].reshape(-1)
        code = code * width + column
    return code


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """For every different row the first place where it stands, and for every row its number; they sort as rows do."""
    _, first, number = np.unique(packed(columns), return_index=True, return_inverse=True)
    return first, number.reshape(-1)
