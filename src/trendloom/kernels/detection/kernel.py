"""Matches of a pattern, under the contract every kernel keeps.

In batch there is one step with all events, then `finish`. On a live stream a step looks at the events that a match
which is not certain yet could hold, and gives out the matches that have become certain. Events are asked for again
(`clock` says how far back), so there is nothing to dump.
Cost of a step: that of the search over these events. Matches that were given out are found again and passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from trendloom.kernels.clock import Certain, Clock, between
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.complete import only_complete
from trendloom.kernels.detection.enumerate import enumerate_matches
from trendloom.kernels.detection.matches import Matches, join
from trendloom.kernels.detection.runs import follow_runs
from trendloom.kernels.detection.spec import Detection, Pair


@dataclass(frozen=True, eq=False)
class State:
    """`before`: what was certain at this watermark has been given out."""

    block: Block | None = None
    before: int | None = None


@dataclass(frozen=True)
class DetectionKernel:
    """What to find and how: `pairs` is not None where runs can be followed by a table of successors.

    `complete`: only matches that no other contains. `whole_windows`: all matches of a window are wanted at once.
    """

    detection: Detection
    pairs: tuple[Pair, ...] | None
    complete: bool = False
    whole_windows: bool = False

    version = 1

    @property
    def clock(self) -> Clock:
        window = self.detection.window
        accepts = self.detection.scopes[0].template.accepts
        trailing = any(crossings for ways in accepts for crossings in ways)
        if window.sliding and (trailing or self.complete or self.whole_windows):
            return Clock(window, Certain.WINDOW)
        if trailing or self.complete:
            return Clock(window, Certain.FIRST, reach=2)
        return Clock(window, Certain.LAST)

    def start(self) -> State:
        return State()

    def step(self, state: State, block: Block, watermark: int | None) -> tuple[Iterator[Matches], State]:
        """Take events; give out the matches that have become certain."""
        if watermark is None:
            return iter(()), replace(state, block=block)
        return self._found(block, state.before, watermark), State(block, watermark)

    def finish(self, state: State) -> Iterator[Matches]:
        """The matches that were not given out yet, in bounded chunks."""
        return iter(()) if state.block is None else self._found(state.block, state.before, None)

    def dump(self, state: State, *, whole: bool = False) -> pa.Table | None:
        """Nothing: events are kept by the engine."""
        return None

    def load(self, summaries: pa.Table | None, before: int | None) -> State:
        return State(None, before)

    def _found(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Matches]:
        clock = self.clock
        if before is None and watermark is None:
            yield from self._all(block)
            return
        if clock.certain is Certain.WINDOW and watermark is not None:
            found = self._all_before(block, clock.last_end(watermark))
        else:
            found = self._all(block)
        for matches in found:
            moment = clock.moment(block.time[matches.first], block.time[matches.last], matches.window_start)
            fresh = matches.take(np.flatnonzero(between(moment, before, watermark)))
            if len(fresh):
                yield fresh

    def _all_before(self, block: Block, end: int) -> Iterator[Matches]:
        """All matches of the events before a time, which is cheaper than to find more and pass over them."""
        rows = np.flatnonzero(block.time < end)
        for matches in self._all(block.only(block.time < end)):
            yield replace(matches, events=rows[matches.events])

    def _all(self, block: Block) -> Iterator[Matches]:
        if self.pairs is None:
            found = enumerate_matches(self.detection, block)
        else:
            found = follow_runs(self.detection, self.pairs, block)
        return iter([only_complete(block, join(list(found)))]) if self.complete else found
