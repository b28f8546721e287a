"""The contract that every kernel keeps, so that one kernel runs in batch, in tasks of a cluster and on live streams.

A kernel is a frozen, picklable specification with pure functions over columns:

    state = kernel.start()
    results, state = kernel.step(state, block, watermark)
    results = kernel.finish(state)
    kernel.dump(state), kernel.load(summaries, before)

The engine keeps events, a kernel keeps what it made of them. A block holds the events from `clock.needs(before)` on,
below the watermark, sorted by key and time; `before` is the watermark of the step before. So a kernel may ask for
events again (`clock` says how far back) or turn them into summaries and never see them again. In batch there is one
step, without a watermark, and `finish`.

Keys of a block are numbers. In what is dumped the engine puts the key's values in their place, and numbers again when
it loads: numbers mean nothing from one step to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from trendloom.kernels.clock import Clock
from trendloom.kernels.columns.block import Block

Array = np.ndarray[Any, Any]

KEY, PANE = " key", " pane"
"""Columns of what is dumped: the number of the key, and the number of the pane (time // length of a pane)."""

State = TypeVar("State")
Result = TypeVar("Result", covariant=True)


class Kernel(Protocol[State, Result]):
    """What an engine may ask of a kernel. Results are `Matches` (of the block's events) or `Totals` (of its keys)."""

    @property
    def clock(self) -> Clock:
        """When results are certain and how long events are needed."""
        ...

    @property
    def version(self) -> int:
        """The version of what `dump` writes."""
        ...

    def start(self) -> State: ...

    def step(self, state: State, block: Block, watermark: int | None) -> tuple[Iterator[Result], State]:
        """Take events; give out what has become certain. Without a watermark nothing has."""
        ...

    def finish(self, state: State) -> Iterator[Result]:
        """What was not given out yet, as if the stream ended here."""
        ...

    def kept(self, state: State) -> Array | None:
        """Which events of the last block may still be asked for; None: all that `clock.needs` says."""
        ...

    def dump(self, state: State, *, whole: bool = False) -> pa.Table | None:
        """What was summarised since `load`, with the columns `KEY` and `PANE`; None: nothing.

        `whole`: together with what was loaded, in as few rows as can be.
        """
        ...

    def load(self, summaries: pa.Table | None, before: int | None) -> State:
        """A state with these summaries, after a step with the watermark `before`."""
        ...
