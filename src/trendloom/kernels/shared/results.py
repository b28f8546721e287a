"""What a sweep has found, query by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.shared.program import DOUBLE, MergedQueries, SweepProgram
from trendloom.kernels.shared.steps import FOREVER

HEAD = 3
"""Columns of a result before its numbers: query, key, window start."""


@dataclass(frozen=True, eq=False)
class SweptQuery:
    """The results of one query: for each key and window start with a match its matches, then its measures.

    `spilled`: they are wrong, for numbers were too large.
    """

    key: Array
    start: Array
    numbers: tuple[Array, ...]
    spilled: bool


def no_results(merged: MergedQueries) -> list[SweptQuery]:
    """What there is without events."""
    nothing = np.zeros(0, np.int64)
    return [SweptQuery(nothing, nothing, _no_numbers(merged, query), False) for query in range(len(merged))]


def _no_numbers(merged: MergedQueries, query: int) -> tuple[Array, ...]:
    at = merged.order.index(query)
    reads = merged.program.read[merged.program.reads[at] : merged.program.reads[at + 1]]
    return tuple(np.zeros(0, np.float64 if merged.cells[cell].holds == DOUBLE else np.int64) for cell in reads)


def results_by_query(merged: MergedQueries, found: Array, doubles: Array, spilled: Array) -> list[SweptQuery]:
    """Results by query, in order of keys and windows."""
    program = merged.program
    small = np.int16 if len(merged) < 2**15 else np.int64
    keys = [found[:, 2], found[:, 1], found[:, 0]] if merged.backwards or _staged(program) else None
    order = np.argsort(found[:, 0].astype(small), kind="stable") if keys is None else np.lexsort(keys)
    ends = np.r_[0, np.cumsum(np.bincount(found[:, 0], minlength=len(merged)))]
    bad = {int(cell) for cell in np.flatnonzero(spilled)}
    results: list[SweptQuery | None] = [None] * len(merged)
    lengths = np.repeat(program.length, np.diff(program.queries))
    for at, query in enumerate(merged.order):
        rows = order[ends[at] : ends[at + 1]]
        start = found[rows, 2]
        if merged.backwards and lengths[at] != FOREVER:
            start = -start - lengths[at]
            rows, start = _in_order(found[rows, 1], start, rows)
        numbers, wrong = [], bool(bad & merged.needs[at])
        for place, cell in enumerate(program.read[program.reads[at] : program.reads[at + 1]]):
            double = program.holds[cell] == DOUBLE
            numbers.append(doubles[rows, place] if double else found[rows, HEAD + place])
            wrong |= bool(double and not np.isfinite(numbers[-1]).all())
        results[query] = SweptQuery(found[rows, 1], start, tuple(numbers), wrong)
    return [one for one in results if one is not None]


def _staged(program: SweepProgram) -> bool:
    """Whether windows of several lengths end in any order."""
    return len(program.length) > len(program.unit)


def _in_order(key: Array, start: Array, rows: Array) -> tuple[Array, Array]:
    order = np.lexsort([start, key])
    return rows[order], start[order]
