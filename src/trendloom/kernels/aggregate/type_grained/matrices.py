"""The matrices of a program as flat tables, for the kinds of events that a block holds.

Rows of numbers: first all slots, then all slots once more per linear measure. `MatrixTerms` lists, per letter, the rows
that change and what each becomes: Σ coefficient · row, or Σ weight of the event · row. A letter is what happens at one
point in time: one event of a kind, or several of some kinds.

*Words*: where no term has a weight, several letters in a row are read as one letter of a larger alphabet, whose matrix
is the product of theirs, so that one product stands for up to eight points in time.

*Kinds* are what tables are indexed by: sets of positions, as small numbers. Two readings of a block, each one pass:

- *by event* (`Kinds`): `code` is the kind of an event that is alone at its time, and `tied` for the others, which have
  their kind in `own`, and in `union` the kind that fits all that any event of their time fits;
- *by time* (`InstantKinds`): one code per point in time, for how many events of each kind it has. Where no event has a
  weight of its own, that is enough, and ties cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Addends
from trendloom.kernels.aggregate.program import Program
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.columns.numbers import Combination
from trendloom.kernels.jit.compiled import njit

LONGEST_WORD = 8
MOST_ENTRIES = 1 << 14
"""Entries of the matrices of all words: they should stay in the processor's cache."""
MOST_COEFFICIENTS = 1 << 24
"""The coefficients of a row of a word add up to less, so that small numbers times a word stay small."""
MOST_INSTANT_KINDS = 250
MOST_COUNTED = 8
"""Kinds that can be counted in one word, a byte each."""


class MatrixTerms(NamedTuple):
    """Letter l changes rows `row[r]`, r from `begin[l]` to `begin[l + 1]`, to Σ of terms `first[r]` to `first[r + 1]`.

    `late`: the source of a term is what events of the same time have entered. `enters`: the term brings the event in
    (else it is kept or moved). `any_late`: whether any term is late.
    """

    begin: Array
    row: Array
    first: Array
    terms: Combination
    late: Array
    enters: Array
    any_late: bool


class Term(NamedTuple):
    row: int
    source: int
    coefficient: int = 1
    weight: int = -1
    late: bool = False
    enters: bool = False


@dataclass(frozen=True, eq=False)
class Kinds:
    """By event. Without ties `own` and `union` are empty."""

    code: Array
    tied: int
    own: Array
    union: Array
    positions: list[frozenset[int]]  # by kind


@dataclass(frozen=True, eq=False)
class InstantKinds:
    """By point in time: `start` is its first event (and one more for the end); `counts[code]` its events by kind."""

    code: Array
    tied: int  # the code of points in time that have no kind of their own
    start: Array
    counts: list[dict[int, int]]


@dataclass(frozen=True, eq=False)
class Matrices:
    """What every kind of event does to the rows: the source of all tables."""

    program: Program
    addends: Addends
    kinds: list[frozenset[int]]

    @property
    def size(self) -> int:
        return len(self.program.slots) * (1 + self.addends.linear)

    def entering(self, kind: int) -> list[Term]:
        """What one event adds to the rows it enters."""
        slots, found = len(self.program.slots), []
        for target, source, late in sorted(self.program.entering(self.kinds[kind])):
            found.append(Term(target, source, late=late, enters=True))
            for measure in range(self.addends.linear):
                ahead = (measure + 1) * slots
                found.append(Term(target + ahead, source + ahead, late=late, enters=True))
                if self.addends.weighs[measure, self.program.position_of[target]]:
                    weight = int(self.addends.weight_of[measure])
                    found.append(Term(target + ahead, source, weight=weight, late=late, enters=True))
        return found

    def keeping(self, positions: frozenset[int]) -> list[Term]:
        """What events of one time leave of the rows before them."""
        return [
            Term(target + ahead, source + ahead)
            for target, source in sorted(self.program.moving(positions))
            for ahead in range(0, self.size, len(self.program.slots))
        ]

    def single(self) -> MatrixTerms:
        """Events alone at their time, by kind."""
        alone = [[t for t in self.entering(kind) if not t.late] for kind in range(len(self.kinds))]
        return flat([[*self.keeping(p), *more] for p, more in zip(self.kinds, alone, strict=True)], self.size)

    def entered(self) -> MatrixTerms:
        """Of several events of one time: what each adds."""
        return flat([self.entering(kind) for kind in range(len(self.kinds))], self.size, adds=True)

    def kept(self) -> MatrixTerms:
        """Of several events of one time: what their union leaves."""
        return flat([self.keeping(positions) for positions in self.kinds], self.size)

    def letter(self, counts: dict[int, int]) -> Array:
        """The matrix of a point in time with so many events of each kind, none of which has a weight of its own."""
        union = frozenset[int]().union(*(self.kinds[kind] for kind in counts))
        entered = np.zeros((self.size, self.size), np.int64)
        slots = len(self.program.slots)
        terms = {kind: self.entering(kind) for kind in counts}
        for slot in self.program.order:
            for kind, count in counts.items():
                for term in terms[kind]:
                    if term.row % slots == slot:
                        if term.late:
                            entered[term.row] += count * entered[term.source]
                        else:
                            entered[term.row, term.source] += count
        for term in self.keeping(union):
            entered[term.row, term.source] += 1
        return entered


