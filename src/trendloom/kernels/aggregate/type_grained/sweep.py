"""Run events through the matrices of a program: the inner loops of the type-grained kernel.

`advance` carries rows of numbers over a stretch of events, `advance_least` the least values. Lanes are independent: one
lane carries what a window begins with, several lanes the columns of the matrix that the stretch as a whole is.

Cost: O(terms of an event's kind · lanes) per event, and per word of events where no term has a weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import ABSENT
from trendloom.kernels.aggregate.type_grained.matrices import MatrixTerms
from trendloom.kernels.columns.numbers import (
    BORROWED,
    INLINE,
    Numbers,
    add,
    add_times,
    by_system,
    clear,
    combine,
    copy,
    lanes_of,
)
from trendloom.kernels.columns.words import integer_at, put_integer, wide_product
from trendloom.kernels.jit.compiled import INSIDE, implements, is_interpreted, lacks, njit, operation


class TimedInstantKinds(NamedTuple):
    """A block as read by `advance`: points in time with their letters, see `matrices`. `own` and `union` go by event.

    Without `start` every event is a point in time, or tied to its neighbours. `own` and `union` are None where every
    point in time has a letter: what ties need is not compiled then.
    """

    code: Array
    tied: int
    start: Array
    own: Any
    union: Any
    instant: Array
    weights: Array  # [weight, event]


class Steps(NamedTuple):
    """The tables of a program; see `matrices`. `single`: the terms of every letter.

    `words`: the matrices of words, those of n letters from `offset[n]` on. They are None where terms have weights, or
    where there are too few events to pay for them: what words need is not compiled then.
    """

    single: MatrixTerms
    words: Any
    words_of_doubles: Any
    offset: Array
    instant_kinds: int
    kept: MatrixTerms
    entered: MatrixTerms
    order: Array
    size: int  # rows: slots, and once more per linear measure


@njit(nogil=True, inline="always")
def advance(rows: Numbers, spare: Numbers, begin: int, end: int, steps: Steps, events: TimedInstantKinds) -> None:
    """Carry the numbers of all slots over points in time begin..end of one key. `spare` has twice as many rows."""
    at = begin
    while at < end:
        at = carry_words(rows, spare, at, end, steps, events)
        if at < end and events.code[at] != events.tied:
            at = carry(rows, spare, at, end, steps, events)
        if at < end:
            at = _carry_tied(rows, spare, at, end, steps, events, events.own)


@njit(**BORROWED)
def _carry_tied(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any, own: Any) -> Any:
    """Apply the events of one time, which have no letter; returns where the next time begins.

    Where every time has a letter `own` is None, and nothing of this is compiled. References to arrays are not counted
    here, not even for `Limbs`: what allocates for them is compiled with `carry`, before this.
    """
    if own is None:
        return end
    if len(events.start) > 0:
        first, last, stop = events.start[at], events.start[at + 1], at + 1
    else:
        stop = _tie_end(events.instant, at, end)
        first, last = at, stop
    _apply_together(rows, spare, first, last, steps, events)
    return stop


@njit(**INSIDE)
def _tie_end(instant: Array, at: int, end: int) -> int:
    stop = at + 1
    while stop < end and instant[stop] == instant[at]:
        stop += 1
    return stop


@njit(**INSIDE)
def _apply_together(rows: Any, spare: Any, begin: int, end: int, steps: Any, events: Any) -> None:
    """Events of one time: each enters from what was there before them, or (inside AND) from what entered with them.

    What entered is collected in the upper half of `spare`.
    """
    size, entered, kept, weights = steps.size, steps.entered, steps.kept, events.weights
    for row in range(size, 2 * size):
        clear(spare, row)
    if entered.any_late:
        _enter_in_order(rows, spare, begin, end, steps, events)
    else:
        for event in range(begin, end):
            kind = events.own[event]
            for at in range(entered.begin[kind], entered.begin[kind + 1]):
                first, last = entered.first[at], entered.first[at + 1]
                combine(spare, size + entered.row[at], rows, entered.terms, first, last, weights, event)
    low, high = kept.begin[events.union[begin]], kept.begin[events.union[begin] + 1]
    for at in range(low, high):
        clear(spare, at - low)
        combine(spare, at - low, rows, kept.terms, kept.first[at], kept.first[at + 1], weights, begin)
    for at in range(low, high):
        copy(rows, kept.row[at], spare, at - low)
    for row in range(size):
        add(rows, row, spare, size + row)


@njit(**INSIDE)
def _enter_in_order(rows: Any, spare: Any, begin: int, end: int, steps: Any, events: Any) -> None:
    size, entered, order, weights = steps.size, steps.entered, steps.order, events.weights
    for slot in order:
        for event in range(begin, end):
            kind = events.own[event]
            for at in range(entered.begin[kind], entered.begin[kind + 1]):
                if entered.row[at] % len(order) == slot:
                    for term in range(entered.first[at], entered.first[at + 1]):
                        row, weight = size + entered.row[at], entered.terms.weight[term]
                        source = size + entered.terms.source[term]
                        if not entered.late[term]:
                            combine(spare, row, rows, entered.terms, term, term + 1, weights, event)
                        elif weight >= 0:
                            add_times(spare, row, spare, source, weights[weight, event])
                        else:
                            add(spare, row, spare, source)


# ------------------------------------------------------------------------------------- the innermost loops


@operation
def carry_words(rows: Numbers, spare: Numbers, at: int, end: int, steps: Steps, events: TimedInstantKinds) -> int:
    """Multiply by the matrices of words, if there are any, up to a tied event or the end; returns where.

    Exact numbers stop before they need a product that could spill; `carry` goes on from there. Loops over few rows and
    lanes have bounds that the compiler knows, and are unrolled: that is three times as fast.
    """
    raise NotImplementedError


@njit(**BORROWED)
def _word(at: int, end: int, steps: Any, events: Any) -> tuple[int, int]:
    """The longest word from here on that no tied event interrupts: its number and its length."""
    codes, tied, base, offset = events.code, events.tied, steps.instant_kinds, steps.offset
    if len(offset) == 9 and at + 8 <= end:  # eight letters at once, pair by pair, where none waits for another
        a, b, c, d = codes[at], codes[at + 1], codes[at + 2], codes[at + 3]
        e, f, g, h = codes[at + 4], codes[at + 5], codes[at + 6], codes[at + 7]
        some = (a == tied) | (b == tied) | (c == tied) | (d == tied)
        if not (some | (e == tied) | (f == tied) | (g == tied) | (h == tied)):
            square = base * base
            first = (int(a) * base + b) * square + (int(c) * base + d)
            second = (int(e) * base + f) * square + (int(g) * base + h)
            return first * (square * square) + second + offset[8], 8
    word, length = 0, 0
    while length < len(offset) - 1 and at + length < end and codes[at + length] != tied:
        word = word * base + int(codes[at + length])
        length += 1
    return word + offset[length], length


@njit(**BORROWED)
def _words_of_doubles(
    rows: Any, spare: Any, at: int, end: int, steps: Any, events: Any, size: int, lanes: int
) -> int:  # fmt: skip
    value, new, words = rows.value, spare.value, steps.words_of_doubles
    while at < end:
        word, length = _word(at, end, steps, events)
        if length == 0:
            break
        for row in range(size):
            for lane in range(lanes):
                total = 0.0
                for source in range(size):
                    total += words[word, row, source] * value[source, lane]
                new[row, lane] = total
        for row in range(size):
            for lane in range(lanes):
                value[row, lane] = new[row, lane]
        at += length
    return at


@njit(**BORROWED)
def _words_of_wides(rows: Any, spare: Any, at: int, end: int, steps: Any, events: Any, size: int, lanes: int) -> int:
    """Coefficients are below 2^31 and numbers not negative, so a product fits if the high word is below 2^31 too.

    While all numbers are so small that a word's sums fit 64 bits (below 2^40: rows of coefficients add up to less than
    2^24), the low words alone are multiplied.
    """
    lows, highs, new_low, new_high, words = rows.low, rows.high, spare.low, spare.high, steps.words
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    bottoms, tops = np.uint64(0), np.int64(0)
    for row in range(size):
        for lane in range(lanes):
            bottoms |= lows[row, lane]
            tops |= highs[row, lane]
    while at < end and 0 <= tops < 2**31:
        word, length = _word(at, end, steps, events)
        if length == 0:
            break
        small = tops == 0 and bottoms < 2**40
        bottoms, tops = np.uint64(0), np.int64(0)
        for row in range(size):
            for lane in range(lanes):
                total, top = np.uint64(0), np.int64(0)
                if small:
                    for source in range(size):
                        total += lows[source, lane] * np.uint64(words[word, row, source])
                else:
                    for source in range(size):
                        factor = words[word, row, source]
                        low, high = lows[source, lane], highs[source, lane]
                        bottom = (low & mask) * np.uint64(factor)
                        middle = (low >> half) * np.uint64(factor) + (bottom >> half)
                        low = (middle << half) | (bottom & mask)
                        total += low
                        top += high * factor + np.int64(middle >> half) + (np.int64(1) if total < low else np.int64(0))
                new_low[row, lane], new_high[row, lane] = total, top
                bottoms |= total
                tops |= top
        for row in range(size):
            for lane in range(lanes):
                lows[row, lane], highs[row, lane] = new_low[row, lane], new_high[row, lane]
        at += length
    return at


@implements(carry_words, INLINE, wraps=True)
def _carry_words(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
    of_system = by_system(rows, doubles=_words_of_doubles, wides=_words_of_wides, limbs=None, scaled=None)

    def unrolled(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
        size, lanes = steps.words.shape[1], lanes_of(rows)
        if size == 2 and lanes == 1:
            return of_system(rows, spare, at, end, steps, events, 2, 1)
        if size == 2 and lanes == 2:
            return of_system(rows, spare, at, end, steps, events, 2, 2)
        if size == 3 and lanes == 1:
            return of_system(rows, spare, at, end, steps, events, 3, 1)
        if size == 3 and lanes == 2:
            return of_system(rows, spare, at, end, steps, events, 3, 2)
        if size == 4 and lanes == 1:
            return of_system(rows, spare, at, end, steps, events, 4, 1)
        if size == 4 and lanes == 3:
            return of_system(rows, spare, at, end, steps, events, 4, 3)
        return of_system(rows, spare, at, end, steps, events, size, lanes)

    def others(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
        size, words = steps.size, steps.words
        while at < end:
            word, length = _word(at, end, steps, events)
            if length == 0:
                break
            for row in range(size):
                clear(spare, row)
                for source in range(size):
                    factor = words[word, row, source]
                    if factor == 1:
                        add(spare, row, rows, source)
                    elif factor != 0:
                        add_times(spare, row, rows, source, factor)
            for row in range(size):
                copy(rows, row, spare, row)
            at += length
        return at

    def nothing(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
        return at

    if lacks(steps, "words"):
        return nothing
    return others if of_system is None else unrolled


@operation
def carry(rows: Numbers, spare: Numbers, at: int, end: int, steps: Steps, events: TimedInstantKinds) -> int:
    """Multiply by the matrices of single letters up to a tied event or the end; returns where."""
    raise NotImplementedError


@implements(carry, INLINE, wraps=True)
def _carry(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
    def doubles(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
        codes, tied, weights, value, new = events.code, events.tied, events.weights, rows.value, spare.value
        begin, row, first = steps.single.begin, steps.single.row, steps.single.first
        source, coefficient, weight = steps.single.terms
        while at < end and codes[at] != tied:
            low, high = begin[codes[at]], begin[codes[at] + 1]
            for lane in range(value.shape[1]):
                for entry in range(low, high):
                    total = 0.0
                    for term in range(first[entry], first[entry + 1]):
                        factor = float(coefficient[term])
                        if weight[term] >= 0:
                            factor = float(weights[weight[term], at])
                        total += value[source[term], lane] * factor
                    new[entry - low, lane] = total
                for entry in range(low, high):
                    value[row[entry], lane] = new[entry - low, lane]
            at += 1
        return at

    def wides(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
        codes, tied, weights = events.code, events.tied, events.weights
        lows, highs, new_low, new_high, spill = rows.low, rows.high, spare.low, spare.high, spare.spill
        begin, row, first = steps.single.begin, steps.single.row, steps.single.first
        source, coefficient, weight = steps.single.terms
        one, none = np.int64(1), np.int64(0)
        while at < end and codes[at] != tied:
            start, stop = begin[codes[at]], begin[codes[at] + 1]
            for lane in range(lows.shape[1]):
                over = none
                for entry in range(start, stop):
                    total, top = np.uint64(0), none
                    for term in range(first[entry], first[entry + 1]):
                        factor = coefficient[term]
                        if weight[term] >= 0:
                            factor = np.int64(weights[weight[term], at])
                        low, high = lows[source[term], lane], highs[source[term], lane]
                        if factor != 1:
                            low, high, bad = wide_product(low, high, factor)
                            over |= bad
                        total += low
                        top += high + (one if total < low else none)
                        over |= top ^ (top << one)
                    new_low[entry - start, lane], new_high[entry - start, lane] = total, top
                for entry in range(start, stop):
                    lows[row[entry], lane] = new_low[entry - start, lane]
                    highs[row[entry], lane] = new_high[entry - start, lane]
                spill[lane] |= over
            at += 1
        return at

    def others(rows: Any, spare: Any, at: Any, end: Any, steps: Any, events: Any) -> Any:
        begin, row, first, terms = steps.single.begin, steps.single.row, steps.single.first, steps.single.terms
        while at < end and events.code[at] != events.tied:
            low, high = begin[events.code[at]], begin[events.code[at] + 1]
            for entry in range(low, high):
                clear(spare, entry - low)
                combine(spare, entry - low, rows, terms, first[entry], first[entry + 1], events.weights, at)
            for entry in range(low, high):
                copy(rows, row[entry], spare, entry - low)
            at += 1
        return at

    if is_interpreted(rows):
        return by_system(rows, doubles=doubles, wides=_carry_integers, limbs=_carry_integers, scaled=others)
    return by_system(rows, doubles=doubles, wides=wides, limbs=others, scaled=others)


def _carry_integers(rows: Any, spare: Any, at: int, end: int, steps: Steps, events: TimedInstantKinds) -> int:
    """As `carry`, interpreted, for exact numbers: Python's integers are five times as fast as pairs of words.

    The same numbers result; a number that does not fit is noted where the compiled loops note it, too.
    """
    word = events.code[at:end].tolist()
    word = word[: word.index(events.tied)] if events.tied in word else word
    begin, row, first = (one.tolist() for one in steps.single[:3])
    source, coefficient, weight = (one.tolist() for one in steps.single.terms)
    used = sorted({*row, *source})
    for lane in range(len(spare.spill)):
        value = {one: integer_at(rows, one, lane) for one in used}
        for event, code in enumerate(word, at):
            entries = range(begin[code], begin[code + 1])
            new = []
            for entry in entries:
                total = 0
                for term in range(first[entry], first[entry + 1]):
                    factor = int(events.weights[weight[term], event]) if weight[term] >= 0 else coefficient[term]
                    total += value[source[term]] * factor
                new.append(total)
            value.update(zip((row[entry] for entry in entries), new, strict=True))
        for one in used:
            if not put_integer(rows, one, lane, value[one], spare.spill):
                break
    return at + len(word)


# ----------------------------------------------------------------------------------------------- least values


@njit(**INSIDE)
def advance_least(
    least: Array,
    spare: Array,
    begin: int,
    end: int,
    steps: Steps,
    events: TimedInstantKinds,
    values: Array,
    valued: Array,
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
            stop = _tie_end(events.instant, at, end)
            spare[slots : 2 * slots] = ABSENT
            for slot in steps.order:
                for event in range(at, stop):
                    _enter_least(least, spare, slot, steps.entered, events.own[event], slots, values[event], valued)
            _apply_least(least, spare, steps.kept, events.union[at], slots, ABSENT, valued)
            for slot in range(slots):
                for lane in range(least.shape[1]):
                    least[slot, lane] = min(least[slot, lane], spare[slots + slot, lane])
            at = stop


@njit(**INSIDE)
def _bring(into: Array, to: int, of: Array, source: int, value: int) -> None:
    """The least of what is there and what comes from `source`, in all lanes; an absent match stays absent."""
    for lane in range(into.shape[1]):
        if of[source, lane] != ABSENT:
            into[to, lane] = min(into[to, lane], of[source, lane], value)


@njit(**INSIDE)
def _apply_least(
    least: Array, spare: Array, terms: MatrixTerms, kind: int, slots: int, value: int, valued: Array
) -> None:
    begin, end = terms.begin[kind], terms.begin[kind + 1]
    for at in range(begin, end):
        if terms.row[at] < slots:
            spare[at - begin] = ABSENT
            for term in range(terms.first[at], terms.first[at + 1]):
                mine = value if terms.enters[term] and valued[terms.row[at]] else ABSENT
                _bring(spare, at - begin, least, terms.terms.source[term], mine)
    for at in range(begin, end):
        if terms.row[at] < slots:
            least[terms.row[at]] = spare[at - begin]


@njit(**INSIDE)
def _enter_least(
    least: Array, spare: Array, slot: int, terms: MatrixTerms, kind: int, slots: int, value: int, valued: Array
) -> None:
    for at in range(terms.begin[kind], terms.begin[kind + 1]):
        if terms.row[at] == slot:
            for term in range(terms.first[at], terms.first[at + 1]):
                mine, source = value if valued[slot] else ABSENT, terms.terms.source[term]
                if terms.late[term]:
                    _bring(spare, slots + slot, spare, slots + source, mine)
                else:
                    _bring(spare, slots + slot, least, source, mine)
