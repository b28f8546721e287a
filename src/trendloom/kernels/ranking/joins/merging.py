"""Merge functions: one score of the scores of the components, monotone in each of them.

Floating-point sums are added in the order of the components, in results and in bounds alike. Rounding never turns
a smaller sum into a greater one, so a bound of rounded sums holds for rounded scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit

MergeName = Literal["sum", "avg", "min", "max"]
MERGES: tuple[MergeName, ...] = ("sum", "avg", "min", "max")
SUM, AVG, MIN, MAX = range(len(MERGES))


def merged_score(merge: int, parts: Sequence[Any]) -> Any:
    """The merged score of one score, as a number of Python, for each component."""
    if merge in (MIN, MAX):
        return min(parts) if merge == MIN else max(parts)
    found = parts[0]
    for part in parts[1:]:
        found += part
    return found / len(parts) if merge == AVG else found


def merged(merge: int, parts: Sequence[Any]) -> Any:
    """The merged scores of columns, one for each component."""
    found = parts[0]
    for part in parts[1:]:
        if merge in (SUM, AVG):
            found = found + part
        else:
            found = np.minimum(found, part) if merge == MIN else np.maximum(found, part)
    return found / len(parts) if merge == AVG else found


def score_type(merge: int, types: Sequence[Any]) -> Any:
    """Scores are exact integers where all parts are and nothing divides them."""
    exact = merge != AVG and all(np.issubdtype(type_, np.integer) for type_ in types)
    return np.int64 if exact else np.float64


def worst_sum(mean: Any, parts: int) -> Any:
    """A sum that no sum exceeds whose rounded mean is at most this one: their product, and what rounding may add."""
    product = mean * parts
    return product + 4 * np.spacing(np.abs(product))


@njit(**INSIDE)
def merged_one(merge: int, parts: Array) -> Any:
    """As `merged`, of one score for each component; where the mean is asked for it gives the sum."""
    found = parts[0]
    for number in range(1, len(parts)):
        if merge in (SUM, AVG):
            found += parts[number]
        elif merge == MIN:
            found = min(found, parts[number])
        else:
            found = max(found, parts[number])
    return found
