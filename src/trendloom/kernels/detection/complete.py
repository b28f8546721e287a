"""Complete trends by filtering: of all matches of a window and partition, those that no other match contains.

The baseline of Poppe's "Complete Event Trend" chapter: enumerate, then compare. Containment of all pairs is one product
of 0/1 matrices: |m ∩ n| = |m| says that m lies in n. Cost: O(matches² · events) per window and partition.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from trendloom.errors import RunError
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.matches import Matches

Array = np.ndarray[Any, Any]
MOST_MATCHES = 50_000
"""Matches of one window and partition that are compared with each other."""


def only_complete(block: Block, matches: Matches) -> Matches:
    """The complete trends of every window and partition."""
    group = block.key[matches.first]
    if matches.window_start is not None:
        _, window = np.unique(matches.window_start, return_inverse=True)
        group = group * (int(window.max(initial=0)) + 1) + window.reshape(-1)
    return complete_only(matches, group)


def complete_only(matches: Matches, group: Array) -> Matches:
    """The matches whose set of events is no proper subset of another's in the same group."""
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0, True]) if len(order) else np.zeros(1, np.int64)
    kept = [_maximal(matches, order[a:b]) for a, b in pairwise(bounds)]
    rows = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    return matches.take(rows)


def _maximal(matches: Matches, rows: Array) -> Array:
    if len(rows) > MOST_MATCHES:
        raise RunError(
            f"{len(rows)} matches in one window and partition are too many to compare with each other",
            hint="use a smaller window, more partition attributes, or RETURN TRENDS",
        )
    some = matches.take(rows)
    events, of = np.unique(some.events, return_inverse=True)
    holds = np.zeros((len(some), len(events)), np.float32)
    holds[some.match, of.reshape(-1)] = 1
    size = holds.sum(axis=1)
    contained = np.zeros(len(some), np.bool_)
    for begin in range(0, len(some), 1024):
        part = slice(begin, begin + 1024)
        inside = (holds[part] @ holds.T) == size[part, None]
        contained[part] = (inside & (size[None, :] > size[part, None])).any(axis=1)
    return rows[~contained]
