"""Matches of a pattern, under the contract every kernel keeps.

In batch there is one step with all events, then `finish`. On a live stream a step looks at the events that a match
which is not certain yet could hold, and gives out the matches that have become certain. Events are asked for again
(`clock` says how far back), so there is nothing to dump. Of runs that are followed only events of runs that may go on
are asked for again (see `unfinished`).
Cost of a step: that of the search over these events. Matches that were given out are found again and passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.clock import Certain, Clock, between
from trendloom.kernels.collapsed.collapse import collapse
from trendloom.kernels.collapsed.merge import merged
from trendloom.kernels.collapsed.spec import Collapsed
from trendloom.kernels.columns.block import Block
from trendloom.kernels.complete.spec import Complete
from trendloom.kernels.complete.trends import trends_of
from trendloom.kernels.detection.complete import only_complete
from trendloom.kernels.detection.enumerate import enumerate_matches
from trendloom.kernels.detection.matches import Matches
from trendloom.kernels.detection.postponed import construct_matches
from trendloom.kernels.detection.runs import follow_runs, matches_of, prepare_runs
from trendloom.kernels.detection.spec import Detection, Pair
from trendloom.kernels.detection.unfinished import unfinished

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class State:
    """`before`: what was certain at this watermark has been given out. `kept`: events of the block that are needed."""

    block: Block | None = None
    before: int | None = None
    kept: Array | None = None


@dataclass(frozen=True)
class DetectionKernel:
    """What to find and how: `pairs` is not None where a step depends on the two events it joins alone.

    Then runs are followed by a table of successors, and matches under skip-till-any-match are built last (postponed).
    `complete`: only matches that no other contains; `graph`: what the trend graph is told, where it finds them (within
    `memory` bytes). `whole_windows`: all matches of a window are wanted at once. `collapsed`: matches that differ in
    events of Kleene variables alone are one row.
    """

    detection: Detection
    pairs: tuple[Pair, ...] | None
    complete: bool = False
    whole_windows: bool = False
    graph: Complete | None = None
    memory: int | None = None
    collapsed: Collapsed | None = None

    version = 1

    @property
    def clock(self) -> Clock:
        window = self.detection.window
        accepts = self.detection.scopes[0].template.accepts
        trailing = any(crossings for ways in accepts for crossings in ways)
        together = self.complete or self.collapsed is not None
        if window.sliding and (trailing or together or self.whole_windows):
            return Clock(window, Certain.WINDOW)
        if trailing or together:
            return Clock(window, Certain.FIRST, reach=2)
        return Clock(window, Certain.LAST)

    def start(self) -> State:
        return State()

    def step(self, state: State, block: Block, watermark: int | None) -> tuple[Iterator[Matches], State]:
        """Take events; give out the matches that have become certain."""
        if watermark is None:
            return iter(()), replace(state, block=block)
        if not self.prunes or not len(block):
            return self._found(block, state.before, watermark), State(block, watermark)
        assert self.pairs is not None
        runs = prepare_runs(self.detection, self.pairs, block)
        kept = unfinished(runs, self.clock.forgotten(block.time) > watermark)
        found = self._fresh(block, matches_of(runs), state.before, watermark)
        return found, State(block, watermark, kept)

    def finish(self, state: State) -> Iterator[Matches]:
        """The matches that were not given out yet, in bounded chunks."""
        return iter(()) if state.block is None else self._found(state.block, state.before, None)

    def kept(self, state: State) -> Array | None:
        """Of runs that are followed only those matter that may go on."""
        return state.kept

    def dump(self, state: State, *, whole: bool = False) -> pa.Table | None:
        """Nothing: events are kept by the engine."""
        return None

    def load(self, summaries: pa.Table | None, before: int | None) -> State:
        return State(None, before)

    @property
    def prunes(self) -> bool:
        """Whether a run that has gone on is done with all other events: not where a NOT may look at them."""
        certain = self.clock.certain is Certain.LAST
        return certain and self.follows_runs and len(self.detection.scopes) == 1

    @property
    def follows_runs(self) -> bool:
        """Whether an event of a match has one time at which the match goes on, which a table can say."""
        return self.pairs is not None and (self.detection.earliest or self.detection.adjacent)

    def _found(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Matches]:
        if before is None and watermark is None:
            return self._all(block)
        wanted = np.ones(len(block), np.bool_)
        if self.clock.certain is Certain.WINDOW and watermark is not None:
            wanted = block.time < self.clock.last_end(watermark)
        elif self.clock.certain is Certain.LAST and before is not None:
            wanted = _of_keys_with_news(block, before)
        return self._fresh(block, self._among(block, wanted), before, watermark)

    def _fresh(
        self, block: Block, found: Iterator[Matches], before: int | None, watermark: int | None
    ) -> Iterator[Matches]:
        """The matches that have become certain since the step before."""
        for matches in found:
            first = matches.first if matches.certain_from is None else matches.certain_from
            moment = self.clock.moment(block.time[first], block.time[matches.last], matches.window_start)
            fresh = between(moment, before, watermark)
            if fresh.all():
                yield matches
            elif fresh.any():
                yield matches.take(np.flatnonzero(fresh))

    def _among(self, block: Block, wanted: Array) -> Iterator[Matches]:
        """All matches of some of the events, which is cheaper than to find more and pass over them."""
        rows = np.flatnonzero(wanted)
        for matches in self._all(block.only(wanted)):
            if len(rows) < len(block):
                since = None if matches.certain_from is None else rows[matches.certain_from]
                matches = replace(matches, events=rows[matches.events], certain_from=since)
            yield matches

    def _all(self, block: Block) -> Iterator[Matches]:
        if self.graph is not None:
            return trends_of(self.graph, block, self.memory).matches()
        if self.collapsed is not None and self.collapsed.spine is not None:
            return collapse(self.collapsed.spine, self.detection, block)
        if self.pairs is None:
            found = enumerate_matches(self.detection, block)
        elif self.follows_runs:
            found = follow_runs(self.detection, self.pairs, block)
        else:
            found = construct_matches(self.detection, self.pairs, block)
        if self.collapsed is not None:
            return merged(found, self.detection, block)
        return iter([only_complete(block, found)]) if self.complete else found


def _of_keys_with_news(block: Block, before: int) -> Array:
    """The events of keys that have an event since `before`: no other key has a match that is new."""
    news = np.zeros(block.keys, np.bool_)
    news[block.key[block.time >= before]] = True
    return news[block.key]
