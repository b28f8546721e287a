"""Number systems: the same sums as Python's integers, and a note of every number that does not fit."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numba import njit

from trendloom.kernels.columns.numbers import (
    Doubles,
    Factor,
    Limbs,
    Numbers,
    Scaled,
    Wides,
    add,
    add_lane,
    add_times,
    add_unit,
    clear,
    copy,
    forgive,
    integers,
    is_zero,
    multiply_into,
    spilled,
    zeros,
)

WEIGHTS = [1, 2, -1, 3, -7, 2**62, -(2**62), 2**63 - 1, -(2**63), 999]


@njit
def operate(a: Numbers, operation: int, i: int, j: int, k: int, weight: int) -> bool:  # type: ignore[return]
    if operation == 0:
        add(a, i, a, j)
    elif operation == 1:
        add_times(a, i, a, j, weight)
    elif operation == 2:
        multiply_into(a, i, 0, Factor(a, j, 0), Factor(a, k, 0))
    elif operation == 3:
        add_unit(a, i, 0, weight)
    elif operation == 4:
        copy(a, i, a, j)
    elif operation == 5:
        add_lane(a, i, 0, a, j, 0)
    elif operation == 6:
        clear(a, i)
    else:
        forgive(a)
    return spilled(a, 0)


def expected(values: list[int], operation: int, i: int, j: int, k: int, weight: int) -> tuple[int, int]:
    """The new value of number i, and the size of the product that was added to it."""
    product = {1: values[j] * weight, 2: values[j] * values[k]}.get(operation, 0)
    after = {
        0: values[i] + values[j],
        1: values[i] + product,
        2: values[i] + product,
        3: values[i] + weight,
        4: values[j],
        5: values[i] + values[j],
        6: 0,
    }[operation]
    return after, abs(product)


@pytest.mark.parametrize(("system", "words"), [(Wides, 2), (Limbs, 3), (Limbs, 5)])
def test_exact_numbers_are_exact_or_spill(system: type[Numbers], words: int) -> None:
    chance = random.Random(words)
    limit, spills = 2 ** (64 * words - 2), 0
    for _ in range(500):
        numbers, values, fits = zeros(system, 4, 1, words), [0] * 4, True
        for _ in range(chance.randint(1, 15 * words)):
            operation, (i, j, k) = chance.randrange(7), chance.choices(range(4), k=3)
            weight = chance.choice(WEIGHTS)
            after, product = expected(values, operation, i, j, k, weight)
            fits = -limit <= after < limit and product < limit
            assert operate(numbers, operation, i, j, k, weight) == (not fits)
            if not fits:
                spills += 1
                break
            values[i] = after
        if fits:
            assert list(integers(numbers, 0)) == values
    assert 10 < spills < 490


def test_scaled_numbers_keep_their_precision_at_any_size() -> None:
    chance = random.Random(1)
    largest = 0
    for _ in range(300):
        numbers, values = zeros(Scaled, 4, 1), [0] * 4
        assert isinstance(numbers, Scaled)
        for _ in range(chance.randint(1, 120)):
            operation = chance.choice([0, 1, 3, 4, 5] if max(values).bit_length() > 9000 else [0, 1, 2, 3, 4, 5])
            (i, j, k), weight = chance.choices(range(4), k=3), 2**61 + 1
            values[i] = expected(values, operation, i, j, k, weight)[0]
            operate(numbers, operation, i, j, k, weight)
        for row, value in enumerate(values):
            mantissa, exponent = float(numbers.mantissa[row, 0]), int(numbers.exponent[row, 0])
            found = Fraction(mantissa) * 2 ** (512 * exponent)
            assert abs(found - value) <= abs(value) * Fraction(1, 10**12)
            largest = max(largest, value.bit_length())
    assert largest > 2000


def test_a_small_number_survives_beside_a_huge_one() -> None:
    numbers: Any = zeros(Scaled, 2, 1)
    operate(numbers, 3, 0, 0, 0, 7)
    operate(numbers, 3, 1, 0, 0, 1)
    for _ in range(3000):
        operate(numbers, 0, 1, 1, 0, 0)
    assert (numbers.mantissa[0, 0], numbers.exponent[0, 0]) == (7.0, 0)
    assert np.log2(numbers.mantissa[1, 0]) + 512 * numbers.exponent[1, 0] == pytest.approx(3000)


def test_doubles_are_infinite_in_the_end() -> None:
    numbers: Any = zeros(Doubles, 1, 1)
    operate(numbers, 3, 0, 0, 0, 1)
    for _ in range(1100):
        operate(numbers, 0, 0, 0, 0, 0)
    assert np.isinf(numbers.value[0, 0])


def test_spills_are_forgotten_on_demand() -> None:
    numbers = zeros(Wides, 1, 1)
    operate(numbers, 3, 0, 0, 0, 2**62)
    assert operate(numbers, 2, 0, 0, 0, 0) is False
    assert operate(numbers, 2, 0, 0, 0, 0) is True
    assert operate(numbers, 7, 0, 0, 0, 0) is False


@njit
def zero(a: Numbers) -> bool:
    return is_zero(a, 0, 0)


@pytest.mark.parametrize("system", [Doubles, Wides, Limbs, Scaled])
def test_zero(system: type[Numbers]) -> None:
    numbers = zeros(system, 1, 1, 4)
    assert zero(numbers)
    operate(numbers, 3, 0, 0, 0, -3)
    assert not zero(numbers)
