"""Finding matches, under the contract of kernels: what all searches share.

In batch there is one step with all events, then `finish`. On a live stream a step looks at the events that a match
which is not certain yet could hold, and emits the matches that have become certain. The engine keeps events as long
as `emission` needs them, so there is nothing to dump.
Cost of a step: that of the search over these events. Matches that were emitted are found again and passed over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import FOUND, Asked, Built, Divisible, Expected, OnProgress
from trendloom.kernels.contract.emission import Certain, EmissionPolicy, between
from trendloom.kernels.contract.matches import Matches, ResultColumn
from trendloom.kernels.contract.pattern_spec import PatternSpec

CERTAIN_FROM = " certain from"
"""The column of the event whose time decides when a row is certain, where it is not the first one."""


class MatchBuffer(NamedTuple):
    """Room for matches: number i has the entries from `offsets[i]` to `offsets[i + 1]`."""

    offsets: Array
    events: Array
    positions: Array


def written(buffer: MatchBuffer, count: int) -> Matches:
    """The first `count` matches of a buffer."""
    used = int(buffer.offsets[count])
    return Matches(buffer.offsets[: count + 1], buffer.events[:used], buffer.positions[:used])


class MatchCount(Protocol):
    """A count of matches without finding them."""

    def expected(self, block: Block) -> Expected | None:
        """The number of matches; None where there cannot be many, or counting takes too long."""
        ...

    def total(self, block: Block) -> Expected | None:
        """The number of matches, however few; None where counting takes too long."""
        ...

    def steps(self, block: Block) -> int:
        """How many events counting looks at."""
        ...


@dataclass(frozen=True, eq=False)
class SearchState:
    """`before`: what was certain at this watermark has been emitted. `kept`: events of the block that are needed."""

    block: Block | None = None
    before: int | None = None
    kept: Array | None = None


@dataclass(frozen=True)
class SearchKernel(ABC):
    """What to find. `whole_windows`: all matches of a window are needed at once; `count`: how to count them."""

    pattern_spec: PatternSpec
    _: KW_ONLY
    whole_windows: bool = False
    count: MatchCount | None = None

    version: ClassVar[int] = 1
    family: ClassVar[str] = FOUND
    adds_up: ClassVar[bool] = False
    aggregation: ClassVar[None] = None
    light: ClassVar[bool] = False
    summarising: ClassVar[None] = None

    @property
    def divisible(self) -> Divisible:
        return Divisible.EITHER_WAY

    @property
    def depends_on_all(self) -> bool:
        """Whether a result depends on all matches of a window or span."""
        return False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns that it adds to rows."""
        return ()

    @property
    def reads(self) -> frozenset[str]:
        """None but those of conditions."""
        return frozenset()

    @property
    def keeps(self) -> str:
        return "the events of open windows"

    @abstractmethod
    def all(self, block: Block) -> Iterator[Matches]:
        """All matches among these events, in bounded chunks."""

    def within(self, memory: int) -> Self:
        """The same: a search holds bounded chunks."""
        return self

    def in_numbers(self, numeric: str) -> Self:
        """The same: it has no numbers, or exact ones."""
        return self

    @property
    def emission(self) -> EmissionPolicy:
        window = self.pattern_spec.window
        accepts = self.pattern_spec.scopes[0].template.accepts
        trailing = any(crossings for ways in accepts for crossings in ways)
        if window.sliding and (trailing or self.depends_on_all or self.whole_windows):
            return EmissionPolicy(window, Certain.WINDOW)
        if trailing or self.depends_on_all:
            return EmissionPolicy(window, Certain.FIRST, reach=2)
        return EmissionPolicy(window, Certain.LAST)

    def start(self) -> SearchState:
        return SearchState()

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Matches], SearchState]:
        """Take events; emit the matches that have become certain."""
        if watermark is None:
            return iter(()), replace(state, block=block)
        return self._found(block, state.before, watermark), SearchState(block, watermark)

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """Counted only where there are many: few matches are found sooner than counted."""
        if beforehand or self.count is None or state.block is None:
            return None
        return self.count.expected(state.block)

    def finish(self, state: SearchState, on_progress: OnProgress | None = None) -> Iterator[Matches]:
        """The matches that were not emitted yet, in bounded chunks."""
        return iter(()) if state.block is None else self._found(state.block, state.before, None)

    def kept(self, state: SearchState) -> Array | None:
        """All that `emission` needs, unless an algorithm needs less."""
        return state.kept

    def dump(self, state: SearchState, *, whole: bool = False) -> pa.Table | None:
        """Nothing: events are kept by the engine."""
        return None

    def load(self, summaries: pa.Table | None, before: int | None) -> SearchState:
        return SearchState(None, before)

    def describe(self, state: SearchState) -> Built | None:
        """Nothing: matches are found when they are taken."""
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Matches] | None:
        """A match stands for itself."""
        found = self.one(block, asked)
        return None if found is None else iter([found])

    def one(self, block: Block, asked: Asked) -> Matches | None:
        """The result that `asked` accepts, among all of a block."""
        for matches in self.all(block):
            for number in range(len(matches)):
                single = matches.part(number, number + 1)
                if asked(single):
                    return single
        return None

    def _found(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Matches]:
        if before is None and watermark is None:
            return self.all(block)
        needed = np.ones(len(block), np.bool_)
        if self.emission.certain is Certain.WINDOW and watermark is not None:
            needed = block.time < self.emission.last_end(watermark)
        elif self.emission.certain is Certain.LAST and before is not None:
            needed = _of_keys_with_news(block, before)
        return self.fresh(block, self._among(block, needed), before, watermark)

    def fresh(
        self, block: Block, found: Iterator[Matches], before: int | None, watermark: int | None
    ) -> Iterator[Matches]:
        """The matches that have become certain since the step before."""
        for matches in found:
            first = matches.columns.get(CERTAIN_FROM, matches.first)
            moment = self.emission.moment(block.time[first], block.time[matches.last], matches.window_start)
            fresh = between(moment, before, watermark)
            if fresh.all():
                yield matches
            elif fresh.any():
                yield matches.take(np.flatnonzero(fresh))

    def _among(self, block: Block, needed: Array) -> Iterator[Matches]:
        """All matches of some of the events, which is cheaper than to find more and pass over them."""
        rows = np.flatnonzero(needed)
        for matches in self.all(block.only(needed)):
            if len(rows) < len(block):
                since = {name: rows[matches.columns[name]] for name in (CERTAIN_FROM,) if name in matches.columns}
                matches = replace(matches, events=rows[matches.events], columns={**matches.columns, **since})
            yield matches


def _of_keys_with_news(block: Block, before: int) -> Array:
    """The events of keys that have an event since `before`: no other key has a match that is new."""
    news = np.zeros(block.keys, np.bool_)
    news[block.key[block.time >= before]] = True
    return news[block.key]
