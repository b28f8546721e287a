"""Windows and matches: how far a match may reach, and which windows hold it.

A window's result depends only on its own events, and whether an event extends a partial match depends only on events
up to it. So matches are found once, bounded by the *horizon* of their first event (the end of the last window that
starts before it), and then handed to every window that holds them whole. Only leading and trailing NOTs look at the
window itself; they are decided per window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, numbers_of_windows, windows_of
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.partial_matches import Paths
from trendloom.model.time import Window

ROWS = 1 << 16
"""Complete matches whose windows are computed at a time."""


def windowed(found: Iterable[Matches], block: Block, window: Window, most: int) -> Iterator[Matches]:
    """Matches in the windows that hold them, those of no window left out; in parts of `most` entries."""
    for matches in found:
        if not len(matches):
            continue
        if window.slide is None:
            yield matches
            continue
        low, count = numbers_of_windows(block.time[matches.first], block.time[matches.last], window)
        yield from in_each_window(matches, low, count, window.slide, most)


def in_each_window(found: Matches, low: Array, count: Array, slide: int, most: int) -> Iterator[Matches]:
    """Matches once per window that they belong to: `count` windows from number `low` on; in parts of `most` entries."""
    lengths, count = np.diff(found.offsets), np.maximum(count, 0)
    if (count == 1).all():
        yield replace(found, window_start=low * slide)
        return
    size = np.cumsum(count * lengths)
    begin = 0
    while begin < len(found):
        done = size[begin - 1] if begin else 0
        end = max(int(np.searchsorted(size, done + most, side="right")), begin + 1)
        some = slice(begin, end)
        which = np.repeat(np.arange(begin, end), count[some])
        nth = np.arange(len(which)) - np.repeat(np.cumsum(count[some]) - count[some], count[some])
        if len(which):
            yield replace(found.take(which), window_start=(low[which] + nth) * slide)
        begin = end


def surroundings(block: Block, first: Array, last: Array, start: Array | None, window: Window) -> tuple[Array, Array]:
    """Indices [low, high) of the events that leading and trailing NOTs of a match look at."""
    key = block.key[first]
    low, high = block.key_starts[key], block.key_starts[key + 1]
    if window.within is None:
        return low, high
    if start is None:
        return (
            block.not_before(key, block.time[last] - window.within + 1),
            block.not_before(key, block.time[first] + window.within),
        )
    return block.not_before(key, start), block.not_before(key, start + window.within)


def in_windows(gaps: Gaps, paths: Paths) -> Iterator[tuple[Paths, Array | None]]:
    """Complete matches per window that holds them, where leading and trailing NOTs agree; with the windows' starts."""
    spec = gaps.spec
    for begin in range(0, len(paths), ROWS):
        some = paths.take(np.arange(begin, min(begin + ROWS, len(paths))))
        start = None
        if spec.window.sliding:
            time = some.block.time
            which, start = windows_of(time[some.events[:, 0]], time[some.events[:, -1]], spec.window)
            some = some.take(which)
        if spec.scopes[0].open_ended:
            low, high = surroundings(some.block, some.events[:, 0], some.events[:, -1], start, spec.window)
            numbered = Paths(gaps.automaton, some.block, 0, 0, some.events, some.steps, np.arange(len(some)), {})
            kept = gaps.enclosed(numbered, low, high)
            some, start = kept, None if start is None else start[kept.root]
        yield some, start


def matches_of(paths: Paths, start: Array | None) -> Matches:
    """Matches of equal length as flat arrays."""
    rows, length = paths.events.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    positions = paths.automaton.position_of[paths.steps].astype(np.int32)
    return Matches(offsets, paths.events.reshape(-1), positions.reshape(-1), start)
