"""Complete trends by filtering: of all matches of a window and partition, those that no other match contains.

The baseline of Poppe's "Complete Event Trend" chapter: enumerate, then compare. Containment of all pairs is one product
of 0/1 matrices: |m ∩ n| = |m| says that m lies in n. Cost: O(matches² · events) per window and partition, so there is a
limit to matches; once it is passed no more are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from trendloom.errors import RunError
from trendloom.kernels.columns.block import Block
from trendloom.kernels.ground.matches import Matches, join

Array = np.ndarray[Any, Any]
MOST_MATCHES = 50_000
"""Matches of one window and partition that are compared with each other."""


def only_complete(block: Block, found: Iterator[Matches]) -> Matches:
    """The complete trends of every window and partition."""
    chunks: list[Matches] = []
    count, looked_at = 0, MOST_MATCHES
    for chunk in found:
        chunks.append(chunk)
        count += len(chunk)
        if count > looked_at:
            chunks = [join(chunks)]
            _refuse_too_many(int(np.bincount(_groups(block, chunks[0])).max()), whole=False)
            looked_at = 2 * count
    matches = join(chunks)
    return complete_only(matches, _groups(block, matches))


def _groups(block: Block, matches: Matches) -> Array:
    """The window and partition of every match, numbered."""
    group = block.key[matches.first]
    if matches.window_start is None:
        return group
    _, window = np.unique(matches.window_start, return_inverse=True)
    numbered = group * (int(window.max(initial=0)) + 1) + window.reshape(-1)
    return np.unique(numbered, return_inverse=True)[1].reshape(-1)


def _refuse_too_many(matches: int, *, whole: bool = True) -> None:
    if matches > MOST_MATCHES:
        raise too_many_to_compare(f"{matches:,}" if whole else f"more than {MOST_MATCHES:,}")


def too_many_to_compare(number: str) -> RunError:
    """The refusal to compare so many matches of one window and partition."""
    return RunError(
        f"{number} matches in one window and partition are too many to compare with each other",
        hint="use a smaller window, more partition attributes, or RETURN TRENDS",
    )


def complete_only(matches: Matches, group: Array) -> Matches:
    """The matches whose set of events is no proper subset of another's in the same group."""
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0, True]) if len(order) else np.zeros(1, np.int64)
    kept = [_maximal(matches, order[a:b]) for a, b in pairwise(bounds)]
    rows = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    return matches.take(rows)


def _maximal(matches: Matches, rows: Array) -> Array:
    _refuse_too_many(len(rows))
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
