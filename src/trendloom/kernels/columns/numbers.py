"""Number systems for counts that outgrow 64 bits: rows of numbers, side by side in lanes, changed in place.

A kernel is written once against the operations below and compiled for the system it is given:

- `Doubles`: IEEE doubles, one word each; infinity beyond 1.8e308.
- `Wides`: signed integers of two 64-bit words, exact below 2^126; whatever reaches that is noted in `spill`.
- `Limbs`: signed integers of as many 64-bit words as allocated, with `spill` likewise.
- `Scaled`: mantissa · 2^(512 · exponent), 53 bits of precision at any size. Every number has its own exponent: a
  small one keeps its value beside a huge one, which may be discarded later.

`row` selects numbers that belong together, one per *lane* (windows that overlap, columns of a matrix). All operations
are O(lanes · words); `multiply_into` is O(words²). `spill[lane] < 0` once a result in that lane did not fit: what it
holds since then means nothing, and the work is repeated with more words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.words import (
    add_limbs,
    add_limbs_product,
    add_limbs_row,
    add_limbs_times,
    add_limbs_unit,
    add_row,
    add_scaled,
    add_scaled_product,
    add_wide,
    add_wide_product,
    clear_limbs,
    clear_row,
    copy_limbs,
    no_limbs,
)
from trendloom.kernels.jit.compiled import INSIDE, class_of, implements, is_interpreted, njit, operation

INLINE: Any = {"forceinline": True, **INSIDE}
"""Operations are compiled into the kernels that use them: a call that hands on arrays costs more than an addition."""
LEAN: Any = {"nogil": True, "_nrt": False}
"""Kernels that allocate nothing need no references counted, which costs more than the additions they make."""
BORROWED: Any = {**INLINE, "_nrt": False}
"""The same for parts of such kernels that are chosen by type."""


class Doubles(NamedTuple):
    """`value[row, lane]`."""

    value: Array


class Wides(NamedTuple):
    """`high[row, lane]` · 2^64 + `low[row, lane]`, in two's complement."""

    low: Array
    high: Array
    spill: Array


class Limbs(NamedTuple):
    """`words[row, lane]` from the lowest word to the highest, in two's complement."""

    words: Array
    spill: Array


class Scaled(NamedTuple):
    """`mantissa[row, lane]` · 2^(512 · `exponent[row, lane]`); exponents are never negative."""

    mantissa: Array
    exponent: Array


Numbers = Doubles | Wides | Limbs | Scaled


class Factor(NamedTuple):
    """One number, an operand of a product."""

    numbers: Numbers
    row: int
    lane: int


class Combination(NamedTuple):
    """Terms of sums: numbers of row `source`, times `coefficient`, or times weight number `weight` (−1: none)."""

    source: Array
    coefficient: Array
    weight: Array


def zeros(system: type[Numbers], rows: int, lanes: int, words: int = 2) -> Numbers:
    """Numbers of a system, all zero. `words` matters to `Limbs` alone."""
    if system is Doubles:
        return Doubles(np.zeros((rows, lanes)))
    if system is Scaled:
        return Scaled(np.zeros((rows, lanes)), np.zeros((rows, lanes), np.int64))
    spill = np.zeros(lanes, np.int64)
    if system is Wides:
        return Wides(np.zeros((rows, lanes), np.uint64), np.zeros((rows, lanes), np.int64), spill)
    return Limbs(np.zeros((rows, lanes, words), np.uint64), spill)


def integers(numbers: Wides | Limbs, lane: int) -> Array:
    """The exact values of a lane: int64 where all fit, else Python integers."""
    if isinstance(numbers, Wides):
        low, high = numbers.low[:, lane], numbers.high[:, lane]
        if (high == (low.view(np.int64) >> 63)).all():
            return low.view(np.int64)
        wide: Array = low.astype(object) + (high.astype(object) << 64)
        return wide
    found = np.empty(len(numbers.words), object)
    found[:] = [int.from_bytes(number.tobytes(), "little", signed=True) for number in numbers.words[:, lane]]
    return found


