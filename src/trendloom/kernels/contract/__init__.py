"""The contract that every kernel keeps, so that one kernel runs in batch, in tasks of a cluster and on live streams.

A kernel is a frozen, picklable specification with pure functions over columns:

    state = kernel.start()
    results, state = kernel.step(state, block, watermark)
    kernel.expected(state), results = kernel.finish(state)
    kernel.dump(state), kernel.load(summaries, before)
    kernel.describe(state), kernel.unfold(block, variables, asked)

The engine keeps events, a kernel keeps what it made of them. A block holds the events from `emission.needs(before)` on,
below the watermark, sorted by key and time; `before` is the watermark of the step before. So a kernel may receive
events again (`emission` says how far back) or turn them into summaries and not receive them again. In batch there is
one step, without a watermark, and `finish`.

A kernel answers a group of queries, mostly of one. Every result is tagged by the number of its query within the group;
what is refused of one query (`Failed`) leaves the results of the others as they are.

Keys of a block are numbers. In what is dumped the engine puts the key's values in their place, and numbers again when
it loads: numbers mean nothing from one step to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from trendloom.errors import TrendloomError
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.kernels.contract.emission import EmissionPolicy
from trendloom.kernels.contract.matches import ResultColumn
from trendloom.model.amounts import EXACT_DOUBLE

KEY, PANE = " key", " pane"
"""Columns of what is dumped: the number of the key, and the number of the pane (time // length of a pane)."""

ADDED_UP, FOUND = "AggregationKernel", "DetectionKernel"
"""Families of kernels, as states name them: those that add up, and those that find matches."""
FROM_EVENTS = (ADDED_UP, FOUND)
"""Families whose aggregates may be made of nothing but the events of open windows."""


class Divisible(Flag):
    """By what the events of a block may be divided, so that a kernel can run on the parts."""

    NOT_AT_ALL = 0
    BY_KEY = auto()
    BY_TIME = auto()
    EITHER_WAY = BY_KEY | BY_TIME


OnProgress = Callable[[object], None]
"""Callback invoked before an expensive computation; its argument says which."""


@dataclass(frozen=True)
class Expected:
    """How many results there will be, `exact` or at most; doubles, so exact below 2^53.

    `least`: a lower bound of a number that is not exact, 0 where none is known. `tried`: that many candidates are tried
    in any case, in words with a place for the number; `stoppable`: fewer, if not all results are read.
    """

    number: float
    exact: bool
    tried: str | None = None
    stoppable: bool = True
    least: float = 0.0

    @property
    def certain(self) -> float:
        """The number of results in any case."""
        return self.number if self.exact else self.least

    @property
    def in_any_case(self) -> str:
        """`certain` in words."""
        return str(self) if self.exact else f"at least {_digits(self.least)}"

    def __str__(self) -> str:
        if np.isinf(self.number):
            return "more than 1e308" if self.exact else "unknown: the bound is beyond 1e308"
        number = _digits(self.number)
        if not self.exact:
            return f"at most {number}"
        return number if self.number < EXACT_DOUBLE else f"about {number}"


@dataclass(frozen=True)
class Failed:
    """In place of results of a query: why there are none, or no more."""

    query: int
    error: TrendloomError

    size: ClassVar[int] = 0


def _digits(number: float) -> str:
    return f"{int(number):,}" if number < EXACT_DOUBLE else f"{number:.3g}"


@dataclass(frozen=True)
class Figure:
    """A line that describes what a kernel built, with more lines below it."""

    name: str
    text: str
    below: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Built:
    """What a kernel has built of a block, before it returns results: as text, and in numbers by name.

    `numbers` count what was built; `foreseen` is the estimated cost of returning the results: `RESULTS`, `SECONDS` of a
    processor, `BYTES` stored.
    """

    name: str
    figures: tuple[Figure, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)
    foreseen: Mapping[str, float] = field(default_factory=dict)


class Summaries(Protocol):
    """Stretches of events, each of one key and pane, summed up."""

    @property
    def key(self) -> Array: ...

    def __len__(self) -> int: ...

    def take(self, rows: Array) -> Self: ...

    def with_keys(self, key: Array) -> Self: ...


class Summarising(Protocol):
    """How stretches of events are summed up by themselves, so that only their summaries have to meet."""

    @property
    def columns(self) -> pa.Schema:
        """The columns in which summaries travel, `PANE` among them."""
        ...

    def reduce(self, block: Block) -> Summaries | None:
        """The summaries of a block; None: its numbers are too large for that."""
        ...

    def pack(self, summaries: Any) -> dict[str, pa.Array]:
        """Summaries as columns, without their keys."""
        ...

    def unpack(self, rows: pa.Table, key: Array, nothing: Block) -> Summaries:
        """Summaries out of columns, with their keys; `nothing`: a block without events."""
        ...

    def results(self, parts: list[Any], nothing: Block) -> Any | None:
        """The results of all windows; None: parts overlap in time, so nothing can be said."""
        ...


RESULTS, SECONDS, BYTES = "results", "seconds", "bytes"

Asked = Callable[[Any], bool]
"""Whether a single result is the requested one."""

State = TypeVar("State")
Result = TypeVar("Result", covariant=True)


class Kernel(Protocol[State, Result]):
    """What engines call of a kernel. Results are `Matches` (of the block's events) or `Totals` (of its keys).

    Both are tagged by query; a kernel of a single query leaves the tag at 0.
    """

    @property
    def emission(self) -> EmissionPolicy:
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
    def aggregation(self) -> AggregationSpec | None:
        """What it adds up, for adding up in parts and for pictures; None: it finds matches, or works otherwise."""
        ...

    @property
    def light(self) -> bool:
        """Whether it takes less time than sorting the events does, and rounds by their number: then dividing them gains
        little, and would change the last digits.
        """
        ...

    @property
    def divisible(self) -> Divisible:
        """By what the events may be divided: by keys, or by stretches of time."""
        ...

    @property
    def reads(self) -> frozenset[str]:
        """The columns of events that it reads, besides those of conditions."""
        ...

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns that it adds to rows of matches."""
        ...

    @property
    def keeps(self) -> str:
        """What a live stream keeps for it, in words."""
        ...

    def within(self, memory: int) -> Self:
        """The kernel with so many bytes for what it stores."""
        ...

    def in_numbers(self, numeric: str) -> Self:
        """The kernel with numbers that are `exact`, `float` or `log`."""
        ...

    def start(self) -> State: ...

    def step(self, state: State, block: Block, watermark: int | None) -> tuple[Iterator[Result], State]:
        """Take events; return what has become certain. Without a watermark nothing has."""
        ...

    def expected(self, state: State, *, beforehand: bool) -> Expected | None:
        """How many results `finish` will give; None: not known, or not worth the work.

        `beforehand`: nothing was found yet, else there are many already.
        """
        ...

    def finish(self, state: State, on_progress: OnProgress | None = None) -> Iterator[Result]:
        """What was not returned yet, as if the stream ended here."""
        ...

    def kept(self, state: State) -> Array | None:
        """Which events of the last block are still needed; None: all that `emission.needs` says."""
        ...

    def dump(self, state: State, *, whole: bool = False) -> pa.Table | None:
        """What was summarised since `load`, with the columns `KEY` and `PANE`; None: nothing.

        `whole`: together with what was loaded, in as few rows as can be.
        """
        ...

    def load(self, summaries: pa.Table | None, before: int | None) -> State:
        """A state with these summaries, after a step with the watermark `before`."""
        ...

    def describe(self, state: State) -> Built | None:
        """What it built of the block of a step, for EXPLAIN; None: nothing."""
        ...

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Result] | None:
        """The matches that the result which passes `asked` stands for, in bounded memory; None: no result does.

        Of the events of the block only those of that result fit positions outside NOTs, each where the result binds
        it; `variables` are all that the result binds.
        """
        ...

    @property
    def summarising(self) -> Summarising | None:
        """How it sums up stretches of events; None: it cannot."""
        ...
