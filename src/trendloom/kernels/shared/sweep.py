"""Run the program of many queries over a block: one sweep, in which every event adds to the cells of its letters.

Events of one time are never in sequence: what they add is held beside the cells, and becomes visible when all of them
have been seen. When a window ends, the cells of its queries are their results.

Integers have 62 bits; what has more wraps around at 2^64, which is noted (`spilled`; see `widen`). Cells that nothing
was added to since the key began are passed over.

Cost: O(events · cells of a letter that hold anything · open windows), and O(cells that hold anything) for every window
of a key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import ABSENT, EMPTY
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.shared import FOREVER
from trendloom.kernels.shared.events import (
    ADD,
    COMBINE,
    HEAD,
    NOTE,
    PLAIN,
    RESET,
    ShownEvents,
    SweptQuery,
    no_results,
    results_by_query,
    show,
)
from trendloom.kernels.shared.per_start import (
    SPACE,
    SegmentProgram,
    StartEvents,
    combine,
    extend,
    forget_starts,
    starts_of,
)
from trendloom.kernels.shared.program import DOUBLE, INTEGER, LEAST, NO_WEIGHT, MergedQueries, SweepProgram

NEVER = -(2**62)
FIRST_ROWS = 1 << 16
"""Results that are stored before they are copied away."""
RESULTS = 2
"""The entry of `Running.done` that counts results."""


def sweep_queries(merged: MergedQueries, block: Block, bit_of: dict[int, int]) -> list[SweptQuery]:
    """The results of all queries, in their order; `bit_of`: the bit of each letter among the `fits` of the block."""
    for family in merged.families:
        for window in family.windows:
            check_range(block.time, window)
    if not len(block):
        return no_results(merged)
    shown, segments, unfit = show(merged, block, bit_of)

    found, doubles, spilled = _swept(merged.program, shown, segments, block.keys)
    spilled[sorted(unfit)] = True
    if merged.backwards:
        found[:, 1] = block.keys - 1 - found[:, 1]
    return results_by_query(merged, found, doubles, spilled)


# ----------------------------------------------------------------------------------------------------- sweep


class Running(NamedTuple):
    """What a sweep changes. Cells by what they hold, and what events of one time add to them (`more...`).

    By family: windows from number `closed` to `opened` are open, and nothing about that changes before the time
    `change`; by stage: results up to window `given` are given out. `touched`: cells that were added to, of each family
    listed in `stack` from its first cell on, so many as in `height`.
    `done`: the next key and event, how many results there are (`RESULTS`), and whether the current key has begun.
    """

    integers: Array
    more: Array
    doubles: Array
    more_doubles: Array
    least: Array
    more_least: Array
    opened: Array
    closed: Array
    change: Array
    given: Array
    touched: Array
    stack: Array
    height: Array
    spilled: Array
    done: Array


class QuerySweep(NamedTuple):
    """All that a sweep reads and changes. `found`: (query, key, window start, numbers) of every result, and doubles."""

    program: SweepProgram
    shown: ShownEvents
    segments: SegmentProgram
    starts: StartEvents
    running: Running
    found: Array
    found_doubles: Array


def _swept(
    program: SweepProgram, shown: ShownEvents, segments: SegmentProgram, keys: int
) -> tuple[Array, Array, Array]:
    """(query, key, window start, numbers) of every result, doubles beside, and which cells spilled."""
    families, cells = len(program.unit), len(program.holds)
    widths = program.lanes[program.family]
    sizes = [int(widths[program.holds == kind].sum()) for kind in (INTEGER, DOUBLE, LEAST)]
    integers, more = (np.zeros(sizes[0], np.int64) for _ in range(2))
    doubles, more_doubles = (np.zeros(sizes[1]) for _ in range(2))
    least, more_least = (np.full(sizes[2], ABSENT, np.int64) for _ in range(2))
    opened, closed, change, height = (np.zeros(families, np.int64) for _ in range(4))
    given, stack = np.zeros(len(program.length), np.int64), np.zeros(cells, np.int64)
    touched, spilled = (np.zeros(cells, np.bool_) for _ in range(2))
    done = np.zeros(4, np.int64)
    running = Running(
        integers, more, doubles, more_doubles, least, more_least, opened, closed, change, given, touched, stack, height,
        spilled, done,
    )  # fmt: skip
    queries = np.diff(program.queries[program.stages])
    room = int((program.lanes * queries).sum()) * 2  # for all that may be given out at one time
    width, rows = int(np.diff(program.reads).max()), max(FIRST_ROWS, room)
    found, found_doubles = np.empty((rows, HEAD + width), np.int64), np.empty((rows, width if sizes[1] else 0))
    sweep = QuerySweep(program, shown, segments, starts_of(segments), running, found, found_doubles)
    parts: list[tuple[Array, Array]] = [(found[:0], found_doubles[:0])]
    while done[0] < keys:
        _sweep(sweep, keys, rows - room)
        parts.append((found[: done[RESULTS]].copy(), found_doubles[: done[RESULTS]].copy()))
        done[RESULTS] = 0
    return np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts]), spilled


@njit(**LEAN, wraps=True)
def _sweep(sweep: Any, keys: Any, full: Any) -> None:
    """Sweep all keys, or until there are so many results that there may be no room for those of one time."""
    program, shown, running = sweep.program, sweep.shown, sweep.running
    families, done = len(program.unit), running.done
    begin, does, what, kinds = shown.begin, shown.does, shown.what, shown.kinds
    while done[0] < keys:
        key, at, stop = done[0], done[1], shown.key_starts[done[0] + 1]
        if not done[3]:
            done[3] = 1
            for family in range(families):
                running.opened[family] = running.closed[family] = NEVER
                running.change[family] = NEVER
            for stage in range(len(program.length)):
                running.given[stage] = NEVER
        while at < stop:
            if done[RESULTS] >= full:
                done[1] = at
                return
            now, after = shown.time[at], at + 1
            while after < stop and shown.instants[after] == shown.instants[at]:
                after += 1
            for event in range(at, after):
                seen = np.int64(-1)
                for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
                    its = shown.family[which]
                    if its != seen:
                        seen = its
                        if now >= running.change[its]:
                            _move_on(sweep, its, key, now)
            if after == at + 1 and not shown.apart[kinds[at]]:
                for which in range(begin[kinds[at]], begin[kinds[at] + 1]):
                    if does[which] == PLAIN:
                        _add_plainly(sweep, which, running.integers)
                    elif does[which] == ADD:
                        _add(sweep, what[which], at, True)
                    else:
                        _empty(program, what[which], running)
            else:
                _do_at_once(sweep, at, after)
            at = after
        for family in range(families):
            for stage in range(program.stages[family], program.stages[family + 1]):
                for number in range(running.given[stage], running.opened[family]):
                    _give_out(sweep, family, stage, key, number)
            _forget(program, family, running)
            forget_starts(sweep.segments, sweep.starts, family)
        done[0], done[1], done[3] = key + 1, stop, 0


@njit(**BORROWED)
def _do_at_once(sweep: Any, at: Any, after: Any) -> None:
    """What the events of one time do: all of them see what was before, and what they add becomes visible in the end."""
    program, shown, starts, running = sweep.program, sweep.shown, sweep.starts, sweep.running
    begin, does, what, kinds = shown.begin, shown.does, shown.what, shown.kinds
    noted = False
    for event in range(at, after):
        for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
            if does[which] == COMBINE:
                _make_outcome(sweep, what[which])
            elif does[which] == PLAIN:
                _add_plainly(sweep, which, running.more)
            elif does[which] == ADD:
                _add(sweep, what[which], event, False)
            elif does[which] == NOTE:
                starts.seen[what[which]] += 1
                noted = True
    if noted:
        for event in range(at, after):
            for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
                if does[which] == NOTE and starts.seen[what[which]]:
                    extend(sweep, sweep.segments.owner[what[which]], shown.time[at])
    for event in range(at, after):
        for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
            if does[which] == RESET:
                _empty(program, what[which], running)
    for event in range(at, after):
        for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
            if does[which] == ADD or does[which] == PLAIN:
                _take_over(program, what[which], running)


@njit(**BORROWED)
def _move_on(sweep: Any, family: Any, key: Any, now: Any) -> None:
    """Give out windows that have ended, empty the lanes that are not read any more, open those that have begun."""
    program, running = sweep.program, sweep.running
    opened, closed, given = running.opened, running.closed, running.given
    grid, reach, lanes = program.grid[family], program.reach[family], program.lanes[family]
    unit = program.unit[family]
    if reach == FOREVER:
        first, end, change = np.int64(0), np.int64(1), np.int64(FOREVER)
        for stage in range(program.stages[family], program.stages[family + 1]):
            given[stage] = 0
    else:
        time = now - program.offset[family]
        end, first = time // grid + 1, (time - reach) // grid + 1
        change = end * grid
        for stage in range(program.stages[family], program.stages[family + 1]):
            ended = (time - program.length[stage]) // grid + 1
            for number in range(given[stage], min(opened[family], ended)):
                _give_out(sweep, family, stage, key, number)
            given[stage] = max(given[stage], ended)
            if given[stage] < end:
                change = min(change, given[stage] * grid + program.length[stage])
        change += program.offset[family]
        for number in range(closed[family], min(opened[family], first)):
            _clear_lane(program, family, number % lanes if lanes > 1 else np.int64(0), running)
    closed[family] = max(closed[family], first)
    if not running.touched[unit]:
        _touch(program, unit, running)
    for number in range(max(opened[family], first), end):
        lane = program.lane[unit] + (number % lanes if lanes > 1 else np.int64(0))
        if program.holds[unit] == DOUBLE:
            running.doubles[lane] = 1.0
        else:
            running.integers[lane] = 1
    opened[family] = max(opened[family], end)
    running.change[family] = change


@njit(**BORROWED)
def _touch(program: Any, cell: Any, running: Any) -> None:
    """Note that a cell holds something."""
    family = program.family[cell]
    running.touched[cell] = True
    running.stack[program.unit[family] + running.height[family]] = cell
    running.height[family] += 1


@njit(**BORROWED)
def _make_outcome(sweep: Any, use: Any) -> None:
    """Make the outcome of a prefix and a segment visible."""
    segments, outcome = sweep.segments, sweep.segments.outcome[use]
    if sweep.starts.stale[use]:
        combine(sweep, segments.segment[use], use)
        if not sweep.running.touched[outcome]:
            _touch(sweep.program, outcome, sweep.running)


@njit(**BORROWED)
def _add_plainly(sweep: Any, which: Any, target: Any) -> None:
    """Add one cell of integers to another."""
    program, shown, running = sweep.program, sweep.shown, sweep.running
    if not running.touched[shown.source[which]]:
        return
    cell, mine, other = shown.what[which], shown.mine[which], shown.other[which]
    if not running.touched[cell]:
        _touch(program, cell, running)
    bits, cells = np.int64(0), running.integers
    for lane in range(program.lanes[shown.family[which]]):
        value = target[mine + lane] + cells[other + lane]
        target[mine + lane] = value
        bits |= value ^ (value >> 63)
    if bits >> SPACE:
        running.spilled[cell] = True


@njit(**BORROWED)
def _add(sweep: Any, cell: Any, event: Any, at_once: Any) -> None:
    """Add an event to a cell, or `more` of it, which becomes visible later."""
    program, running = sweep.program, sweep.running
    anything = False
    for edge in range(program.edges[cell], program.edges[cell + 1]):
        anything |= running.touched[program.source[edge]]
    if not anything:
        return
    if not running.touched[cell]:
        _touch(program, cell, running)
    holds = program.holds[cell]
    if holds == INTEGER:
        _add_integers(sweep, cell, event, running.integers if at_once else running.more)
    elif holds == DOUBLE:
        _add_doubles(sweep, cell, event, running.doubles if at_once else running.more_doubles)
    else:
        _compare(sweep, cell, event, running.least if at_once else running.more_least)


@njit(**BORROWED)
def _add_integers(sweep: Any, cell: Any, event: Any, target: Any) -> None:
    program, shown, running = sweep.program, sweep.shown, sweep.running
    mine, first, last = program.lane[cell], program.edges[cell], program.edges[cell + 1]
    cells, bits = running.integers, np.int64(0)
    for lane in range(program.lanes[program.family[cell]]):
        value = target[mine + lane]
        for edge in range(first, last):
            added, weight = cells[program.lane[program.source[edge]] + lane], program.weight[edge]
            if weight != NO_WEIGHT:
                if added >> (SPACE - shown.bits[weight]):  # a product beyond the space
                    bits = np.int64(-1)
                added *= shown.integers[weight, event]
            value += added
            bits |= value ^ (value >> 63)
        target[mine + lane] = value
    if bits >> SPACE:
        running.spilled[cell] = True


@njit(**BORROWED)
def _add_doubles(sweep: Any, cell: Any, event: Any, target: Any) -> None:
    program, shown, running = sweep.program, sweep.shown, sweep.running
    mine, first, last = program.lane[cell], program.edges[cell], program.edges[cell + 1]
    for lane in range(program.lanes[program.family[cell]]):
        value = 0.0
        for edge in range(first, last):
            source, weight = program.source[edge], program.weight[edge]
            place, times = program.lane[source] + lane, 1.0
            if weight != NO_WEIGHT:
                times = shown.doubles[weight, event]
            if program.holds[source] == DOUBLE:
                value += running.doubles[place] * times
            else:
                value += np.float64(running.integers[place]) * times
        target[mine + lane] += value


@njit(**BORROWED)
def _compare(sweep: Any, cell: Any, event: Any, target: Any) -> None:
    program, running = sweep.program, sweep.running
    mine, first, last = program.lane[cell], program.edges[cell], program.edges[cell + 1]
    weight, value = program.weight[first], np.int64(EMPTY)
    if weight != NO_WEIGHT:
        value = sweep.shown.values[weight, event]
    for lane in range(program.lanes[program.family[cell]]):
        before = np.int64(ABSENT)
        for edge in range(first, last):
            source = program.source[edge]
            place = program.lane[source] + lane
            if program.holds[source] == LEAST:
                before = min(before, running.least[place])
            elif program.holds[source] == INTEGER:
                if running.integers[place] != 0:
                    before = min(before, np.int64(EMPTY))
            elif running.doubles[place] != 0:
                before = min(before, np.int64(EMPTY))
        if before != ABSENT:
            target[mine + lane] = min(target[mine + lane], before, value)


@njit(**BORROWED)
def _take_over(program: Any, cell: Any, running: Any) -> None:
    """Make visible what events of one time have added to a cell."""
    holds, mine = program.holds[cell], program.lane[cell]
    end = mine + program.lanes[program.family[cell]]
    if not running.touched[cell]:
        return
    if holds == INTEGER:
        bits = np.int64(0)
        for lane in range(mine, end):
            value = running.integers[lane] + running.more[lane]
            running.integers[lane] = value
            bits |= value ^ (value >> 63)
            running.more[lane] = 0
        if bits >> SPACE:
            running.spilled[cell] = True
    elif holds == DOUBLE:
        for lane in range(mine, end):
            running.doubles[lane] += running.more_doubles[lane]
            running.more_doubles[lane] = 0.0
    else:
        for lane in range(mine, end):
            running.least[lane] = min(running.least[lane], running.more_least[lane])
            running.more_least[lane] = ABSENT


@njit(**BORROWED)
def _empty(program: Any, cell: Any, running: Any) -> None:
    """Empty every lane of a cell."""
    if running.touched[cell]:
        for lane in range(program.lanes[program.family[cell]]):
            _clear(program, cell, lane, running)


@njit(**BORROWED)
def _clear(program: Any, cell: Any, lane: Any, running: Any) -> None:
    mine = program.lane[cell] + lane
    if program.holds[cell] == INTEGER:
        running.integers[mine] = 0
    elif program.holds[cell] == DOUBLE:
        running.doubles[mine] = 0.0
    else:
        running.least[mine] = ABSENT


@njit(**BORROWED)
def _clear_lane(program: Any, family: Any, lane: Any, running: Any) -> None:
    """Empty the lane of a window in every cell of a family."""
    first = program.unit[family]
    for place in range(first, first + running.height[family]):
        _clear(program, running.stack[place], lane, running)


@njit(**BORROWED)
def _forget(program: Any, family: Any, running: Any) -> None:
    """Empty every cell of a family, at the end of a key."""
    first = program.unit[family]
    for place in range(first, first + running.height[family]):
        _empty(program, running.stack[place], running)
        running.touched[running.stack[place]] = False
    running.height[family] = 0


@njit(**BORROWED)
def _give_out(sweep: Any, family: Any, stage: Any, key: Any, number: Any) -> None:
    """The results of all windows of one length that began at a moment."""
    program, segments, running, found = sweep.program, sweep.segments, sweep.running, sweep.found
    lanes, start = program.lanes[family], np.int64(0)
    lane = number % lanes if lanes > 1 else np.int64(0)
    if program.reach[family] != FOREVER:
        start = number * program.grid[family] + program.offset[family]
    for query in range(program.queries[stage], program.queries[stage + 1]):
        if (number + program.shift[query]) % program.every[query]:
            continue
        first, count = program.reads[query], running.done[RESULTS]
        matches = program.read[first]
        if segments.use[matches] >= 0:
            _make_outcome(sweep, segments.use[matches])
        if not running.touched[matches]:
            continue
        place = program.lane[matches] + lane
        if program.holds[matches] == DOUBLE:
            if running.doubles[place] == 0.0:
                continue
        elif running.integers[place] == 0:
            continue
        found[count, 0], found[count, 1], found[count, 2] = query, key, start
        for which in range(first, program.reads[query + 1]):
            cell = program.read[which]
            place = program.lane[cell] + lane
            if program.holds[cell] == INTEGER:
                found[count, HEAD + which - first] = running.integers[place]
            elif program.holds[cell] == DOUBLE:
                sweep.found_doubles[count, which - first] = running.doubles[place]
            else:
                found[count, HEAD + which - first] = running.least[place]
        running.done[RESULTS] += 1
