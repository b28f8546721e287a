"""The inner loop of the type-grained sweep over exact numbers, as interpreted kernels run it: with Python's integers.

The same numbers result; a number that does not fit is noted where the compiled loops note it, too. Interpreting the
compiled loop instead, on pairs of words, takes 5 times as long (docs/decisions/0043).
"""

from __future__ import annotations

from typing import Any

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.numbers import Combination, Numbers
from trendloom.kernels.columns.words import integer_at, put_integer


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
