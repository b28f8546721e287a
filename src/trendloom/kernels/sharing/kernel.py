"""Several queries as one kernel: it sees the events of all of them once, and gives the totals of each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.sharing.merged_sequences import MergedSequences, SequenceCounts, count_sequences
from trendloom.kernels.totals.totals import Totals
from trendloom.kernels.totals.widen import Amounts

Array = np.ndarray[Any, Any]

Multiples = tuple[tuple[str, int], ...]
"""Measures of a query by name, each so many times the number of its matches."""


@dataclass(frozen=True, eq=False)
class SharedKernel:
    """Counts sequences in one sweep; `measures`: those of every query."""

    merged: MergedSequences
    measures: tuple[Multiples, ...]

    @property
    def letters(self) -> tuple[Any, ...]:
        """What events are asked for, each once."""
        return tuple(dict.fromkeys(self.merged.letters))

    def totals(self, block: Block, bit_of: dict[Hashable, int], threads: int = 1) -> Sequence[Totals | None]:
        """The totals of every query, in their order; None: its numbers are too large, and it is answered alone.

        `bit_of`: the bit of each letter among the `fits` of the block.
        """
        found = count_sequences(self.merged, block, bit_of, threads)
        return [None if one.spilled else _totals(one, its) for one, its in zip(found, self.measures, strict=True)]


def _totals(found: SequenceCounts, measures: Multiples) -> Totals:
    values = {name: Amounts(_multiplied(found.matches, times)) for name, times in measures}
    return Totals(found.key, found.start, dict(values))


def _multiplied(numbers: Array, times: int) -> Array:
    if times == 1 or not len(numbers):
        return numbers
    return numbers * times if int(numbers.max()) < 2**63 // times else numbers.astype(object) * times
