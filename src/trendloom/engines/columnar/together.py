"""Queries that one kernel answers together: one block with the events of all of them, one sweep, results for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.engines.columnar.events import Stream, block_of_letters
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.sharing.merged_sequences import SequenceCounts, count_sequences
from trendloom.kernels.totals.totals import Totals
from trendloom.kernels.totals.widen import Amounts
from trendloom.physical.sharing import CountedSequence, SharedCounts
from trendloom.plan.logical import Plan

Array = np.ndarray[Any, Any]


class TogetherResults:
    """The results of a group of queries, made when the first of them is asked for. `plan`: that of any of them."""

    def __init__(self, group: SharedCounts, plan: Plan) -> None:
        self.group, self.plan = group, plan
        self._found: tuple[Block, Keys, list[SequenceCounts]] | None = None

    def of(self, number: int, stream: Stream) -> tuple[Block, Keys, Totals] | None:
        """The totals of a query, with the block and the keys that they speak of; None: it must be counted by itself.

        `stream`: the events, with the columns that any of the queries reads.
        """
        if self._found is None:
            block, keys, bits = block_of_letters(self.group.letters, self.plan, stream)
            self._found = block, keys, count_sequences(self.group.merged, block, bits, stream.threads)
        block, keys, counts = self._found
        at = self.group.members.index(number)
        if counts[at].spilled:
            return None
        return block, keys, _totals(self.group.sequences[at], counts[at])


def _totals(sequence: CountedSequence, found: SequenceCounts) -> Totals:
    """Numbers of matches as the measures that a query asks for."""
    matches = found.matches
    return Totals(
        found.key,
        found.start,
        {name: Amounts(_multiplied(matches, times)) for name, times in sequence.measures},
    )


def _multiplied(numbers: Array, times: int) -> Array:
    if times == 1 or not len(numbers):
        return numbers
    return numbers * times if int(numbers.max()) < 2**63 // times else numbers.astype(object) * times
