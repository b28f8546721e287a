"""The matrices of a program as flat tables, for the kinds of events that a block holds.

Rows of numbers: first all slots, then all slots once more per linear measure. `Terms` lists, per kind of event, the rows
that change and what each becomes: Σ coefficient · row, or Σ weight of the event · row.

*Words*: where no term has a weight, the kinds of several events in a row are read as one letter of a larger alphabet,
whose matrix is the product of theirs, so that one product stands for up to eight events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.aggregation.job import Job
from trendloom.kernels.aggregation.program import Program

Array = np.ndarray[Any, Any]

LONGEST_WORD = 8
MOST_ENTRIES = 1 << 14
"""Entries of all matrices of words: what they take must stay in the processor's cache."""


class Terms(NamedTuple):
    """Kind k changes rows `row[r]`, r from `begin[k]` to `begin[k + 1]`, to Σ of their terms (`first[r]` to `first[r + 1]`).

    A term is `coefficient` · row `source`, times the event's weight number `weight` if that is not −1. `late`: the
    source is what events of the same time have entered. `enters`: the term brings the event in (else it is kept or moved).
    """

    begin: Array
    row: Array
    first: Array
    source: Array
    coefficient: Array
    weight: Array
    late: Array
    enters: Array


@dataclass(frozen=True, eq=False)
class Tables:
    """`single`: events alone at their time. Several at one time: `kept` by their union, then `entered` by each."""

    kinds: int
    single: Terms
    kept: Terms
    entered: Terms
    order: Array  # slots in the order in which events of one time enter them
    word: Terms
    length: int  # events of a word


Term = tuple[int, int, int, int, bool, bool]  # row, source, coefficient, weight, late, enters


def tables_of(program: Program, job: Job, kinds: list[frozenset[int]], *, words: bool) -> Tables:
    """The tables for these kinds of events, each the set of positions that it fits."""
    entered = [_entering(program, job, positions) for positions in kinds]
    kept = [_keeping(program, job, positions) for positions in kinds]
    size = len(program.slots) * (1 + job.linear)
    single = flat([_changed([*k, *e]) for k, e in zip(kept, entered, strict=True)], size)
    plain = words and not any(term[3] >= 0 for terms in entered for term in terms)
    length = _word_length(len(kinds), size) if plain else 1
    word = _words(single, len(kinds), size, length) if length > 1 else single
    both = flat(kept, size), flat(entered, size, adds=True)
    return Tables(len(kinds), single, *both, np.array(program.order), word, length)


def _entering(program: Program, job: Job, positions: frozenset[int]) -> list[Term]:
    slots, found = len(program.slots), []
    for target, source, late in sorted(program.entering(positions)):
        found.append((target, source, 1, -1, late, True))
        for measure in range(job.linear):
            ahead = (measure + 1) * slots
            found.append((target + ahead, source + ahead, 1, -1, late, True))
            if job.weighs[measure, program.position_of[target]]:
                found.append((target + ahead, source, 1, int(job.weight_of[measure]), late, True))
    return found


def _keeping(program: Program, job: Job, positions: frozenset[int]) -> list[Term]:
    slots = len(program.slots)
    return [
        (target + ahead, source + ahead, 1, -1, False, False)
        for target, source in sorted(program.moving(positions))
        for ahead in range(0, slots * (1 + job.linear), slots)
    ]


def _changed(terms: list[Term]) -> list[Term]:
    """Without the terms of equal time, which a single event does not have."""
    return [term for term in terms if not term[4]]


def flat(kinds: list[list[Term]], rows: int, *, adds: bool = False) -> Terms:
    """Terms by kind and row. Rows that stay as they are are left out; rows that become zero have no terms.

    `adds`: the terms are added to what a row holds, so that rows without terms are left out instead.
    """
    begin, row, first, listed = [0], [], [0], []
    for terms in kinds:
        by_row: dict[int, list[Term]] = {at: [] for at in range(rows)}
        for term in terms:
            by_row[term[0]].append(term)
        for at, mine in by_row.items():
            if mine if adds else mine != [(at, at, 1, -1, False, False)]:
                row.append(at)
                listed.extend(mine)
                first.append(len(listed))
        begin.append(len(row))
    columns = list(zip(*listed, strict=True)) if listed else [()] * 6
    flags = [np.array(column, np.bool_) for column in columns[4:6]]
    return Terms(*(np.array(c, np.int64) for c in (begin, row, first, *columns[1:4])), *flags)


def _word_length(kinds: int, size: int) -> int:
    length = 1
    while length < LONGEST_WORD and kinds ** (length + 1) * size * size <= MOST_ENTRIES:
        length += 1
    return length if kinds > 1 else LONGEST_WORD


def _words(single: Terms, kinds: int, size: int, length: int) -> Terms:
    """Matrices of all words: letter after letter, the later one on the left. The last letter counts least."""
    letters = np.stack([dense(single, kind, size) for kind in range(kinds)])
    words = letters
    for _ in range(length - 1):
        words = np.einsum("bij,ajk->abik", letters, words).reshape(-1, size, size)
    return flat([_terms_of(matrix) for matrix in words], size)


def dense(terms: Terms, kind: int, size: int) -> Array:
    """The matrix of a kind whose terms have no weights."""
    matrix = np.eye(size, dtype=np.int64)
    for at in range(terms.begin[kind], terms.begin[kind + 1]):
        matrix[terms.row[at]] = 0
        for term in range(terms.first[at], terms.first[at + 1]):
            matrix[terms.row[at], terms.source[term]] += terms.coefficient[term]
    return matrix


def _terms_of(matrix: Array) -> list[Term]:
    rows, sources = np.nonzero(matrix)
    return [(int(r), int(s), int(matrix[r, s]), -1, False, False) for r, s in zip(rows, sources, strict=True)]
