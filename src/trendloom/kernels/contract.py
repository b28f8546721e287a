"""The contract that every kernel keeps, so that one kernel runs in batch, in tasks of a cluster and on live streams.

A kernel is a frozen, picklable specification with pure functions over columns:

    state = kernel.start()
    results, state = kernel.step(state, block, watermark)
    kernel.expected(state), results = kernel.finish(state)
    kernel.dump(state), kernel.load(summaries, before)

The engine keeps events, a kernel keeps what it made of them. A block holds the events from `clock.needs(before)` on,
below the watermark, sorted by key and time; `before` is the watermark of the step before. So a kernel may ask for
events again (`clock` says how far back) or turn them into summaries and never see them again. In batch there is one
step, without a watermark, and `finish`.

Keys of a block are numbers. In what is dumped the engine puts the key's values in their place, and numbers again when
it loads: numbers mean nothing from one step to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from trendloom.kernels.clock import Clock
from trendloom.kernels.columns.block import Block

Array = np.ndarray[Any, Any]

KEY, PANE = " key", " pane"
"""Columns of what is dumped: the number of the key, and the number of the pane (time // length of a pane)."""

Hear = Callable[[object], None]
"""Who is told of something that takes long, before it begins: kernels say what that can be."""

EXACT_DOUBLE = 2.0**53


@dataclass(frozen=True)
class Expected:
    """How many results there will be, `exact` or at most; doubles, so exact below 2^53.

    `tried`: so many are looked at whatever comes of them, in words with a place for the number; `stoppable`: less, if
    not all results are asked for.
    """

    number: float
    exact: bool
    tried: str | None = None
    stoppable: bool = True

    def __str__(self) -> str:
        if np.isinf(self.number):
            return "more than 1e308" if self.exact else "unknown: the bound is beyond 1e308"
        number = f"{int(self.number):,}" if self.number < EXACT_DOUBLE else f"{self.number:.3g}"
        if not self.exact:
            return f"at most {number}"
        return number if self.number < EXACT_DOUBLE else f"about {number}"


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

    @property
    def family(self) -> str:
        """What stored states call all kernels that can go on with each other's."""
        ...

    @property
    def adds_up(self) -> bool:
        """Whether results are `Totals`, not `Matches`."""
        ...

    @property
    def light(self) -> bool:
        """Whether it takes less time than sorting the events does, and rounds by how many it sees: then dividing them
        gains little, and would change the last digits.
        """
        ...

    @property
    def reads(self) -> frozenset[str]:
        """The columns of events that it reads, besides those of conditions."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Further columns of exact integers that its results have."""
        ...

    @property
    def keeps(self) -> str:
        """What a live stream keeps for it, in words."""
        ...

    def within(self, memory: int) -> Self:
        """The kernel with so many bytes to store what it likes."""
        ...

    def in_numbers(self, numeric: str) -> Self:
        """The kernel with numbers that are `exact`, `float` or `log`."""
        ...

    def start(self) -> State: ...

    def step(self, state: State, block: Block, watermark: int | None) -> tuple[Iterator[Result], State]:
        """Take events; give out what has become certain. Without a watermark nothing has."""
        ...

    def expected(self, state: State, *, beforehand: bool) -> Expected | None:
        """How many results `finish` will give; None: not known, or not worth the work.

        `beforehand`: nothing was found yet, else there are many already.
        """
        ...

    def finish(self, state: State, hear: Hear | None = None) -> Iterator[Result]:
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
