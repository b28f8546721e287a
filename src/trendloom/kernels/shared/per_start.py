"""Segments that several queries have in the middle of their patterns: counted once, for each START event of theirs.

As in "Sharon: Shared Online Event Sequence Aggregation": for every event that begins a segment there is the number of
partial matches of the segment that begin there, by length, and for every query what its prefix held then. The matches
of prefix and segment together are the sum of their products, made when a suffix or a result needs them.

Cost: an event of the segment adds to one number for each START event of a key within the reach of its windows; a sum
of products costs a product for each of these and each open window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.numbers import BORROWED
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.shared import FOREVER

SPACE = 62
MARGIN = 8
"""Bits of a number of events of one time that may multiply another number."""
LARGEST = 2.0**61
"""A product below this, as a double, is below 2^62."""


class SegmentProgram(NamedTuple):
    """Segments by number: their family, first position (one more for the end), room for START events, first use.

    Positions: whether they repeat. Uses: the cell that holds what a prefix counted, the one for prefix and segment.
    """

    family: Array
    positions: Array
    repeats: Array
    owner: Array  # by position
    room: Array
    uses: Array  # by segment, and one more
    entry: Array
    outcome: Array
    segment: Array  # by use
    use: Array  # by cell, or −1
    numbers: Array  # where the numbers of a position begin
    entries: Array  # where those of a use begin
    times: Array  # where those of a segment begin


class StartEvents(NamedTuple):
    """The START events of a sweep: those from `head` to `tail`, in order of time.

    `number`: by position and START event the matches so far; `entered`: by use, START event and lane what the prefix
    held. `stale`: by use whether its outcome must be made anew; `seen`: by position how many events of one time.
    """

    head: Array
    tail: Array
    time: Array
    number: Array
    entered: Array
    stale: Array
    seen: Array


def with_room(segments: SegmentProgram, lanes: Array, room: list[int]) -> SegmentProgram:
    """The program with room for so many START events at a time in each segment."""
    doubled = np.array(room, np.int64) * 2
    of_position = np.repeat(doubled, np.diff(segments.positions))
    of_use = np.repeat(doubled * lanes[segments.family], np.diff(segments.uses))
    return segments._replace(
        room=doubled, numbers=begins_of(of_position), entries=begins_of(of_use), times=begins_of(doubled)
    )


def begins_of(sizes: Iterable[int]) -> Array:
    """Where each of some lists begins if they stand one after the other, and where the last one ends."""
    return np.r_[0, np.cumsum(np.fromiter(sizes, np.int64))].astype(np.int64)


def starts_of(segments: SegmentProgram) -> StartEvents:
    """Room for START events, of which there are none."""
    count, positions, uses = len(segments.family), len(segments.repeats), len(segments.entry)
    sizes = [int(some[-1]) for some in (segments.times, segments.numbers, segments.entries)]
    return StartEvents(
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(sizes[0], np.int64),
        np.zeros(sizes[1], np.int64),
        np.zeros(sizes[2], np.int64),
        np.zeros(uses, np.bool_),
        np.zeros(positions, np.int64),
    )


def most_at_a_time(block: Block, events: Array, reach: int) -> int:
    """How many of some events lie within the reach of the windows that one of them is in, at most."""
    if not len(events):
        return 1
    if reach == FOREVER:
        return int(np.bincount(block.key[events]).max())
    first = np.searchsorted(events, block.not_before(block.key[events], block.time[events] - reach + 1))
    last = np.searchsorted(events, block.not_before(block.key[events], block.time[events] + 1))
    return int((last - first).max())


@njit(**BORROWED)
def extend(sweep: Any, segment: Any, now: Any) -> None:
    """Let the events of one time that were noted extend what began before, and begin anew."""
    program, segments, starts, running = sweep.program, sweep.segments, sweep.starts, sweep.running
    first, last = segments.positions[segment], segments.positions[segment + 1]
    family, room = segments.family[segment], segments.room[segment]
    lanes, reach, times = program.lanes[family], program.reach[family], segments.times[segment]
    head, tail = starts.head[segment], starts.tail[segment]
    while head < tail and starts.time[times + head] + reach <= now:
        head += 1
    bits, changed = np.int64(0), starts.seen[last - 1] > 0
    for position in range(first, last):
        if starts.seen[position] >> MARGIN:
            bits = np.int64(-1)
    for position in range(last - 1, first - 1, -1):
        count, mine = starts.seen[position], segments.numbers[position]
        if count == 0 or (position == first and not segments.repeats[position]):
            continue
        if position == first:
            for at in range(mine + head, mine + tail):
                value = starts.number[at] + count * starts.number[at]
                starts.number[at] = value
                bits |= value
        else:
            before = segments.numbers[position - 1] - mine
            for at in range(mine + head, mine + tail):
                added = starts.number[at + before]
                if segments.repeats[position]:
                    added += starts.number[at]
                value = starts.number[at] + count * added
                starts.number[at] = value
                bits |= value | added
    if starts.seen[first]:
        if tail == room:
            _move_to_front(program, segments, starts, segment, head, tail)
            head, tail = np.int64(0), tail - head
        starts.time[times + tail] = now
        for position in range(first, last):
            starts.number[segments.numbers[position] + tail] = starts.seen[first] if position == first else 0
        for use in range(segments.uses[segment], segments.uses[segment + 1]):
            held, to = program.lane[segments.entry[use]], segments.entries[use] + tail * lanes
            for lane in range(lanes):
                starts.entered[to + lane] = running.integers[held + lane]
        tail += 1
    starts.head[segment], starts.tail[segment] = head, tail
    for position in range(first, last):
        starts.seen[position] = 0
    for use in range(segments.uses[segment], segments.uses[segment + 1]):
        if changed:
            starts.stale[use] = True
        if bits >> (SPACE - MARGIN):
            running.spilled[segments.outcome[use]] = True


@njit(**BORROWED)
def _move_to_front(program: Any, segments: Any, starts: Any, segment: Any, head: Any, tail: Any) -> None:
    """Make room by forgetting what has expired."""
    count, times = tail - head, segments.times[segment]
    lanes = program.lanes[segments.family[segment]]
    for at in range(count):
        starts.time[times + at] = starts.time[times + head + at]
    for position in range(segments.positions[segment], segments.positions[segment + 1]):
        mine = segments.numbers[position]
        for at in range(count):
            starts.number[mine + at] = starts.number[mine + head + at]
    for use in range(segments.uses[segment], segments.uses[segment + 1]):
        mine = segments.entries[use]
        for at in range(count * lanes):
            starts.entered[mine + at] = starts.entered[mine + head * lanes + at]


@njit(**BORROWED)
def combine(sweep: Any, segment: Any, use: Any) -> None:
    """Make the outcome of a use anew: for each open window the sum of prefix times segment over its START events."""
    program, segments, starts, running = sweep.program, sweep.segments, sweep.starts, sweep.running
    family = segments.family[segment]
    lanes, grid, offset = program.lanes[family], program.grid[family], program.offset[family]
    opened, closed, mine = running.opened[family], running.closed[family], program.lane[segments.outcome[use]]
    last = segments.numbers[segments.positions[segment + 1] - 1]
    for lane in range(lanes):
        running.integers[mine + lane] = 0
    bits = np.int64(0)
    for at in range(starts.head[segment], starts.tail[segment]):
        times = starts.number[last + at]
        if times == 0:
            continue
        end = opened
        if grid != FOREVER:
            end = min(opened, (starts.time[segments.times[segment] + at] - offset) // grid + 1)
        held = segments.entries[use] + at * lanes
        for number in range(closed, end):
            place = number % lanes if lanes > 1 else np.int64(0)
            entered = starts.entered[held + place]
            if np.float64(entered) * np.float64(times) > LARGEST:
                bits = np.int64(-1)
            running.integers[mine + place] += entered * times
            bits |= running.integers[mine + place]
    starts.stale[use] = False
    if bits >> SPACE:
        running.spilled[segments.outcome[use]] = True


@njit(**BORROWED)
def forget_starts(segments: Any, starts: Any, family: Any) -> None:
    """Remove all START events of a family, at the end of a key."""
    for segment in range(len(segments.family)):
        if segments.family[segment] == family:
            starts.head[segment] = starts.tail[segment] = 0
            for use in range(segments.uses[segment], segments.uses[segment + 1]):
                starts.stale[use] = False
