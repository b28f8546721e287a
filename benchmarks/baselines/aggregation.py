"""What the kernels are measured by: loops written by hand for one pattern each, on the same columns.

They know everything at compile time (the pattern, the number system, that no two events share a time), so their
rates say what the machine can do; and they are another way to the same answers. Where a general kernel loses to one of
them, that is the price of being general. `walk_lanes`, `increasing_by_scan` are the algorithms of the papers: every
event in every window, every event against every earlier one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]

A_BIT = np.uint8(1)
"""The bit of position 0 in a pattern that begins with A; every other event of these streams is a B."""


# ------------------------------------------------------------------------------ SEQ(A+, B), skip-till-any-match


@njit
def walk(fits: Array, low: Array, high: Array) -> Array:
    """SEQ(A+, B) in doubles: an A doubles the open trends and adds one, a B closes a copy of each. No branch."""
    out = np.empty(len(low))
    for span in range(len(low)):
        open_, closed = 0.0, 0.0
        for event in range(low[span], high[span]):
            a = float(fits[event] & A_BIT)
            closed += open_ - a * open_
            open_ += a * (open_ + 1.0)
        out[span] = closed
    return out


@njit
def walk_wide(fits: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The same in integers of two words, without looking for overflow: (low words, high words)."""
    lows, highs = np.empty(len(low), np.uint64), np.empty(len(low), np.uint64)
    one = np.uint64(1)
    for span in range(len(low)):
        open_low, open_high, low_word, high_word = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for event in range(low[span], high[span]):
            if fits[event] & A_BIT:
                open_high = (open_high << one) | (open_low >> np.uint64(63))
                open_low = (open_low << one) | one
            else:
                low_word += open_low
                high_word += open_high + (one if low_word < open_low else np.uint64(0))
        lows[span], highs[span] = low_word, high_word
    return lows, highs


@njit(fastmath=True)
def walk_lanes(fits: Array, low: Array, high: Array, lanes: int) -> Array:
    """SEQ(A+, B) in doubles with one lane per open window: what an event costs where windows share nothing."""
    out = np.zeros(len(low))
    open_, closed = np.zeros(lanes), np.zeros(lanes)
    first = last = 0  # windows that are open, window w in lane w % lanes
    for event in range(low[0], high[-1]):
        while first < last and high[first] <= event:
            out[first] = closed[first % lanes]
            first += 1
        while last < len(low) and low[last] <= event:
            open_[last % lanes] = closed[last % lanes] = 0.0
            last += 1
        if fits[event] & A_BIT:
            for lane in range(lanes):
                open_[lane] += open_[lane] + 1.0
        else:
            for lane in range(lanes):
                closed[lane] += open_[lane]
    for window in range(first, len(low)):
        out[window] = closed[window % lanes]
    return out


def start_of_walk() -> Array:
    """Open and closed trends, one exponent for both: what `walk_on` carries from chunk to chunk."""
    return np.zeros(3)


@njit
def walk_on(state: Array, fits: Array) -> None:
    """SEQ(A+, B) over a chunk of a stream without end: open and closed · 2^exponent, scaled down when they grow."""
    open_, closed, exponent = state[0], state[1], state[2]
    one = 2.0**-exponent
    for event in range(len(fits)):
        if fits[event] & A_BIT:
            open_ += open_ + one
        else:
            closed += open_
        if closed > 2.0**500 or open_ > 2.0**500:
            open_, closed, exponent = open_ * 2.0**-500, closed * 2.0**-500, exponent + 500
            one = 2.0**-exponent
    state[0], state[1], state[2] = open_, closed, exponent


def log_of_walk(state: Array) -> float:
    """The base-10 logarithm of the closed trends."""
    return float(np.log10(state[1]) + state[2] * np.log10(2.0))


def exact(words: tuple[Array, Array]) -> Array:
    """Numbers of two words as Python integers."""
    low, high = words
    found: Array = low.astype(object) + (high.astype(object) << 64)
    return found


# --------------------------------------------------------------------- S+ with S.price < NEXT(S).price, any match


@njit(fastmath=True)
def increasing_by_scan(price: Array) -> float:
    """The number of rising subsequences by trying every predecessor, in plain doubles: O(n²), a few pairs per cycle."""
    count = np.empty(len(price))
    total = 0.0
    for event in range(len(price)):
        mine, bound = 1.0, price[event]
        for other in range(event):
            mine += count[other] if price[other] < bound else 0.0
        count[event] = mine
        total += mine
    return total


