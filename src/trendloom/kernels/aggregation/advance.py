"""Run events through the matrices of a program: the inner loops of the type-grained kernel.

`advance` carries rows of numbers over a stretch of events, `advance_least` the least values. Lanes are independent: one
lane carries what a window begins with, several lanes the columns of the matrix that the stretch as a whole is.

Cost: O(terms of an event's kind · lanes) per event, and per word of events where no term has a weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from trendloom.kernels.aggregation.job import ABSENT
from trendloom.kernels.aggregation.matrices import Terms
from trendloom.kernels.columns.numbers import Numbers, add, add_times, clear, copy

Array = np.ndarray[Any, Any]


class Events(NamedTuple):
    """The events of a block as kernels read them; see `kinds`."""

    code: Array
    tied: int
    own: Array
    union: Array
    time: Array
    weights: Array  # [weight, event]


class Steps(NamedTuple):
    """The tables of a program; see `matrices`."""

    single: Terms
    kept: Terms
    entered: Terms
    word: Terms
    order: Array
    length: int
    kinds: int


@numba.njit(cache=True, nogil=True)
def advance(rows: Numbers, spare: Numbers, begin: int, end: int, steps: Steps, events: Events) -> None:
    """Carry the numbers of all slots over events begin..end of one key. `spare` has twice as many rows."""
    at = begin
    while at < end:
        if steps.length > 1 and at + steps.length <= end:
            word = 0
            for letter in range(at, at + steps.length):
                code = events.code[letter]
                if code == events.tied:
                    word = -1
                    break
                word = word * steps.kinds + code
            if word >= 0:
                _apply(rows, spare, steps.word, word, events.weights, at)
                at += steps.length
                continue
        code = events.code[at]
        if code != events.tied:
            _apply(rows, spare, steps.single, code, events.weights, at)
            at += 1
        else:
            stop = _tie_end(events.time, at, end)
            _apply_together(rows, spare, at, stop, steps, events)
            at = stop


@numba.njit(cache=True, nogil=True)
def _tie_end(time: Array, at: int, end: int) -> int:
    stop = at + 1
    while stop < end and time[stop] == time[at]:
        stop += 1
    return stop


@numba.njit(cache=True, nogil=True)
def _apply(rows: Numbers, spare: Numbers, terms: Terms, kind: int, weights: Array, event: int) -> None:
    """Multiply by the matrix of a kind: all changed rows are computed from the old ones, then put in place."""
    begin, end = terms.begin[kind], terms.begin[kind + 1]
    for at in range(begin, end):
        clear(spare, at - begin)
        for term in range(terms.first[at], terms.first[at + 1]):
            if terms.weight[term] >= 0:
                add_times(spare, at - begin, rows, terms.source[term], weights[terms.weight[term], event])
            elif terms.coefficient[term] == 1:
                add(spare, at - begin, rows, terms.source[term])
            else:
                add_times(spare, at - begin, rows, terms.source[term], terms.coefficient[term])
    for at in range(begin, end):
        copy(rows, terms.row[at], spare, at - begin)


@numba.njit(cache=True, nogil=True)
def _apply_together(rows: Numbers, spare: Numbers, begin: int, end: int, steps: Steps, events: Events) -> None:
    """Events of one time: each enters from what was there before them, or (inside AND) from what entered with them.

    What entered is collected in the upper half of `spare`.
    """
    slots, terms = len(steps.order), steps.entered
    size = slots * ((terms.row.max() if len(terms.row) > 0 else 0) // slots + 1)
    for row in range(size):
        clear(spare, size + row)
    for slot in steps.order:
        for event in range(begin, end):
            kind = events.own[event]
            for at in range(terms.begin[kind], terms.begin[kind + 1]):
                row = size + terms.row[at]
                if terms.row[at] % slots == slot:
                    for term in range(terms.first[at], terms.first[at + 1]):
                        weight, source = terms.weight[term], terms.source[term]
                        if terms.late[term] and weight >= 0:
                            add_times(spare, row, spare, size + source, events.weights[weight, event])
                        elif terms.late[term]:
                            add(spare, row, spare, size + source)
                        elif weight >= 0:
                            add_times(spare, row, rows, source, events.weights[weight, event])
                        else:
                            add(spare, row, rows, source)
    _apply(rows, spare, steps.kept, events.union[begin], events.weights, begin)
    for row in range(size):
        add(rows, row, spare, size + row)


# ----------------------------------------------------------------------------------------------- least values


@numba.njit(cache=True, nogil=True)
def advance_least(
    least: Array, spare: Array, begin: int, end: int, steps: Steps, events: Events, values: Array, valued: Array
) -> None:
    """Carry the least values of all slots, `least[slot, lane]`, over events; see `advance`.

    `values[event]` is what an event brings along, if it enters a slot of `valued`.
    """
    slots, at = len(steps.order), begin
    while at < end:
        code = events.code[at]
        if code != events.tied:
            _apply_least(least, spare, steps.single, code, slots, values[at], valued)
            at += 1
        else:
            stop = _tie_end(events.time, at, end)
            spare[slots : 2 * slots] = ABSENT
            for slot in steps.order:
                for event in range(at, stop):
                    _enter_least(least, spare, slot, steps.entered, events.own[event], slots, values[event], valued)
            _apply_least(least, spare, steps.kept, events.union[at], slots, ABSENT, valued)
            for slot in range(slots):
                for lane in range(least.shape[1]):
                    least[slot, lane] = min(least[slot, lane], spare[slots + slot, lane])
            at = stop


@numba.njit(cache=True, nogil=True)
def _bring(into: Array, to: int, of: Array, source: int, value: int) -> None:
    """The least of what is there and what comes from `source`, in all lanes; an absent match stays absent."""
    for lane in range(into.shape[1]):
        if of[source, lane] != ABSENT:
            into[to, lane] = min(into[to, lane], of[source, lane], value)


@numba.njit(cache=True, nogil=True)
def _apply_least(least: Array, spare: Array, terms: Terms, kind: int, slots: int, value: int, valued: Array) -> None:
    begin, end = terms.begin[kind], terms.begin[kind + 1]
    for at in range(begin, end):
        if terms.row[at] < slots:
            spare[at - begin] = ABSENT
            for term in range(terms.first[at], terms.first[at + 1]):
                mine = value if terms.enters[term] and valued[terms.row[at]] else ABSENT
                _bring(spare, at - begin, least, terms.source[term], mine)
    for at in range(begin, end):
        if terms.row[at] < slots:
            least[terms.row[at]] = spare[at - begin]


@numba.njit(cache=True, nogil=True)
def _enter_least(
    least: Array, spare: Array, slot: int, terms: Terms, kind: int, slots: int, value: int, valued: Array
) -> None:
    for at in range(terms.begin[kind], terms.begin[kind + 1]):
        if terms.row[at] == slot:
            for term in range(terms.first[at], terms.first[at + 1]):
                mine, source = value if valued[slot] else ABSENT, terms.source[term]
                if terms.late[term]:
                    _bring(spare, slots + slot, spare, slots + source, mine)
                else:
                    _bring(spare, slots + slot, least, source, mine)
