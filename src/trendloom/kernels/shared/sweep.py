"""Run the program of many queries over a block: one sweep, in which every event adds to the cells of its letters.

Events of one time are never in sequence: what they add is held beside the cells, and becomes visible when all of them
have been seen. When a window ends, the cells of its queries are their results.

Integers have 62 bits; what has more wraps around at 2^64, which is noted (`spilled`; see `widened`). Cells that nothing
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
from trendloom.kernels.shared.events import ADD, COMBINE, NOTE, PLAIN, RESET, ShownEvents, show
from trendloom.kernels.shared.per_start import SPACE, SegmentProgram, combine, extend, forget_starts, starts_of
from trendloom.kernels.shared.program import DOUBLE, INTEGER, LEAST, NO_WEIGHT, MergedQueries, SweepProgram
from trendloom.kernels.shared.results import HEAD, SweptQuery, no_results, results_by_query
from trendloom.kernels.shared.steps import FOREVER

NEVER = -(2**62)
FIRST_ROWS = 1 << 16
"""Results for which there is room at once."""


def sweep_queries(merged: MergedQueries, block: Block, bit_of: dict[int, int]) -> list[SweptQuery]:
    """The results of all queries, in their order; `bit_of`: the bit of each letter among the `fits` of the block."""
    for family in merged.families:
        for window in family.windows:
            check_range(block.time, window)
    if not len(block):
        return no_results(merged)
    shown, segments, unfit = show(merged, block, bit_of)

    found, doubles, spilled = _swept(merged.program, shown, segments, 0, block.keys)
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
    `done`: the next key and event, how many results there are, and whether the current key has begun.
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


def _swept(
    program: SweepProgram, shown: ShownEvents, segments: SegmentProgram, low: int, high: int
) -> tuple[Array, Array, Array]:
    """(query, key, window start, numbers) of every result of some keys, doubles beside, and which cells spilled."""
    families, cells = len(program.unit), len(program.holds)
    widths = program.lanes[program.family]
    sizes = [int(widths[program.holds == kind].sum()) for kind in (INTEGER, DOUBLE, LEAST)]
    integers, more = (np.zeros(sizes[0], np.int64) for _ in range(2))
    doubles, more_doubles = (np.zeros(sizes[1]) for _ in range(2))
    least, more_least = (np.full(sizes[2], ABSENT, np.int64) for _ in range(2))
    opened, closed, change, height = (np.zeros(families, np.int64) for _ in range(4))
    given, stack = np.zeros(len(program.length), np.int64), np.zeros(cells, np.int64)
    touched, spilled = (np.zeros(cells, np.bool_) for _ in range(2))
    done = np.array([low, shown.key_starts[low], 0, 0], np.int64)
    running = Running(
        integers, more, doubles, more_doubles, least, more_least, opened, closed, change, given, touched, stack, height,
        spilled, done,
    )  # fmt: skip
    starts = starts_of(segments)
    queries = np.diff(program.queries[program.stages])
    room = int((program.lanes * queries).sum()) * 2  # for all that may be given out at one time
    width = int(np.diff(program.reads).max())
    rows = max(FIRST_ROWS, room)
    found, found_doubles = np.empty((rows, HEAD + width), np.int64), np.empty((rows, width if sizes[1] else 0))
    parts: list[tuple[Array, Array]] = [(found[:0], found_doubles[:0])]
    while done[0] < high:
        _sweep(program, shown, segments, starts, high, found, found_doubles, rows - room, running)
        parts.append((found[: done[2]].copy(), found_doubles[: done[2]].copy()))
        done[2] = 0
    return np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts]), spilled


@njit(**LEAN, wraps=True)
def _sweep(
    program: Any, shown: Any, segments: Any, starts: Any, high: Any, found: Any, doubles: Any, full: Any, running: Any
) -> None:  # fmt: skip
    """Sweep keys up to `high`, or until there are so many results that there may be no room for those of one time."""
    families, done, count = len(program.unit), running.done, running.done[2]
    begin, does, what, kinds = shown.begin, shown.does, shown.what, shown.kinds
    while done[0] < high:
        key, at, stop = done[0], done[1], shown.key_starts[done[0] + 1]
        if not done[3]:
            done[3] = 1
            for family in range(families):
                running.opened[family] = running.closed[family] = NEVER
                running.change[family] = NEVER
            for stage in range(len(program.length)):
                running.given[stage] = NEVER
        while at < stop:
            if count >= full:
                done[1], done[2] = at, count
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
                            count = _move_on(program, segments, starts, its, key, now, running, found, doubles, count)
            if after == at + 1 and not shown.apart[kinds[at]]:
                for which in range(begin[kinds[at]], begin[kinds[at] + 1]):
                    if does[which] == PLAIN:
                        _add_plainly(program, shown, which, running, running.integers)
                    elif does[which] == ADD:
                        _add(program, shown, what[which], at, running, True)
                    else:
                        _empty(program, what[which], running)
            else:
                _do_at_once(program, shown, segments, starts, at, after, running)
            at = after
        for family in range(families):
            for stage in range(program.stages[family], program.stages[family + 1]):
                for number in range(running.given[stage], running.opened[family]):
                    count = _give_out(
                        program, segments, starts, family, stage, key, number, running, found, doubles, count
                    )
            _forget(program, family, running)
            forget_starts(segments, starts, family)
        done[0], done[1], done[3] = key + 1, stop, 0
    done[2] = count


@njit(**BORROWED)
def _do_at_once(
    program: Any, shown: Any, segments: Any, starts: Any, at: Any, after: Any, running: Any
) -> None:  # fmt: skip
    """What the events of one time do: all of them see what was before, and what they add becomes visible in the end."""
    begin, does, what, kinds = shown.begin, shown.does, shown.what, shown.kinds
    noted = False
    for event in range(at, after):
        for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
            if does[which] == COMBINE:
                _ask(program, segments, starts, what[which], running)
            elif does[which] == PLAIN:
                _add_plainly(program, shown, which, running, running.more)
            elif does[which] == ADD:
                _add(program, shown, what[which], event, running, False)
            elif does[which] == NOTE:
                starts.seen[what[which]] += 1
                noted = True
    if noted:
        for event in range(at, after):
            for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
                if does[which] == NOTE and starts.seen[what[which]]:
                    extend(program, segments, starts, segments.owner[what[which]], shown.time[at], running)
    for event in range(at, after):
        for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
            if does[which] == RESET:
                _empty(program, what[which], running)
    for event in range(at, after):
        for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
            if does[which] == ADD or does[which] == PLAIN:
                _take_over(program, what[which], running)


@njit(**BORROWED)
def _move_on(
    program: Any, segments: Any, starts: Any, family: Any, key: Any, now: Any, running: Any, found: Any, doubles: Any,
    count: Any,
) -> Any:  # fmt: skip
    """Give out windows that have ended, empty the lanes that nobody reads any more, open those that have begun."""
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
                count = _give_out(program, segments, starts, family, stage, key, number, running, found, doubles, count)
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
    return count


@njit(**BORROWED)
def _touch(program: Any, cell: Any, running: Any) -> None:
    """Note that a cell holds something."""
    family = program.family[cell]
    running.touched[cell] = True
    running.stack[program.unit[family] + running.height[family]] = cell
    running.height[family] += 1


@njit(**BORROWED)
def _ask(program: Any, segments: Any, starts: Any, use: Any, running: Any) -> None:
    """Make the outcome of a prefix and a segment visible."""
    if starts.stale[use]:
        combine(program, segments, starts, segments.segment[use], use, running)
        if not running.touched[segments.outcome[use]]:
            _touch(program, segments.outcome[use], running)


@njit(**BORROWED)
def _add_plainly(program: Any, shown: Any, which: Any, running: Any, target: Any) -> None:
    """Add one cell of integers to another."""
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
def _add(program: Any, shown: Any, cell: Any, event: Any, running: Any, at_once: Any) -> None:
    """Add an event to a cell, or `more` of it, which becomes visible later."""
    first, last, anything = program.edges[cell], program.edges[cell + 1], False
    for edge in range(first, last):
        anything |= running.touched[program.source[edge]]
    if not anything:
        return
    if not running.touched[cell]:
        _touch(program, cell, running)
    holds, mine, lanes = program.holds[cell], program.lane[cell], program.lanes[program.family[cell]]
    if holds == INTEGER:
        target = running.integers if at_once else running.more
        _add_integers(program, shown, cell, event, running, target, mine, lanes)
    elif holds == DOUBLE:
        target_doubles = running.doubles if at_once else running.more_doubles
        _add_doubles(program, shown, cell, event, running, target_doubles, mine, lanes)
    else:
        target_least = running.least if at_once else running.more_least
        _compare(program, shown, cell, event, running, target_least, mine, lanes)


@njit(**BORROWED)
def _add_integers(
    program: Any, shown: Any, cell: Any, event: Any, running: Any, target: Any, mine: Any, lanes: Any
) -> None:  # fmt: skip
    cells, first, last = running.integers, program.edges[cell], program.edges[cell + 1]
    bits = np.int64(0)
    for lane in range(lanes):
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
def _add_doubles(
    program: Any, shown: Any, cell: Any, event: Any, running: Any, target: Any, mine: Any, lanes: Any
) -> None:  # fmt: skip
    first, last = program.edges[cell], program.edges[cell + 1]
    for lane in range(lanes):
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
def _compare(
    program: Any, shown: Any, cell: Any, event: Any, running: Any, target: Any, mine: Any, lanes: Any
) -> None:  # fmt: skip
    first, last = program.edges[cell], program.edges[cell + 1]
    weight, value = program.weight[first], np.int64(EMPTY)
    if weight != NO_WEIGHT:
        value = shown.values[weight, event]
    for lane in range(lanes):
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
    """What events of one time have added to a cell becomes visible."""
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
    """Nothing is left in any lane of a cell."""
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
    """Nothing is left of a window in any cell."""
    first = program.unit[family]
    for place in range(first, first + running.height[family]):
        _clear(program, running.stack[place], lane, running)


@njit(**BORROWED)
def _forget(program: Any, family: Any, running: Any) -> None:
    """Nothing is left of a key in any cell of a family."""
    first = program.unit[family]
    for place in range(first, first + running.height[family]):
        _empty(program, running.stack[place], running)
        running.touched[running.stack[place]] = False
    running.height[family] = 0


@njit(**BORROWED)
def _give_out(
    program: Any, segments: Any, starts: Any, family: Any, stage: Any, key: Any, number: Any, running: Any, found: Any,
    doubles: Any, count: Any,
) -> Any:  # fmt: skip
    """The results of all windows of one length that began at a moment."""
    lanes, start = program.lanes[family], np.int64(0)
    lane = number % lanes if lanes > 1 else np.int64(0)
    if program.reach[family] != FOREVER:
        start = number * program.grid[family] + program.offset[family]
    for query in range(program.queries[stage], program.queries[stage + 1]):
        if (number + program.shift[query]) % program.every[query]:
            continue
        first = program.reads[query]
        matches = program.read[first]
        if segments.use[matches] >= 0:
            _ask(program, segments, starts, segments.use[matches], running)
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
                doubles[count, which - first] = running.doubles[place]
            else:
                found[count, HEAD + which - first] = running.least[place]
        count += 1
    return count
