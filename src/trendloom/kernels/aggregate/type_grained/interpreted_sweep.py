"""What interpreted kernels do instead of compiled loops: exact numbers are Python's integers meanwhile.

The same numbers come out; a number that does not fit is noted where the compiled loops note it, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interpreted_sums import integer_at, put_integer
from trendloom.kernels.columns.numbers import Combination, Numbers


def carry_integers(
    rows: Numbers, spare: Any, at: int, end: int, codes: Array, tied: int, begin: Array, row: Array, first: Array,
    terms: Combination, weights: Array,
) -> int:  # fmt: skip
    """As `advance.carry`, for exact numbers. O(terms of an event's kind · lanes) per event."""
    word = codes[at:end].tolist()
    word = word[: word.index(tied)] if tied in word else word
    source, coefficient, weight = terms.source.tolist(), terms.coefficient.tolist(), terms.weight.tolist()
    begins, firsts, into = begin.tolist(), first.tolist(), row.tolist()
    used = sorted({*into, *source})
    for lane in range(len(spare.spill)):
        value = {one: integer_at(rows, one, lane) for one in used}
        for event, code in enumerate(word, at):
            entries = range(begins[code], begins[code + 1])
            new = []
            for entry in entries:
                total = 0
                for term in range(firsts[entry], firsts[entry + 1]):
                    factor = int(weights[weight[term], event]) if weight[term] >= 0 else coefficient[term]
                    total += value[source[term]] * factor
                new.append(total)
            value.update(zip((into[entry] for entry in entries), new, strict=True))
        for one in used:
            if not put_integer(rows, one, lane, value[one], spare.spill):
                break
    return at + len(word)


def add_up_integers(
    out: Numbers, bad: Array, low: Array, high: Array, accepts: Array, slots: int, begin: int, size: int,
    codes: Array, single: Any, weights: Array,
) -> None:  # fmt: skip
    """As `type_grained._each`, for exact numbers and events of which none is tied: row `begin` starts with one."""
    word, source, coefficient, weight = (one.tolist() for one in (codes, *single.terms))
    begins, firsts, into = single.begin.tolist(), single.first.tolist(), single.row.tolist()
    programs = [
        [
            (into[entry], [(source[t], coefficient[t], weight[t]) for t in range(firsts[entry], firsts[entry + 1])])
            for entry in range(begins[code], begins[code + 1])
        ]
        for code in range(len(begins) - 1)
    ]
    measures = [[measure * slots + slot for slot in accepts.tolist()] for measure in range(size // slots)]
    spill = np.zeros(len(measures), np.int64)
    for span, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        value = [0] * size
        value[begin] = 1
        for event in range(first, last):
            program = programs[word[event]]
            new = [
                sum([value[of] * (factor if row < 0 else int(weights[row, event])) for of, factor, row in terms])
                for _, terms in program
            ]
            for (row, _), number in zip(program, new, strict=True):
                value[row] = number
        spill[:] = 0
        for measure, rows in enumerate(measures):
            put_integer(out, span, measure, sum([value[row] for row in rows]), spill)
        bad[span] = bool(spill.any())