# ------------------------------------------------------------------------------------- operations (in kernels)


@operation
def zeros_like(numbers: Numbers, rows: int, lanes: int) -> Numbers:
    """Numbers of the same system and width, all zero."""
    raise NotImplementedError


@njit(**INLINE)
def lanes_of(a: Any) -> Any:
    """The number of lanes; in every system they are the second axis of the first array."""
    return a[0].shape[1]


@operation
def clear(a: Numbers, i: int) -> None:
    """a[i] = 0, in all lanes."""


@operation
def copy(a: Numbers, i: int, b: Numbers, j: int) -> None:
    """a[i] = b[j], in all lanes."""


@operation
def add(a: Numbers, i: int, b: Numbers, j: int) -> None:
    """a[i] += b[j], in all lanes."""


@operation
def add_times(a: Numbers, i: int, b: Numbers, j: int, weight: int | float) -> None:
    """a[i] += weight · b[j], in all lanes. Exact systems take integer weights."""


@operation
def combine(
    a: Numbers, i: int, b: Numbers, terms: Combination, first: int, last: int, weights: Array, event: int
) -> None:
    """a[i] += Σ factor · b[source] over terms first..last, in all lanes; the inner loop of products with matrices.

    A term's factor is its coefficient, or `weights[weight, event]` where it has a weight.
    """


@operation
def add_unit(a: Numbers, i: int, lane: int, weight: int | float) -> None:
    """a[i] += weight in one lane."""


@operation
def add_lane(a: Numbers, i: int, lane: int, b: Numbers, j: int, other: int) -> None:
    """a[i] += b[j], from one lane of b to one lane of a."""


@operation
def multiply_into(a: Numbers, i: int, lane: int, left: Factor, right: Factor) -> None:
    """a[i] += left · right, in one lane."""


@operation
def is_zero(a: Numbers, i: int, lane: int) -> bool:
    """Whether a[i] = 0 in one lane."""
    raise NotImplementedError


@operation
def forgive(a: Numbers) -> None:
    """Forget what spilled: the numbers are used for something new."""


@operation
def spilled(a: Numbers, lane: int) -> bool:
    """Whether some number of a lane did not fit since `forgive`."""
    raise NotImplementedError


# ------------------------------------------------------------------------- one implementation per system


def by_system(numbers: Any, *, doubles: Any, wides: Any, limbs: Any, scaled: Any) -> Any:
    """The implementation for the system of a kernel's argument, for `overload`."""
    return {Doubles: doubles, Wides: wides, Limbs: limbs, Scaled: scaled}.get(class_of(numbers))


@implements(zeros_like, INLINE)
def _zeros_like(numbers: Any, rows: Any, lanes: Any) -> Any:
    def doubles(numbers: Any, rows: Any, lanes: Any) -> Any:
        return Doubles(np.zeros((rows, lanes)))

    def wides(numbers: Any, rows: Any, lanes: Any) -> Any:
        return Wides(np.zeros((rows, lanes), np.uint64), np.zeros((rows, lanes), np.int64), np.zeros(lanes, np.int64))

    def limbs(numbers: Any, rows: Any, lanes: Any) -> Any:
        return Limbs(np.zeros((rows, lanes, numbers.words.shape[2]), np.uint64), np.zeros(lanes, np.int64))

    def scaled(numbers: Any, rows: Any, lanes: Any) -> Any:
        return Scaled(np.zeros((rows, lanes)), np.zeros((rows, lanes), np.int64))

    return by_system(numbers, doubles=doubles, wides=wides, limbs=limbs, scaled=scaled)


@implements(clear, INLINE)
def _clear(a: Any, i: Any) -> Any:
    def doubles(a: Any, i: Any) -> None:
        for lane in range(a.value.shape[1]):
            a.value[i, lane] = 0.0

    def pairs(a: Any, i: Any) -> None:
        for lane in range(a[0].shape[1]):
            a[0][i, lane] = 0
            a[1][i, lane] = 0

    def limbs(a: Any, i: Any) -> None:
        clear_limbs(a.words, i)

    def plain(a: Any, i: Any) -> None:
        clear_row(a, i)

    return plain if is_interpreted(a) else by_system(a, doubles=doubles, wides=pairs, limbs=limbs, scaled=pairs)


