"""Matches of SEQ(A a, B+ b[], C c) as an automaton finds them: what postponing is measured by.

NFA^b of SASE+ (Agrawal, Diao, Gyllstrom and Immerman, Efficient Pattern Matching over Event Streams): under
skip-till-any-match an event that extends a run clones it, so that one copy can do without the event. Runs are rows of
a few numbers with a pointer to the run they were cloned from; nothing but the pointer is copied. So the cost is the
number of runs: 2^n of n Bs after an A where no predicate ends them, whether or not a C ever comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.baselines.trend_columns import BUFFER, CHECKSUM, TRENDS, Found, count_one, found, prepare, ranges, room
from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]

ANY_B, NOT_LESS, ABOVE_MAX, ABOVE_AVG = range(4)
"""When a B may follow the Bs before it: always, `>= b[i-1].val`, `> max(b[..i-1].val)`, `> avg(b[..i-1].val)`."""

ANY_C, BELOW_MAX, SAME_TASK = 0, 1, 2
"""When a C may end a run, as bits: `c.val < max(b[].val)`, `a.task = c.task`."""

A, B, C = range(3)

FIRST, LAST, PARENT, LENGTH = range(4)
RULE, MOST = range(2)
"""Columns of a run: events by number; what predicates need of the Bs: last value, maximum or sum; and the maximum."""

NO_BOUND = np.int64(2**62)
MOST_RUNS = 1 << 26
"""Runs that may be alive at a time: half a gigabyte of them."""


@dataclass(frozen=True)
class Steps:
    """Events sorted by key and time that may take part: their kind (A, B, C), value and task; and ranges of them.

    `within`: last time - first time of a match is less. `rows[i]`: the row of the table that event i was.
    """

    time: Array
    kind: Array
    value: Array
    task: Array
    low: Array
    high: Array
    start: Array
    within: int
    rows: Array


def steps(
    table: pa.Table, within: int | None, slide: int | None = None, *, by_task: bool = False, above: float | None = None
) -> Steps:
    """Columns for `[task]` (`by_task`) and the local predicate `b.val > above`; with a slide, one range per window."""
    letters = table["type"].to_numpy()
    value = table["val"].to_numpy().astype(np.float64)
    kind = np.select([letters == "A", letters == "B", letters == "C"], [A, B, C], -1)
    rows = np.flatnonzero((kind >= 0) & ((kind != B) | (value > (-np.inf if above is None else above))))
    time, task = table["time"].to_numpy()[rows].astype(np.int64), table["task"].to_numpy()[rows].astype(np.int64)
    key = task if by_task else np.zeros(len(rows), np.int64)
    order = np.lexsort([time, key])
    low, high, start = ranges(time[order], key[order], within if slide else None, slide)
    bound = int(NO_BOUND) if within is None or slide else within
    chosen = rows[order]
    return Steps(time[order], kind[chosen].astype(np.int8), value[chosen], task[order], low, high, start, bound, chosen)


def run_cloning_matches(
    events: Steps, *, b_rule: int = ANY_B, c_rule: int = ANY_C, buffer: int = BUFFER, most_runs: int = MOST_RUNS
) -> Found:
    """All matches; `built` is the number of runs created.

    Cost: each event looks at all live runs, O(n · runs); runs of an A expire with its window, and are removed once a
    quarter of the pool has. Predicates are evaluated as events are taken, on aggregates that a run carries. A match of
    length l takes O(l) to follow the pointers.
    """
    state, out, ends, counts = prepare(buffer, events.low, events.high)
    built = np.int64(0)
    for number in range(len(events.low)):
        before = state[TRENDS]
        low, part = int(events.low[number]), slice(events.low[number], events.high[number])
        columns = (events.time[part], events.kind[part], events.value[part], events.task[part])
        created = _clone(*columns, events.within, b_rule, c_rule, most_runs, low, out, ends, state)
        if created < 0:
            raise MemoryError(f"more than {most_runs:,} runs are alive at a time")
        built += created
        counts[number] = state[TRENDS] - before
    return found(state, out, ends, counts, int(built))


@njit
def _clone(
    time: Any,
    kind: Any,
    value: Any,
    task: Any,
    within: int,
    b_rule: int,
    c_rule: int,
    most_runs: int,
    low: int,
    out: Any,
    ends: Any,
    state: Any,
) -> Any:
    """Runs are pushed in the order of their last events, so those below `sealed` have a last event of earlier time."""
    links, held = np.empty((1024, 4), np.int32), np.empty((1024, 2))
    alive, sealed, created, oldest = 0, 0, 0, 0
    for event in range(len(time)):
        if event > 0 and time[event] > time[event - 1]:
            sealed = alive
        while time[event] - time[oldest] >= within:
            oldest += 1
        if alive + sealed + 1 > len(links):
            if alive > most_runs:
                return -1
            links, held = _more_runs(links, held, alive, sealed)
        expired = 0
        if kind[event] == A:
            links[alive, FIRST], links[alive, LAST] = event, event
            links[alive, PARENT], links[alive, LENGTH] = -1, 1
            held[alive, RULE], held[alive, MOST] = 0.0, -np.inf
            alive, created = alive + 1, created + 1
        elif kind[event] == B:
            grown, expired = _take(links, held, alive, sealed, oldest, event, value[event], b_rule)
            created += grown - alive
            alive = grown
        else:
            expired = _end(links, held, sealed, oldest, event, value, task, c_rule, low, out, ends, state)
        if 4 * expired > alive:
            alive, sealed = _remove(links, held, alive, sealed, oldest)
    return created


@njit
def _take(links: Any, held: Any, alive: int, sealed: int, oldest: int, event: int, value: float, rule: int) -> Any:
    """Clone every run that the B extends, behind the others: the new number of runs, and how many were expired."""
    expired = 0
    for run in range(sealed):
        if links[run, FIRST] < oldest:
            expired += 1
            continue
        count = links[run, LENGTH] - 1
        known = held[run, RULE]
        if count > 0:
            if rule == NOT_LESS and value < known:
                continue
            if rule == ABOVE_MAX and value <= known:
                continue
            if rule == ABOVE_AVG and value <= known / count:
                continue
        links[alive, FIRST], links[alive, LAST] = links[run, FIRST], event
        links[alive, PARENT], links[alive, LENGTH] = run, count + 2
        held[alive, RULE] = known + value if rule == ABOVE_AVG else value
        held[alive, MOST] = max(held[run, MOST], value)
        alive += 1
    return alive, expired


@njit
def _end(
    links: Any,
    held: Any,
    sealed: int,
    oldest: int,
    event: int,
    value: Any,
    task: Any,
    rule: int,
    low: int,
    out: Any,
    ends: Any,
    state: Any,
) -> Any:
    """Give out every run that the C completes, and how many were expired. The runs stay: a later C ends them too."""
    expired = 0
    for run in range(sealed):
        first, size = links[run, FIRST], links[run, LENGTH]
        if first < oldest:
            expired += 1
            continue
        if size == 1 or (rule & BELOW_MAX and value[event] >= held[run, MOST]):
            continue
        if rule & SAME_TASK and task[first] != task[event]:
            continue
        at = room(size + 1, out, state)
        out[at + size] = event + low
        total, one = np.int64(event + low), np.int64(run)
        for place in range(at + size - 1, at - 1, -1):
            member = links[one, LAST] + low
            out[place] = member
            total += member
            one = links[one, PARENT]
        state[CHECKSUM] += total
        count_one(size + 1, ends, state)
    return expired


@njit
def _remove(links: Any, held: Any, alive: int, sealed: int, oldest: int) -> Any:
    """Close the gaps of expired runs. A run and the one it was cloned from began with the same A: both go or stay."""
    place = np.empty(alive, np.int32)
    kept, kept_sealed = 0, 0
    for run in range(alive):
        if run == sealed:
            kept_sealed = kept
        place[run] = kept
        if links[run, FIRST] < oldest:
            continue
        for column in range(4):
            links[kept, column] = links[run, column]
        if links[kept, PARENT] >= 0:
            links[kept, PARENT] = place[links[kept, PARENT]]
        held[kept, RULE], held[kept, MOST] = held[run, RULE], held[run, MOST]
        kept += 1
    return kept, kept_sealed if sealed < alive else kept


@njit
def _more_runs(links: Any, held: Any, alive: int, sealed: int) -> Any:
    size = len(links)
    while size < alive + sealed + 1:
        size *= 2
    more_links, more_held = np.empty((size, 4), np.int32), np.empty((size, 2))
    for run in range(alive):
        for column in range(4):
            more_links[run, column] = links[run, column]
        more_held[run, RULE], more_held[run, MOST] = held[run, RULE], held[run, MOST]
    return more_links, more_held
