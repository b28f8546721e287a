"""Queries that one kernel answers together: one block with the events of all of them, and totals for each."""

from __future__ import annotations

from collections.abc import Sequence

from trendloom.kernels.aggregate.results import Totals
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.logical.plan import Plan
from trendloom.planner.sharing import AnsweredTogether
from trendloom.runtime.blocks import Stream, block_of_letters


class TogetherResults:
    """The results of a group of queries, made when the first of them is asked for. `plan`: that of any of them."""

    def __init__(self, group: AnsweredTogether, plan: Plan) -> None:
        self.group, self.plan = group, plan
        self._found: tuple[Block, Keys, Sequence[Totals | None]] | None = None

    def of(self, number: int, stream: Stream) -> tuple[Block, Keys, Totals] | None:
        """The totals of a query, with the block and the keys that they speak of; None: it must be answered alone.

        `stream`: the events, with the columns that any of the queries reads.
        """
        if self._found is None:
            block, keys, bits = block_of_letters(self.group.kernel.asked, self.plan, stream, self.group.kernel.columns)
            self._found = block, keys, self.group.kernel.totals(block, bits, stream.threads)
        block, keys, found = self._found
        totals = found[self.group.members.index(number)]
        return None if totals is None else (block, keys, totals)