def words_of(instant_kinds: list[Array], size: int, *, longest: int = LONGEST_WORD) -> tuple[Array, Array]:
    """The matrices of all words up to a length, [word, row, source], and where the words of each length begin.

    Words of one length are numbered like numbers with letters as digits, the last one counting least. There are none
    where many events of one time have letters with large coefficients.
    """
    alphabet = np.stack(instant_kinds) if instant_kinds else np.zeros((0, size, size), np.int64)
    if alphabet.sum(axis=2).max(initial=0) >= MOST_COEFFICIENTS:
        return np.zeros((0, size, size), np.int64), np.zeros(2, np.int64)
    words = [alphabet]
    while len(words) < longest and 2 * len(words[-1]) * len(alphabet) * size * size <= MOST_ENTRIES and instant_kinds:
        longer = np.einsum("bij,ajk->abik", alphabet, words[-1]).reshape(-1, size, size)
        if longer.sum(axis=2).max() >= MOST_COEFFICIENTS:
            break
        words.append(longer)
    offset = np.cumsum([0, 0, *map(len, words)])[: len(words) + 1]
    return np.concatenate(words), offset.astype(np.int64)


def terms_of(matrix: Array) -> list[Term]:
    """The terms of a matrix without weights."""
    rows, sources = np.nonzero(matrix)
    return [Term(int(r), int(s), int(matrix[r, s])) for r, s in zip(rows, sources, strict=True)]


def flat(instant_kinds: list[list[Term]], rows: int, *, adds: bool = False) -> MatrixTerms:
    """Terms by letter and row. Rows that stay as they are are left out; rows that become zero have no terms.

    `adds`: the terms are added to what a row holds, so that rows without terms are left out instead.
    """
    begin, row, first, listed = [0], [], [0], list[Term]()
    for terms in instant_kinds:
        by_row: dict[int, list[Term]] = {at: [] for at in range(rows)}
        for term in terms:
            by_row[term.row].append(term)
        for at, mine in by_row.items():
            if mine if adds else mine != [Term(at, at)]:
                row.append(at)
                listed.extend(mine)
                first.append(len(listed))
        begin.append(len(row))
    columns = [[term[field] for term in listed] for field in range(1, 6)]
    return MatrixTerms(
        np.array(begin, np.int64),
        np.array(row, np.int64),
        np.array(first, np.int64),
        Combination(*(np.array(numbers, np.int64) for numbers in columns[:3])),
        np.array(columns[3], np.bool_),
        np.array(columns[4], np.bool_),
        any(columns[3]),
    )


# ---------------------------------------------------------------------------------------- kinds of events


def kinds_of(block: Block) -> Kinds:
    """Number the kinds of events that occur, and those that occur as unions of equal times."""
    words = _words(block)
    ties = _has_ties(block.key_starts, block.instant)
    union = _unions(words, block.tie_end) if ties else words[:0]
    if words.dtype.itemsize <= 2:
        present = np.zeros(1 << 8 * words.dtype.itemsize, np.bool_)
        for some in (words, union):
            _mark_present(present, some)
        listed = np.flatnonzero(present)
    else:
        listed = np.unique(np.concatenate([np.unique(words), np.unique(union)]))
    code_type = np.uint8 if len(listed) < 255 else np.uint16 if len(listed) < 2**16 - 1 else np.uint32
    code, tied = _numbered(words, listed, code_type), int(np.iinfo(code_type).max)
    own, union = (code.copy(), _numbered(union, listed, code_type)) if ties else (code[:0], code[:0])
    if ties:
        _mark_ties(code, block.key_starts, block.instant, tied)
    return Kinds(code, tied, own, union, [_positions(int(word), block.bits) for word in listed])


def instant_kinds_of(block: Block, kinds: Kinds) -> InstantKinds:
    """One kind per point in time, as far as `MOST_INSTANT_KINDS` are enough."""
    instant_kinds = np.zeros(MOST_INSTANT_KINDS, np.uint64)
    start = np.flatnonzero(np.r_[True, block.tie_end[1:] != block.tie_end[:-1], True][: len(block) + 1])
    code = np.empty(len(start) - 1, np.uint8)
    used = _spell(code, kinds.own, start, instant_kinds, min(len(kinds.positions), MOST_COUNTED))
    counts = [{k: int(bag) >> 8 * k & 255 for k in range(8) if int(bag) >> 8 * k & 255} for bag in instant_kinds[:used]]
    return InstantKinds(code, 255, start, counts)