@njit(fastmath=True)
def log_increasing_by_scan(price: Any) -> Any:
    """The same at any size, as a base-10 logarithm: mantissa · 2^(500 · exponent), two passes per event."""
    mantissa, exponent = np.empty(len(price)), np.empty(len(price), np.int64)
    total, total_exponent = 0.0, np.int64(0)
    for event in range(len(price)):
        bound, most = price[event], np.int64(0)
        for other in range(event):
            most = max(most, exponent[other] if price[other] < bound else np.int64(0))
        mine, less = (1.0, 0.0) if most == 0 else (0.0, 1.0 if most == 1 else 0.0)
        for other in range(event):
            value = mantissa[other] if price[other] < bound else 0.0
            mine += value if exponent[other] == most else 0.0
            less += value if exponent[other] == most - 1 else 0.0
        mine += less * 2.0**-500
        mantissa[event], exponent[event] = (mine * 2.0**-500, most + 1) if mine >= 2.0**250 else (mine, most)
        total, total_exponent = _sum(total, total_exponent, mantissa[event], 500 * exponent[event])
    return np.log10(total) + total_exponent * np.log10(2.0)


def log_increasing(price: Array) -> float:
    """The base-10 logarithm of the number of rising subsequences, by a Fenwick tree. O(n log n)."""
    order = np.sort(price)
    mantissa, exponent = _increasing(np.searchsorted(order, price), len(price))
    found: float = np.log10(mantissa) + exponent * np.log10(2.0)
    return found


@njit
def _increasing(below: Any, size: Any) -> Any:
    """`below[e]`: how many prices are below that of e. Numbers are mantissa · 2^exponent, of which each has its own."""
    mantissa, exponent = np.zeros(size + 1), np.zeros(size + 1, np.int64)
    total, total_exponent = 0.0, np.int64(0)
    for event in range(len(below)):
        mine, own = 1.0, np.int64(0)
        node = below[event]
        while node > 0:
            mine, own = _sum(mine, own, mantissa[node], exponent[node])
            node &= node - 1
        node = below[event] + 1
        while node <= size:
            mantissa[node], exponent[node] = _sum(mantissa[node], exponent[node], mine, own)
            node += node & -node
        total, total_exponent = _sum(total, total_exponent, mine, own)
    return total, total_exponent


@njit
def _sum(a: Any, a_exponent: Any, b: Any, b_exponent: Any) -> Any:
    if b == 0.0 or (a != 0.0 and a_exponent > b_exponent + 500):
        return a, a_exponent
    if a == 0.0 or b_exponent > a_exponent + 500:
        return b, b_exponent
    if a_exponent < b_exponent:
        a, a_exponent, b, b_exponent = b, b_exponent, a, a_exponent
    if a_exponent > b_exponent:
        b *= 2.0**-500
    a += b
    return (a * 2.0**-500, a_exponent + 500) if a >= 2.0**250 else (a, a_exponent)


# ------------------------------------------------------------------------------------------- runs, by hand


@njit
def runs(fits: Array, low: Array, high: Array) -> Array:
    """SEQ(A+, B) under next, and under contiguous where other events (no bit at all) end every run: matches."""
    out = np.empty(len(low), np.int64)
    for span in range(len(low)):
        waiting, closed = np.int64(0), np.int64(0)
        for event in range(low[span], high[span]):
            word = np.int64(fits[event])
            waits = word & 1
            closed += (word >> 1) * waiting
            waiting = waits * (waiting + 1)
        out[span] = closed
    return out


@njit
def rising_contiguous(price: Any, low: Any, high: Any) -> Any:
    """S+ with S.price < NEXT(S).price under contiguous: matches."""
    out = np.empty(len(low), np.int64)
    for span in range(len(low)):
        total, length = np.int64(0), np.int64(0)
        for event in range(low[span], high[span]):
            rises = event > low[span] and price[event - 1] < price[event]
            length = np.int64(1) + (length if rises else np.int64(0))
            total += length
        out[span] = total
    return out


@njit
def rising_next(price: Array, low: Array, high: Array) -> Array:
    """The same under skip-till-next-match: events that wait for a greater price are a stack of falling prices."""
    out = np.empty(len(low), np.int64)
    stack_price, stack_runs = np.empty(len(price)), np.empty(len(price), np.int64)
    for span in range(len(low)):
        total, height = np.int64(0), 0
        for event in range(low[span], high[span]):
            mine = np.int64(1)
            while height > 0 and stack_price[height - 1] < price[event]:
                height -= 1
                mine += stack_runs[height]
            stack_price[height], stack_runs[height] = price[event], mine
            height += 1
            total += mine
        out[span] = total
    return out
