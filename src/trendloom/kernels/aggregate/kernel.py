"""Aggregates over the matches of windows, under the contract every kernel keeps.

Where stretches of events are matrices (`summarised`), events that are certain are multiplied into pieces, few for each
key and pane, and forgotten: the state does not grow with the events. Other grains need the events of open windows
again. Windows are given out when they have ended. Cost of a step: that of the grain over the events given, and one
product of pieces per window that has ended, shared between windows that overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from trendloom.errors import DataError
from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.block import aggregate
from trendloom.kernels.aggregate.type_grained import pane_of
from trendloom.kernels.aggregate.type_grained import pieces as stored
from trendloom.kernels.aggregate.type_grained.pieces import (
    BEGIN,
    END,
    LEAST,
    Pieces,
    join,
    piece_columns,
    pieces_from,
    reduce_block,
    results,
    sortables,
    stack_name,
)
from trendloom.kernels.aggregate.widening import layout_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import ADDED_UP, KEY, PANE, Asked, Built, Divisible, Expected, OnProgress
from trendloom.kernels.contract.aggregates import AggregationSpec, Totals
from trendloom.kernels.contract.emission import Certain, EmissionPolicy
from trendloom.kernels.contract.matches import ResultColumn


@dataclass(frozen=True)
class MatrixSummaries:
    """Aggregates whose stretches of events are matrices: reduced where the events lie, multiplied where they meet."""

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


FAR = 2**62


@dataclass(frozen=True, eq=False)
class AggregationState:
    """`old` are summaries as they were loaded, `new` those made since. `before`: windows that ended here are out."""

    block: Block | None = None
    old: pa.Table | None = None
    new: Pieces | None = None
    before: int | None = None


@dataclass(frozen=True)
class AggregationKernel:
    """What to add up, in which numbers, and whether events become summaries."""

    spec: AggregationSpec
    numeric: str
    summarised: bool

    version: ClassVar[int] = 1
    family: ClassVar[str] = ADDED_UP
    adds_up: ClassVar[bool] = True

    def within(self, memory: int) -> Self:
        """The same: results are few."""
        return self

    def in_numbers(self, numeric: str) -> Self:
        return replace(self, numeric=numeric)

    @property
    def aggregation(self) -> AggregationSpec:
        return self.spec

    @property
    def divisible(self) -> Divisible:
        return Divisible.EITHER_WAY

    @property
    def light(self) -> bool:
        """Where events are matrices, a few additions each, of numbers that are rounded."""
        rounded = not all(part.exact for part in layout_of(self.spec, self.numeric).parts)
        return self.spec.algebra and self.spec.pivot is None and rounded

    @property
    def reads(self) -> frozenset[str]:
        """The columns that are added up."""
        return frozenset(measure.column for measure in self.spec.measures if measure.column)

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """None: totals are not rows yet."""
        return ()

    @property
    def keeps(self) -> str:
        return "matrices, per key and pane" if self.summarised else "the events of open windows"

    @property
    def emission(self) -> EmissionPolicy:
        window = self.spec.pattern_spec.window
        return EmissionPolicy(window, Certain.WINDOW, pane=(pane_of(window) or 1) if self.summarised else None)

    def start(self) -> AggregationState:
        return AggregationState()

    def step(
        self, state: AggregationState, block: Block, watermark: int | None
    ) -> tuple[Iterator[Totals], AggregationState]:
        """Take events; give out the windows that have ended."""
        if watermark is None:
            return iter(()), replace(state, block=block)
        if self.summarised:
            state = self._reduced(state, block)
        else:
            state = replace(state, block=block)
        found = list(self._ended(state, block, watermark))
        return iter(found), replace(state, before=watermark)

    def expected(self, state: AggregationState, *, beforehand: bool) -> Expected | None:
        """None: a group and window has one result."""
        return None

    def finish(self, state: AggregationState, on_progress: OnProgress | None = None) -> Iterator[Totals]:
        """All windows still open; `on_progress` is called before long numbers (`Widening`) if no event is missing."""
        if state.block is None:
            return iter(())
        block = state.block
        if state.old is None and state.new is None and state.before is None:
            return aggregate(self.spec, block, self.numeric, widening=on_progress)
        if self.summarised:
            state = self._reduced(state, block)
        return self._ended(state, block, None)

    def kept(self, state: AggregationState) -> Array | None:
        """No event that is in a summary is needed again."""
        return np.zeros(len(state.block), np.bool_) if self.summarised and state.block is not None else None

    def dump(self, state: AggregationState, *, whole: bool = False) -> pa.Table | None:
        """The pieces that were made since `load`, or all, one for each key and pane."""
        pieces = state.new
        if whole:
            assert state.block is not None
            pieces = stored.compact(self.spec, self.numeric, self._pieces(state, state.block))
        if pieces is None or not len(pieces):
            return None
        return pa.table({KEY: pa.array(pieces.key)} | piece_columns(pieces))

    def load(self, summaries: pa.Table | None, before: int | None) -> AggregationState:
        return AggregationState(old=summaries, before=before)

    def describe(self, state: AggregationState) -> Built | None:
        """None: a batch is added up when its results are read."""
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Totals] | None:
        """None: totals have no matches to list."""
        return None

    @property
    def summarising(self) -> MatrixSummaries | None:
        """Where stretches of events are matrices."""
        return MatrixSummaries(self.spec, self.numeric) if self.summarised else None

    def _reduced(self, state: AggregationState, events: Block) -> AggregationState:
        """Events become pieces; all are later than those of the pieces that are there."""
        state = replace(state, block=events)
        if not len(events):
            return state
        found = stored.reduce_block(self.spec, events, self.numeric)
        if found is None:
            raise DataError(
                "MIN, MAX or SUM of integers near 2^63 cannot be taken step by step",
                hint="cast the column to double, or run the query over a file",
            )
        if state.new is not None:
            found = stored.compact(self.spec, self.numeric, stored.join([state.new, found]))
        return replace(state, new=found)

    def _ended(self, state: AggregationState, block: Block, watermark: int | None) -> Iterator[Totals]:
        """Results of windows that have ended and are not out yet; `watermark` None: of all that are left."""
        window, emission = self.spec.pattern_spec.window, self.emission
        starts = None
        if window.within is not None:
            first = -FAR if state.before is None else emission.oldest(state.before)
            starts = first, FAR if watermark is None else emission.oldest(watermark)
        elif watermark is not None:
            return
        if not self.summarised:
            block = block if watermark is None else block.only(block.time < emission.last_end(watermark))
            yield from aggregate(self.spec, block, self.numeric, starts)
            return
        pieces = self._pieces(state, block)
        if len(pieces):
            columns = stored.sortables(self.spec, block)
            yield stored.results(self.spec, self.numeric, pieces, columns, starts)

    def _pieces(self, state: AggregationState, block: Block) -> Pieces:
        nothing = stored.reduce_block(self.spec, block.only(np.zeros(len(block), np.bool_)), self.numeric)
        assert nothing is not None
        parts = [] if state.new is None else [state.new]
        if state.old is not None and len(state.old):
            parts.append(pieces_from(state.old, state.old[KEY].to_numpy(), nothing))
        return stored.join(parts) if parts else nothing