def one_per_instant(block: Block, hidden: frozenset[int]) -> Block:
    """The block where of the events of an instant that fit a hidden position only one does. O(events)."""
    again = {position: _repeats(block, block.members[position]) for position in sorted(hidden)}
    again = {position: repeated for position, repeated in again.items() if repeated.any()}
    if not again:
        return block
    fits, bits, free = list(block.fits), list(block.bits), max(block.bits) + 1
    for position, repeated in again.items():
        if free % WORD == 0:
            fits.append(np.zeros(len(block), np.uint8))
        fits[-1] = _with_bit(fits[-1], free % WORD, block.members[position][~repeated])
        bits[position] = free
        free += 1
    return replace(block, fits=tuple(fits), bits=tuple(bits))


def _repeats(block: Block, events: Array) -> Array:
    """Which of these events have another of their instant before them."""
    instant = block.tie_start[events]
    return np.r_[False, instant[1:] == instant[:-1]] if len(events) else np.zeros(0, np.bool_)


def _with_bit(words: Array, bit: int, events: Array) -> Array:
    """A copy with one more bit, set for some events, in words wide enough."""
    wide = next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bit < 8 * np.dtype(kind).itemsize)
    found = words.astype(np.promote_types(words.dtype, wide))
    found[events] |= found.dtype.type(1 << bit)
    return found


def _words(block: Block) -> Array:
    """One word of bits per event."""
    if len(block.fits) == 1:
        return block.fits[0]
    found = np.zeros(len(block), object)
    for number, words in enumerate(block.fits):
        found |= words.astype(object) << (WORD * number)
    return found


def _unions(words: Array, tie_end: Array) -> Array:
    """For each event the kinds of all events of its time."""
    if words.dtype.itemsize <= 2:
        united = words.copy()
        _unite(united, tie_end)
        return united
    starts = np.flatnonzero(np.r_[True, tie_end[1:] != tie_end[:-1]])
    found: Array = np.repeat(np.bitwise_or.reduceat(words, starts), np.diff(np.r_[starts, len(words)]))
    return found


def _numbered(words: Array, listed: Array, code_type: Any) -> Array:
    if words.dtype.itemsize > 2:
        return np.searchsorted(listed, words).astype(code_type)
    table = np.zeros(1 << 8 * words.dtype.itemsize, code_type)
    table[listed] = np.arange(len(listed))
    found = np.empty(len(words), code_type)
    _look_up(found, words, table)
    return found


def _positions(word: int, bits: tuple[int, ...]) -> frozenset[int]:
    return frozenset(position for position, bit in enumerate(bits) if word >> bit & 1)


@njit(nogil=True)
def _mark_present(present: Array, words: Array) -> None:
    for word in words:
        present[word] = True


@njit(nogil=True)
def _unite(words: Array, tie_end: Array) -> None:
    """Give events of one time the bits of all of them; what has them already gains none."""
    for event in range(1, len(words)):
        if tie_end[event] == tie_end[event - 1]:
            words[event] |= words[event - 1]
    for event in range(len(words) - 1, 0, -1):
        if tie_end[event] == tie_end[event - 1]:
            words[event - 1] |= words[event]


@njit(nogil=True)
def _look_up(found: Array, words: Array, table: Array) -> None:
    for event in range(len(words)):
        found[event] = table[words[event]]


@njit(nogil=True)
def _has_ties(key_starts: Array, instant: Array) -> bool:
    """Whether two events of one key have no order. O(events)."""
    for key in range(len(key_starts) - 1):
        same = 0
        for event in range(key_starts[key] + 1, key_starts[key + 1]):
            same += instant[event] == instant[event - 1]
        if same:
            return True
    return False


@njit(nogil=True)
def _mark_ties(code: Array, key_starts: Array, instant: Array, tied: int) -> None:
    for key in range(len(key_starts) - 1):
        for event in range(key_starts[key] + 1, key_starts[key + 1]):
            if instant[event] == instant[event - 1]:
                code[event - 1] = tied
                code[event] = tied


@njit(nogil=True, wraps=True)
def _spell(code: Array, own: Array, start: Array, instant_kinds: Array, kinds: int) -> int:
    """Give every point in time its kind; `instant_kinds` are the counts by kind, packed, in order of appearance."""
    slots = 1024
    table = np.full(slots, -1, np.int64)
    used = 0
    for at in range(len(code)):
        bag, fits = np.uint64(0), start[at + 1] - start[at] < 256
        for event in range(start[at], start[at + 1]):
            fits &= own[event] < kinds
            bag += np.uint64(1) << (np.uint64(8) * np.uint64(own[event] & 7))
        code[at] = 255
        if fits:
            place = (bag * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(54)
            while table[place] >= 0 and instant_kinds[table[place]] != bag:
                place = (place + np.uint64(1)) & np.uint64(slots - 1)
            if table[place] < 0 and used < len(instant_kinds):
                table[place] = used
                instant_kinds[used] = bag
                used += 1
            if table[place] >= 0:
                code[at] = table[place]
    return used
