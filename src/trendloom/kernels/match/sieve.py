"""Discard events that a false-value consistent condition can never let through, before any partial match is built.

`b[i].x < max(b[..i-1].x)` is false against some events before if it is false against all that could be there: a match
binds a subset of them. It says that some earlier b is greater, so the greatest candidate so far decides for all matches
at once. See Zhang, "High-Performance Complex Event Processing for Decision Analytics", ch. 4, on early filters.

Cost: O(events) per sieve.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.comparable import comparable

Array = np.ndarray[Any, Any]


def sifted(machine: Machine, block: Block) -> dict[int, Array]:
    """For every step that a sieve speaks of, which events it may bind."""
    passed: dict[int, Array] = {}
    for sieve in machine.spec.sieves:
        (left,), (right,), known = comparable((sieve.pair,), block)
        candidate = np.zeros(len(block), np.bool_)
        for position in sieve.positions:
            candidate[block.members[position]] = True
        # x → ~x turns the order around: the earlier event must always be the greater one
        left, right = (~left, ~right) if sieve.pair.operator in ("<", "<=") else (left, right)
        or_equal = sieve.pair.operator in ("<=", ">=")
        good = _some_greater_before(left, right, candidate & known[0, 0], block.tie_start, block.key_starts, or_equal)
        good &= known[1, 0]
        for _, step in sieve.pair.steps:
            passed[step] = passed[step] & good if step in passed else good
    return passed


@njit(nogil=True)
def _some_greater_before(
    left: Array, right: Array, candidate: Array, tie_start: Array, key_starts: Array, or_equal: bool
) -> Array:
    found = np.zeros(len(left), np.bool_)
    for key in range(len(key_starts) - 1):
        any_before, greatest, seen = False, np.int64(0), key_starts[key]
        for f in range(key_starts[key], key_starts[key + 1]):
            while seen < tie_start[f]:
                if candidate[seen] and (not any_before or left[seen] > greatest):
                    any_before, greatest = True, left[seen]
                seen += 1
            found[f] = any_before and (greatest > right[f] or (or_equal and greatest == right[f]))
    return found
