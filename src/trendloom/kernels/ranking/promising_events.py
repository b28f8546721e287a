"""The few events of a window that can be in its best paths: where a bound of scores is known, light ones alone can.

A path has at least the least weight of each position. So an event can be in a path that scores at most the bound only
if its weight is not further above the least one of its position than the bound is above the fold of them all. Of
thousands of events some dozens are left, and these are strata again. The bound is what the paths known so far say, or
a guess: as far above the least weights as in the last window. If enough paths are found that score no more than
a guess, they are the best; if not, the guess was too low.

The least weights of FAN entries, and of FAN · FAN, are found once and serve all windows.

Cost: O(entries / FAN²) per window, and O(FAN) for each entry that is left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.graph import SUM, folded
from trendloom.kernels.ranking.path_search import (
    FAN,
    PathTables,
    Strata,
    empty_tables,
    fill_joints,
)

SHARE = 4
"""More than one of so many events of a window are not few."""
SAMPLE = 64
"""Events of a position by which it is judged."""
FAR = 2.0**60
"""Bounds that are further above the least weights are not used: integers might overflow."""


class PromisingEvents(NamedTuple):
    """Room for the promising events of a window. `margin`: by how much weights can be wrong because sums are rounded.

    `least`, `least_of_many`: of FAN and FAN² entries of the whole block. `floor`: by position the least weight in the
    window. `guess`: how far the bound may be above the lowest score, negative if that is not known. `strata`, `tables`:
    of the promising events alone.
    """

    margin: Array
    least: Array
    least_of_many: Array
    floor: Array
    guess: Array
    strata: Strata
    tables: PathTables


@njit(nogil=True)
def no_events_yet(strata: Strata, most: int, margin: Array) -> PromisingEvents:
    """For windows of at most so many entries. One pass over all entries, unless there is no use in them."""
    positions, use = len(strata.begin) - 1, len(margin) > 0 and not _many_are_least(strata)
    room = most // SHARE + FAN * positions if use else 0
    begin = np.zeros(positions + 1, np.int64)
    some = Strata(begin, np.empty(room, np.int32), np.empty(room, strata.weight.dtype), strata.tie_end)
    least = _least_of_groups(strata.weight[: len(strata.weight) if use else 0])
    floor, guess = np.empty(positions, strata.weight.dtype), np.full(1, -1, strata.weight.dtype)
    return PromisingEvents(margin, least, _least_of_groups(least), floor, guess, some, empty_tables(some))


@njit(nogil=True)
def can_be_few(some: PromisingEvents) -> bool:
    return len(some.least) > 0


@njit(**INSIDE)
def _many_are_least(strata: Strata) -> bool:
    """Whether so many events of a position have its least weight that promising ones are not few, by a sample."""
    for t in range(len(strata.begin) - 1):
        step = max(1, (strata.begin[t + 1] - strata.begin[t]) // SAMPLE)
        some = strata.weight[strata.begin[t] : strata.begin[t + 1] : step]
        if len(some) >= SAMPLE and np.sum(some == some.min()) * SHARE > len(some):
            return True
    return False


@njit(**INSIDE)
def _least_of_groups(values: Array) -> Array:
    found = np.empty((len(values) + FAN - 1) // FAN, values.dtype)
    for group in range(len(found)):
        least = values[group * FAN]
        for at in range(group * FAN + 1, min(len(values), (group + 1) * FAN)):
            least = min(least, values[at])
        found[group] = least
    return found


@njit(**INSIDE)
def find_lowest(strata: Strata, window: PathTables, some: PromisingEvents, fold: int) -> Any:
    """Set `floor` for a window; no path in it has less than the score that is returned."""
    for t in range(len(some.floor)):
        some.floor[t] = _least_weight(strata.weight, some, window.low[t], window.high[t])
    return lowest_score(some, fold)


@njit(**INSIDE)
def _least_weight(weight: Array, some: PromisingEvents, begin: int, end: int) -> Any:
    """The least weight of a range of entries. O(FAN + entries / FAN²)."""
    least, at = weight[begin], begin
    while at < end:
        if at % FAN or at + FAN > end:
            least, at = min(least, weight[at]), at + 1
        elif at % (FAN * FAN) or at + FAN * FAN > end:
            least, at = min(least, some.least[at // FAN]), at + FAN
        else:
            least, at = min(least, some.least_of_many[at // (FAN * FAN)]), at + FAN * FAN
    return least


@njit(**INSIDE)
def lowest_score(some: PromisingEvents, fold: int) -> Any:
    score = some.floor[0]
    for t in range(1, len(some.floor)):
        score = folded(fold, score, some.floor[t])
    return score


@njit(**INSIDE)
def choose_events(strata: Strata, window: PathTables, some: PromisingEvents, bound: Any, fold: int) -> bool:
    """Put all events of a window that are in paths with at most this score into `some.strata`; whether they are few."""
    above, size = bound - lowest_score(some, fold), 0
    if above > FAR:
        return False
    chosen, entries, last = some.strata, np.sum(window.high - window.low), len(some.floor)
    room = min(len(chosen.event), entries // SHARE + FAN)
    for t in range(last):
        chosen.begin[t] = size
        most = some.floor[t] + above + some.margin[0] if fold == SUM else bound
        at, end = window.low[t], window.high[t]
        while at < end:
            if at % (FAN * FAN) == 0 and some.least_of_many[at // (FAN * FAN)] > most:
                at += FAN * FAN
                continue
            until = min(end, (at // FAN + 1) * FAN)
            if some.least[at // FAN] <= most:
                if size + FAN > room:
                    return False
                for entry in range(at, until):
                    chosen.event[size], chosen.weight[size] = strata.event[entry], strata.weight[entry]
                    size += strata.weight[entry] <= most
            at = until
    chosen.begin[last] = size
    some.tables.low[:], some.tables.high[:] = chosen.begin[:-1], chosen.begin[1:]
    fill_joints(chosen, some.tables)
    return True


@njit(**INSIDE)
def make_first_guess(window: PathTables, some: PromisingEvents) -> None:
    """Guess how far the lightest of FAN events are above the lightest of all, on average. O(entries / FAN)."""
    total, count = 0.0, 0
    for t in range(len(some.floor)):
        for group in range(window.low[t] // FAN, (window.high[t] - 1) // FAN + 1):
            total += max(0.0, float(some.least[group]) - float(some.floor[t]))
            count += 1
    some.guess[0] = min(total / (2 * count), FAR)
