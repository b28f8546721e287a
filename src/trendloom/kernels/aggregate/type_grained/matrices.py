"""The matrices of a program as flat tables, for the kinds of events that a block holds.

Rows of numbers: first all slots, then all slots once more per linear measure. `MatrixTerms` lists, per letter, the rows
that change and what each becomes: Σ coefficient · row, or Σ weight of the event · row. A letter is what happens at one
point in time: one event of a kind, or several of some kinds.

*Words*: where no term has a weight, several letters in a row are read as one letter of a larger alphabet, whose matrix
is the product of theirs, so that one product stands for up to eight points in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Addends
from trendloom.kernels.aggregate.type_grained.program import Program
from trendloom.kernels.columns.numbers import Combination

LONGEST_WORD = 8
MOST_ENTRIES = 1 << 14
"""Entries of the matrices of all words: they should stay in the processor's cache."""
MOST_COEFFICIENTS = 1 << 24
"""The coefficients of a row of a word add up to less, so that small numbers times a word stay small."""


class MatrixTerms(NamedTuple):
    """Letter l changes rows `row[r]`, r from `begin[l]` to `begin[l + 1]`, to Σ of terms `first[r]` to `first[r + 1]`.

    `late`: the source of a term is what events of the same time have entered. `enters`: the term brings the event in
    (else it is kept or moved). `any_late`: whether there is a late term at all.
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
