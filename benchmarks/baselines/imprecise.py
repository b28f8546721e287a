"""The event-based framework: matches of imprecise time as the literature finds them.

After H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", chapter 3, corrected where its text
and its definitions differ, written as well as the algorithms allow, and compiled.

- `in_order` (3.4.1, 3.6): events with intervals are bound one after another, in the order of the pattern or any other
  (by selectivity). Every extension revises the valid bounds of all events that are bound.
- `from_any_state` (3.4.2): events are taken as they come, and begin or extend a run at any component; runs are dropped
  when their time to live is over, or when nobody can come any more to fill the part before their first events.

All take sequences of single components with a bare WITHIN and equally likely points; skip-till-next-match is for
components that exclude each other. Confidences are enumerated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.imprecise_confidences import (
    FAR,
    Signatures,
    enumerated,
    first_from,
    latest_next,
    longer,
    revise,
)
from benchmarks.cases.imprecise import Uncertain
from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]


def in_order(stream: Uncertain, within: int, order: Array | None = None, *, following: bool = False) -> Signatures:
    """Bind components in this order; None: in that of the pattern. O(partial matches · length), then confidences."""
    length = stream.of_key.shape[1]
    found = _in_order(stream, within, np.arange(length) if order is None else order, latest_next(stream, following))
    return enumerated(stream, found, within, following=following)


def from_any_state(stream: Uncertain, within: int, *, following: bool = False) -> Signatures:
    """Runs that begin anywhere, events in order of arrival. O(events · runs alive · length), then confidences."""
    found = _from_any_state(stream, within, latest_next(stream, following))
    return enumerated(stream, found, within, following=following)


def by_selectivity(stream: Uncertain) -> Array:
    """Components, the rarest first."""
    return np.argsort(stream.of_key[-1] - stream.of_key[0], kind="stable")


@njit
def _in_order(stream: Any, within: int, order: Array, latest: Array) -> Array:
    keys, length = stream.of_key.shape
    found, count = np.empty((64, length), np.int64), 0
    lower, upper = np.empty((length, length), np.int64), np.empty((length, length), np.int64)
    cursor, ends, picked = np.empty(length, np.int64), np.empty(length, np.int64), np.full(length, -1)
    for key in range(keys - 1):
        depth = 0
        cursor[0], ends[0] = stream.of_key[key, order[0]], stream.of_key[key + 1, order[0]]
        while depth >= 0:
            p = order[depth]
            picked[p] = -1
            if cursor[depth] == ends[depth]:
                depth -= 1
                continue
            event = stream.member[cursor[depth]]
            cursor[depth] += 1
            if depth > 0 and _holds(picked, event):
                continue
            picked[p] = event
            if not revise(stream, picked, within, latest, lower[depth], upper[depth]):
                continue
            if depth < length - 1:
                depth += 1
                low, high = _reach(stream, picked, order[depth], within, lower[depth - 1], upper[depth - 1])
                begin, end = stream.of_key[key, order[depth]], stream.of_key[key + 1, order[depth]]
                cursor[depth] = first_from(stream, begin, end, low)
                ends[depth] = first_from(stream, begin, end, high + 1)
                continue
            if count == len(found):
                found = longer(found)
            found[count] = picked
            count += 1
    return found[:count]


@njit
def _holds(picked: Array, event: int) -> bool:
    for other in picked:  # noqa: SIM110 (Numba compiles a loop faster than a generator)
        if other == event:
            return True
    return False


@njit
def _reach(stream: Any, picked: Array, position: int, within: int, lower: Array, upper: Array) -> tuple[int, int]:
    """Between which times an event must begin to be bound at a position."""
    low, high, some = -FAR, FAR, -1
    for p in range(len(picked)):
        if picked[p] >= 0:
            some = p
            if p < position:
                low = lower[p] + position - p
                high = min(high, upper[p] + within - 1)
            elif high > upper[p] - (p - position):
                high = upper[p] - (p - position)
    low = max(low, lower[some] - within + 1) if some >= 0 else low
    return low - stream.most + 1, high


@njit
def _from_any_state(stream: Any, within: int, latest: Array) -> Array:
    keys, length = stream.of_key.shape
    found, count = np.empty((64, length), np.int64), 0
    runs, uppers = np.empty((64, length), np.int64), np.empty((64, length), np.int64)
    cursor = np.empty(length, np.int64)
    picked, lower, upper = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    for key in range(keys - 1):
        alive = 0
        cursor[:] = stream.of_key[key]
        while True:
            event = _next_event(stream, key, cursor)
            if event < 0:
                break
            alive = _without_dead(runs, uppers, alive, stream.low[event], within)
            before = alive
            for p in range(length):
                if cursor[p] == stream.of_key[key + 1, p] or stream.member[cursor[p]] != event:
                    continue
                cursor[p] += 1
                for run in range(-1, before):
                    if run < 0:
                        picked[:] = -1
                    elif runs[run, p] >= 0:
                        continue
                    else:
                        picked[:] = runs[run]
                    picked[p] = event
                    if not revise(stream, picked, within, latest, lower, upper):
                        continue
                    if _is_full(picked):
                        if count == len(found):
                            found = longer(found)
                        found[count] = picked
                        count += 1
                        continue
                    if alive == len(runs):
                        runs, uppers = longer(runs), longer(uppers)
                    runs[alive], uppers[alive] = picked, upper
                    alive += 1
    return found[:count]


@njit
def _next_event(stream: Any, key: int, cursor: Array) -> int:
    """The event that comes next, of all components."""
    least = -1
    for p in range(len(cursor)):
        if cursor[p] < stream.of_key[key + 1, p]:
            event = stream.member[cursor[p]]
            least = event if least < 0 else min(least, event)
    return least


@njit
def _without_dead(runs: Array, uppers: Array, alive: int, now: int, within: int) -> int:
    """Keep the runs that somebody who begins now or later can extend: how many."""
    kept = 0
    for run in range(alive):
        live, opened = True, False
        for p in range(runs.shape[1]):
            if runs[run, p] < 0:
                opened = True
            else:  # nobody comes in time to be before it, or it is out of the window
                live = live and not (opened and uppers[run, p] <= now) and uppers[run, p] + within > now
                opened = False
        if live:
            if kept < run:
                runs[kept], uppers[kept] = runs[run], uppers[run]
            kept += 1
    return kept


@njit
def _is_full(picked: Array) -> bool:
    for event in picked:  # noqa: SIM110 (Numba compiles a loop faster than a generator)
        if event < 0:
            return False
    return True
