"""What a sweep sees of the events: their order, what each kind of them does, what they weigh."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import sortable
from trendloom.kernels.aggregate.results import weights_of
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.columns.segments import indices_with_bit
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.shared.per_start import SPACE, SegmentProgram, most_at_a_time, with_room
from trendloom.kernels.shared.program import DOUBLE, INTEGER, LEAST, NO_WEIGHT, Edges, MergedQueries

# Kinds of events: those with the same bits are alike, and what is done for them is listed once.


MOST_KINDS = 1 << 12
"""Kinds of events that are told apart by a table."""
SLOT_BITS = 14
SLOTS = 1 << SLOT_BITS


def kinds_of(fits: tuple[Array, ...]) -> tuple[Array, list[int]]:
    """The kind of every event, and by kind the bits that it has."""
    codes, words = distinct(fits[0])
    listed = [int(word) for word in words]
    for number, word in enumerate(fits[1:], 1):
        code, present = distinct(word)
        pairs, codes = np.unique(codes * len(present) + code, return_inverse=True)
        listed = [listed[pair // len(present)] | int(present[pair % len(present)]) << WORD * number for pair in pairs]
    return codes, listed


def distinct(words: Array) -> tuple[Array, Array]:
    """For every word which of the different ones it is, and these."""
    codes, listed = np.empty(len(words), np.int64), np.empty(MOST_KINDS, np.uint64)
    count = _number(words, np.full(SLOTS, -1, np.int64), codes, listed)
    if count >= 0:
        return codes, listed[:count]
    present, codes = np.unique(words, return_inverse=True)
    return codes, present


def _leave(*_: Any) -> int:
    """Sorting is faster than what is interpreted."""
    return -1


@njit(nogil=True, wraps=True, interpreted=_leave)
def _number(words: Any, known: Any, codes: Any, listed: Any) -> Any:
    """How many different words there are, numbered as they appear; -1: too many."""
    count = 0
    for row in range(len(words)):
        word = np.uint64(words[row])
        slot = np.int64((word * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - SLOT_BITS))
        while known[slot] >= 0 and listed[known[slot]] != word:
            slot = (slot + 1) & (SLOTS - 1)
        if known[slot] < 0:
            if count == len(listed):
                return -1
            known[slot], listed[count] = count, word
            count += 1
        codes[row] = known[slot]
    return count


RESET, ADD, PLAIN, NOTE, COMBINE = range(5)
"""What an event does: empty a cell, add to it, add one other cell of integers to it, stand at a position of a segment,
ask for the outcome of one."""


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


Action = tuple[int, int, int, int, int]
"""Family, minus the depth, rank, what an event does, and with what; in that order none sees what another has added."""


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