@implements(copy, INLINE)
def _copy(a: Any, i: Any, b: Any, j: Any) -> Any:
    def doubles(a: Any, i: Any, b: Any, j: Any) -> None:
        for lane in range(a.value.shape[1]):
            a.value[i, lane] = b.value[j, lane]

    def pairs(a: Any, i: Any, b: Any, j: Any) -> None:
        for lane in range(a[0].shape[1]):
            a[0][i, lane] = b[0][j, lane]
            a[1][i, lane] = b[1][j, lane]

    def limbs(a: Any, i: Any, b: Any, j: Any) -> None:
        copy_limbs(a.words, i, b.words, j)

    return by_system(a, doubles=doubles, wides=pairs, limbs=limbs, scaled=pairs)


@implements(add, INLINE)
def _add(a: Any, i: Any, b: Any, j: Any) -> Any:
    def doubles(a: Any, i: Any, b: Any, j: Any) -> None:
        for lane in range(a.value.shape[1]):
            a.value[i, lane] += b.value[j, lane]

    def wides(a: Any, i: Any, b: Any, j: Any) -> None:
        for lane in range(a.low.shape[1]):
            add_wide(a, i, lane, b.low[j, lane], b.high[j, lane])

    def limbs(a: Any, i: Any, b: Any, j: Any) -> None:
        add_limbs_row(a, i, b.words, j)

    def scaled(a: Any, i: Any, b: Any, j: Any) -> None:
        for lane in range(a.mantissa.shape[1]):
            add_scaled(a, i, lane, b.mantissa[j, lane], b.exponent[j, lane])

    def plain(a: Any, i: Any, b: Any, j: Any) -> None:
        add_row(a, i, b, j)

    return plain if is_interpreted(a) else by_system(a, doubles=doubles, wides=wides, limbs=limbs, scaled=scaled)


@implements(add_times, INLINE)
def _add_times(a: Any, i: Any, b: Any, j: Any, weight: Any) -> Any:
    def doubles(a: Any, i: Any, b: Any, j: Any, weight: Any) -> None:
        for lane in range(a.value.shape[1]):
            a.value[i, lane] += weight * b.value[j, lane]

    def wides(a: Any, i: Any, b: Any, j: Any, weight: Any) -> None:
        for lane in range(a.low.shape[1]):
            word = np.uint64(np.int64(weight))
            add_wide_product(a, i, lane, b.low[j, lane], b.high[j, lane], word, np.int64(weight) >> 63)

    def limbs(a: Any, i: Any, b: Any, j: Any, weight: Any) -> None:
        add_limbs_times(a, i, b.words, j, np.int64(weight))

    def scaled(a: Any, i: Any, b: Any, j: Any, weight: Any) -> None:
        for lane in range(a.mantissa.shape[1]):
            add_scaled_product(a, i, lane, b.mantissa[j, lane], b.exponent[j, lane], float(weight))

    return by_system(a, doubles=doubles, wides=wides, limbs=limbs, scaled=scaled)


@implements(combine, INLINE)
def _combine(a: Any, i: Any, b: Any, terms: Any, first: Any, last: Any, weights: Any, event: Any) -> Any:
    def combined(a: Any, i: Any, b: Any, terms: Any, first: Any, last: Any, weights: Any, event: Any) -> None:
        for term in range(first, last):
            if terms.weight[term] >= 0:
                add_times(a, i, b, terms.source[term], weights[terms.weight[term], event])
            elif terms.coefficient[term] == 1:
                add(a, i, b, terms.source[term])
            else:
                add_times(a, i, b, terms.source[term], terms.coefficient[term])

    return combined


