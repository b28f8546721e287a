"""Aggregates whose stretches of events are matrices: reduced where the events lie, multiplied where they meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.aggregate.results import Totals
from trendloom.kernels.aggregate.type_grained.packing import BEGIN, END, LEAST, piece_columns, pieces_from, stack_name
from trendloom.kernels.aggregate.type_grained.pieces import Pieces, join, reduce_block, results, sortables
from trendloom.kernels.aggregate.widening import layout_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import PANE
from trendloom.kernels.measures import AggregationSpec

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MatrixSummaries:
    """What is added up, in which numbers."""

    spec: AggregationSpec
    numeric: str

    @property
    def columns(self) -> pa.Schema:
        numbers = [pa.field(name, pa.int64()) for name in (PANE, BEGIN, END)]
        stacks = map(stack_name, range(len(layout_of(self.spec, self.numeric).parts)))
        return pa.schema(numbers + [pa.field(name, pa.binary()) for name in (*stacks, LEAST)])

    def reduce(self, block: Block) -> Pieces | None:
        """One piece for each key and pane."""
        return reduce_block(self.spec, block, self.numeric)

    def pack(self, summaries: Pieces) -> dict[str, pa.Array]:
        return piece_columns(summaries)

    def unpack(self, rows: pa.Table, key: Array, nothing: Block) -> Pieces:
        model = self.reduce(nothing)
        assert model is not None
        return pieces_from(rows, key, model)

    def results(self, parts: list[Pieces], nothing: Block) -> Totals | None:
        """Products of the pieces of each key in order of time, for all windows."""
        whole = join(parts)
        same = whole.key[1:] == whole.key[:-1]
        if (same & (whole.first[1:] <= whole.last[:-1])).any():
            return None
        return results(self.spec, self.numeric, whole, sortables(self.spec, nothing))
