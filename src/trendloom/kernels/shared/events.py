"""Events as a sweep reads them (their order, what each kind of them does, what they weigh), and results by query.

Events with the same bits are of one kind, and what is done for them is listed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import sortable, weights_of
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.columns.keys import encode_keys
from trendloom.kernels.columns.segments import indices_with_bit
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.shared import FOREVER
from trendloom.kernels.shared.per_start import SPACE, SegmentProgram, most_at_a_time, with_room
from trendloom.kernels.shared.program import DOUBLE, INTEGER, LEAST, NO_WEIGHT, Edges, MergedQueries, SweepProgram
from trendloom.model.schema import Kind

RESET, ADD, PLAIN, NOTE, COMBINE = range(5)
"""What an event does: empty a cell, add to it, add one other cell of integers to it, stand at a position of a segment,
make the outcome of one."""
Action = tuple[int, int, int, int, int]
"""Family, minus the depth, rank, what an event does, and with what; in that order none sees what another has added."""
HEAD = 3
"""Columns of a result before its numbers: query, key, window start."""


class ShownEvents(NamedTuple):
    """What a sweep sees of the events: their order, their kinds, what is weighed and compared.

    `begin`, `family`, `does`, `what`: by kind what to do with which cells, positions or uses; of PLAIN `source` is the
    cell that is added, `mine` and `other` are the first lanes of both. `apart`: whether what a kind does must not be
    seen before all of it is done. `bits`: of each integer weight the bits of the largest.
    """

    key_starts: Array
    time: Array
    instants: Array
    kinds: Array
    begin: Array
    family: Array
    does: Array
    what: Array
    source: Array
    mine: Array
    other: Array
    apart: Array
    integers: Array
    bits: Array
    doubles: Array
    values: Array


@dataclass(frozen=True, eq=False)
class SweptQuery:
    """The results of one query: for each key and window start with a match its matches, then its measures.

    `spilled`: they are wrong, for numbers were too large.
    """

    key: Array
    start: Array
    numbers: tuple[Array, ...]
    spilled: bool


def show(
    merged: MergedQueries, block: Block, bit_of: dict[int, int]
) -> tuple[ShownEvents, SegmentProgram, frozenset[int]]:
    """What the sweep sees, its segments with room, and the cells whose weights do not fit a word."""
    kinds, listed = kinds_of(block.fits)
    integers, bits, unfit = _integers(merged, block)
    doubles = _stacked([_weights(one, block, doubles=True)[0] for one in merged.weights[DOUBLE]], np.float64)
    values = _stacked([_ranks(one, block) for one in merged.weights[LEAST]], np.int64)
    actions = _actions(merged, listed, bit_of)
    weighed = (integers, bits, doubles, values)
    shown = ShownEvents._make((block.key_starts, block.time, block.instant, kinds, *actions, *weighed))
    room = []
    for segment, position in enumerate(merged.segments.positions[:-1]):
        bit = bit_of[merged.noted[position]]
        starts = indices_with_bit(block.fits[bit // WORD], bit % WORD)
        room.append(most_at_a_time(block, starts, int(merged.program.reach[merged.segments.family[segment]])))
    segments = with_room(merged.segments, merged.program.lanes, room)
    return (_backwards(shown) if merged.backwards else shown), segments, frozenset(unfit)


def kinds_of(fits: tuple[Array, ...]) -> tuple[Array, list[int]]:
    """The kind of every event, and for each kind its bits."""
    found = encode_keys([Vector(Kind.INT, words.astype(np.int64)) for words in fits])
    listed = [sum(int(words[row]) << WORD * at for at, words in enumerate(fits)) for row in found.rows.tolist()]
    return found.codes, listed


def no_results(merged: MergedQueries) -> list[SweptQuery]:
    """The results of no events."""
    nothing = np.zeros(0, np.int64)
    return [SweptQuery(nothing, nothing, _no_numbers(merged, query), False) for query in range(len(merged))]


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


# ------------------------------------------------------------------------------------------ events for a sweep


def _integers(merged: MergedQueries, block: Block) -> tuple[Array, Array, set[int]]:
    rows, bits, unfit = [], [], set()
    for number, measure in enumerate(merged.weights[INTEGER]):
        row, *more = _weights(measure, block, doubles=False)
        fits = not more and row.dtype != np.float64
        row = row if fits else np.zeros(len(block), np.int64)
        largest = max(abs(int(row.min())), abs(int(row.max())))
        rows.append(row)
        bits.append(min(largest.bit_length(), SPACE))
        if not fits or bits[-1] == SPACE:
            cells = enumerate(merged.cells)
            unfit |= {cell for cell, one in cells if one.holds == INTEGER and _weighs(one.edges, number)}
    return _stacked(rows, np.int64), np.array(bits, np.int64), unfit


def _weights(measure: Measure, block: Block, *, doubles: bool) -> list[Array]:
    """What events weigh, digit by digit; each counts one where it is nothing else."""
    found = weights_of(measure, block, doubles=doubles)
    return [np.ones(len(block), np.int64) if one is None else one for one in found]


def _weighs(edges: Edges, number: int) -> bool:
    return any(weight == number for _, weight in edges)


def _ranks(measure: Measure, block: Block) -> Array:
    assert measure.column is not None
    return sortable(measure, block.columns[measure.column]).ranks


def _stacked(rows: list[Any], dtype: type[np.generic]) -> Array:
    return np.stack([row.astype(dtype, copy=False) for row in rows]) if rows else np.zeros((0, 0), dtype)


def _backwards(shown: ShownEvents) -> ShownEvents:
    """The same events with time running the other way; the last key comes first."""
    return shown._replace(
        key_starts=len(shown.time) - shown.key_starts[::-1],
        time=-1 - shown.time[::-1],
        instants=np.ascontiguousarray(shown.instants[::-1]),
        kinds=np.ascontiguousarray(shown.kinds[::-1]),
        integers=np.ascontiguousarray(shown.integers[:, ::-1]),
        doubles=np.ascontiguousarray(shown.doubles[:, ::-1]),
        values=np.ascontiguousarray(shown.values[:, ::-1]),
    )


def _actions(merged: MergedQueries, listed: list[int], bit_of: dict[int, int]) -> tuple[Array, ...]:
    """By kind of event what it does, family by family, and whether that must be done apart."""
    by_bit: dict[int, list[Action]] = {}

    def add(letter: int, action: Action) -> None:
        by_bit.setdefault(bit_of[letter], []).append(action)

    segments = merged.segments
    for number, cell in enumerate(merged.cells):
        if cell.letter is not None:
            plainly = cell.holds == INTEGER and len(cell.edges) == 1 and cell.edges[0][1] == NO_WEIGHT
            add(cell.letter, (cell.family, -cell.depth, cell.rank, PLAIN if plainly else ADD, number))
            uses = {int(segments.use[before]) for before, _ in cell.edges} - {-1}
            for use in uses:
                add(cell.letter, (cell.family, -cell.depth, -1, COMBINE, use))
        for letter in cell.reset:
            add(letter, (cell.family, -cell.depth, cell.rank, RESET, number))
    for segment, family in enumerate(segments.family):
        for position in range(segments.positions[segment], segments.positions[segment + 1]):
            add(merged.noted[position], (int(family), 0, 0, NOTE, position))
        start = merged.noted[segments.positions[segment]]
        entries = segments.entry[segments.uses[segment] : segments.uses[segment + 1]]
        for use in {int(segments.use[entry]) for entry in entries} - {-1}:  # what enters came out of another segment
            add(start, (int(family), 0, -1, COMBINE, use))
    begin, found, apart = [0], [], []
    for word in listed:
        some = {one for bit, members in by_bit.items() if word >> bit & 1 for one in members}
        found += sorted(some)
        begin.append(len(found))
        apart.append(any(one[3] in (NOTE, COMBINE) for one in some))
    families, does, what = (np.array([one[at] for one in found], np.int64) for at in (0, 3, 4))
    lane, plain = merged.program.lane, does == PLAIN
    added, source = np.where(plain, what, 0), np.zeros(len(does), np.int64)
    source[plain] = merged.program.source[merged.program.edges[added[plain]]]
    return np.array(begin, np.int64), families, does, what, source, lane[added], lane[source], np.array(apart, np.bool_)


# -------------------------------------------------------------------------------------------- results by query


def _no_numbers(merged: MergedQueries, query: int) -> tuple[Array, ...]:
    at = merged.order.index(query)
    reads = merged.program.read[merged.program.reads[at] : merged.program.reads[at + 1]]
    return tuple(np.zeros(0, np.float64 if merged.cells[cell].holds == DOUBLE else np.int64) for cell in reads)


def _staged(program: SweepProgram) -> bool:
    """Whether windows of several lengths end in any order."""
    return len(program.length) > len(program.unit)


def _in_order(key: Array, start: Array, rows: Array) -> tuple[Array, Array]:
    order = np.lexsort([start, key])
    return rows[order], start[order]
