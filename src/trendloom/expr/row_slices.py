"""Columns in slices: what is done to every row by itself is done by several threads, each to a stretch of rows.

NumPy, Arrow and compiled functions release Python's lock while they go through arrays, so threads run side by side.
Results must not depend on the number of slices.

Cost: some tenths of a millisecond for the threads, so few rows are one slice.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

Given = ParamSpec("Given")
Result = TypeVar("Result")

LEAST = 1 << 18
"""Rows of a slice: fewer are not worth a thread."""


def slices_of(rows: int, threads: int) -> list[tuple[int, int]]:
    """Stretches of rows, [low, high) each: one for every thread if each gets enough, and at least one."""
    count = max(min(threads, rows // LEAST), 1)
    return list(pairwise(rows * number // count for number in range(count + 1)))


def in_slices(function: Callable[[int, int], Result], rows: int, threads: int) -> list[Result]:
    """What a function gives for the slices of so many rows, in their order."""
    return side_by_side(function, slices_of(rows, threads), threads)


def side_by_side(function: Callable[..., Result], arguments: list[tuple[Any, ...]], threads: int) -> list[Result]:
    """What a function gives for each of some arguments, in their order."""
    if threads < 2 or len(arguments) < 2:
        return [function(*given) for given in arguments]
    with ThreadPoolExecutor(threads, thread_name_prefix="trendloom") as pool:
        found = [pool.submit(in_context(function), *given) for given in arguments]
    return [one.result() for one in found]


def in_context(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, with the context of the thread that asks: how its user spells options."""
    context = copy_context()

    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        return context.copy().run(function, *given, **named)

    return run


def taken(values: NDArray[Any], rows: NDArray[Any], threads: int) -> NDArray[Any]:
    """`values[rows]`, for rows that are there."""
    if values.dtype == object or not len(values) or len(slices_of(len(rows), threads)) == 1:
        chosen: NDArray[Any] = values[rows]
        return chosen
    found = np.empty(len(rows), values.dtype)

    def take(low: int, high: int) -> None:
        # "clip" writes into `out`; otherwise NumPy makes a copy first
        np.take(values, rows[low:high], out=found[low:high], mode="clip")

    in_slices(take, len(rows), threads)
    return found