@implements(add_unit, INLINE)
def _add_unit(a: Any, i: Any, lane: Any, weight: Any) -> Any:
    def doubles(a: Any, i: Any, lane: Any, weight: Any) -> None:
        a.value[i, lane] += weight

    def wides(a: Any, i: Any, lane: Any, weight: Any) -> None:
        add_wide(a, i, lane, np.uint64(np.int64(weight)), np.int64(weight) >> 63)

    def limbs(a: Any, i: Any, lane: Any, weight: Any) -> None:
        add_limbs_unit(a, i, lane, np.int64(weight))

    def scaled(a: Any, i: Any, lane: Any, weight: Any) -> None:
        add_scaled_product(a, i, lane, 1.0, 0, float(weight))

    return by_system(a, doubles=doubles, wides=wides, limbs=limbs, scaled=scaled)


@implements(add_lane, INLINE)
def _add_lane(a: Any, i: Any, lane: Any, b: Any, j: Any, other: Any) -> Any:
    def doubles(a: Any, i: Any, lane: Any, b: Any, j: Any, other: Any) -> None:
        a.value[i, lane] += b.value[j, other]

    def wides(a: Any, i: Any, lane: Any, b: Any, j: Any, other: Any) -> None:
        add_wide(a, i, lane, b.low[j, other], b.high[j, other])

    def limbs(a: Any, i: Any, lane: Any, b: Any, j: Any, other: Any) -> None:
        add_limbs(a, i, lane, b.words[j, other], False)

    def scaled(a: Any, i: Any, lane: Any, b: Any, j: Any, other: Any) -> None:
        add_scaled(a, i, lane, b.mantissa[j, other], b.exponent[j, other])

    return by_system(a, doubles=doubles, wides=wides, limbs=limbs, scaled=scaled)


@implements(multiply_into, INLINE)
def _multiply_into(a: Any, i: Any, lane: Any, left: Any, right: Any) -> Any:
    def doubles(a: Any, i: Any, lane: Any, left: Any, right: Any) -> None:
        (b, j, x), (c, k, y) = left, right
        a.value[i, lane] += b.value[j, x] * c.value[k, y]

    def wides(a: Any, i: Any, lane: Any, left: Any, right: Any) -> None:
        (b, j, x), (c, k, y) = left, right
        add_wide_product(a, i, lane, b.low[j, x], b.high[j, x], c.low[k, y], c.high[k, y])

    def limbs(a: Any, i: Any, lane: Any, left: Any, right: Any) -> None:
        (b, j, x), (c, k, y) = left, right
        add_limbs_product(a, i, lane, b.words[j, x], c.words[k, y])

    def scaled(a: Any, i: Any, lane: Any, left: Any, right: Any) -> None:
        (b, j, x), (c, k, y) = left, right
        add_scaled_product(a, i, lane, b.mantissa[j, x], b.exponent[j, x] + c.exponent[k, y], c.mantissa[k, y])

    return by_system(a, doubles=doubles, wides=wides, limbs=limbs, scaled=scaled)


@implements(is_zero, INLINE)
def _is_zero(a: Any, i: Any, lane: Any) -> Any:
    def floating(a: Any, i: Any, lane: Any) -> bool:
        return a[0][i, lane] == 0.0

    def wides(a: Any, i: Any, lane: Any) -> bool:
        return a.low[i, lane] == 0 and a.high[i, lane] == 0

    def limbs(a: Any, i: Any, lane: Any) -> bool:
        return no_limbs(a.words, i, lane)

    return by_system(a, doubles=floating, wides=wides, limbs=limbs, scaled=floating)


@implements(forgive, INLINE)
def _forgive(a: Any) -> Any:
    def nothing(a: Any) -> None:
        pass

    def exact(a: Any) -> None:
        a.spill[:] = 0

    return by_system(a, doubles=nothing, wides=exact, limbs=exact, scaled=nothing)


@implements(spilled, INLINE)
def _spilled(a: Any, lane: Any) -> Any:
    def never(a: Any, lane: Any) -> bool:
        return False

    def exact(a: Any, lane: Any) -> bool:
        return a.spill[lane] < 0

    return by_system(a, doubles=never, wides=exact, limbs=exact, scaled=never)
