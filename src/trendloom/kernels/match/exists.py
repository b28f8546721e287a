"""Matches without their hidden events, each once: what EXISTS emits, from chunks in any order, in one pass.

Every match is written, without its hidden events, behind the remainders that are kept; it stays there if none of them
is equal. Those with its hash stand in an open table, and are compared event by event, so that no remainder is lost to
a collision. Cost: O(events of matches) in all; memory grows with the distinct remainders, never with the matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.match.search import SearchKernel

MEMORY = 1 << 30
"""Bytes of remainders that are kept, by default."""
FIRST_ROWS, FIRST_ENTRIES = 1 << 10, 1 << 12
PER_ROW, PER_ENTRY = 36, 12
"""Bytes of a remainder that is kept, with its share of the table, and of each of its events."""
STRETCH = 1 << 17
"""Events of keys that are looked at together, unless a key has more."""


class KeptRows(NamedTuple):
    """Room for remainders: number i has the entries from `offsets[i]` to `offsets[i + 1]`, and its window `starts[i]`.

    `table` holds numbers of remainders by their hashes, -1 where it is free.
    """

    offsets: Array
    events: Array
    positions: Array
    starts: Array
    hashes: Array
    table: Array


class FoundRows(NamedTuple):
    """Matches as they are found; `starts` is empty where there are no windows."""

    offsets: Array
    events: Array
    positions: Array
    starts: Array


def without_hidden(
    found: Iterable[Matches], pattern_spec: PatternSpec, most: int, memory: int = MEMORY
) -> Iterator[Matches]:
    """The distinct remainders of each chunk that none before has.

    At most `most` matches are looked at, and remainders of about `memory` bytes are kept.
    """
    shown = np.array([position not in pattern_spec.hidden for position in range(len(pattern_spec.places))], np.bool_)
    kept, tried = _DistinctRemainders(), 0
    for matches in found:
        tried += len(matches)
        if tried > most:
            raise RunError(
                f"more than {most:,} matches to look at for the remainders of EXISTS",
                hint="use a smaller window, more partition attributes, or more selective predicates",
            )
        fresh = kept.add(matches, shown)
        if kept.size > memory:
            raise RunError(
                f"more than {kept.count:,} different remainders of EXISTS do not fit the memory",
                hint="use a smaller window, more partition attributes, or more memory",
            )
        if len(fresh):
            yield fresh


@dataclass
class _DistinctRemainders:
    """The remainders so far."""

    count: int = 0
    rows: KeptRows = field(
        default_factory=lambda: KeptRows(
            np.zeros(FIRST_ROWS + 1, np.int64),
            np.empty(FIRST_ENTRIES, np.int64),
            np.empty(FIRST_ENTRIES, np.int32),
            np.empty(FIRST_ROWS, np.int64),
            np.empty(FIRST_ROWS, np.uint64),
            np.full(2 * FIRST_ROWS, -1, np.int32),
        )
    )

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self.count * PER_ROW + int(self.rows.offsets[self.count]) * PER_ENTRY

    def add(self, matches: Matches, shown: Array) -> Matches:
        """Keep the remainders that are new; these alone."""
        starts = np.zeros(0, np.int64) if matches.window_start is None else matches.window_start
        positions = np.ascontiguousarray(matches.positions, np.int32)
        found = FoundRows(matches.offsets, matches.events.astype(np.int64, copy=False), positions, starts)
        longest = int(np.diff(matches.offsets).max(initial=0))
        before, at = self.count, 0
        while at < len(matches):
            self._make_room(longest)
            at, self.count = _keep_new(found, shown, self.rows, at, self.count, longest)
        return self._since(before, windowed=matches.window_start is not None)

    def _make_room(self, longest: int) -> None:
        """Twice the room where the next row might not fit."""
        rows = self.rows
        if self.count == len(rows.starts):
            table = np.full(2 * len(rows.table), -1, np.int32)
            hashes = _twice(rows.hashes)
            _fill_table(table, hashes, self.count)
            offsets = np.r_[rows.offsets, np.zeros(len(rows.starts), np.int64)]
            rows = rows._replace(offsets=offsets, starts=_twice(rows.starts), hashes=hashes, table=table)
        while rows.offsets[self.count] + longest > len(rows.events):
            rows = rows._replace(events=_twice(rows.events), positions=_twice(rows.positions))
        self.rows = rows

    def _since(self, before: int, *, windowed: bool) -> Matches:
        rows, some = self.rows, slice(before, self.count)
        low, high = rows.offsets[before], rows.offsets[self.count]
        return Matches(
            rows.offsets[before : self.count + 1] - low,
            rows.events[low:high].copy(),
            rows.positions[low:high].copy(),
            rows.starts[some].copy() if windowed else None,
        )


def _twice(values: Array) -> Array:
    return np.r_[values, np.empty_like(values)]


@njit(nogil=True, wraps=True)
def _keep_new(found: FoundRows, shown: Array, kept: KeptRows, first: int, count: int, longest: int) -> tuple[int, int]:
    """Look at matches from `first` on while there is room: (the next match to look at, how many are kept)."""
    mask = len(kept.table) - 1
    row = first
    while row < len(found.offsets) - 1:
        begin = kept.offsets[count]
        if count == len(kept.starts) or begin + longest > len(kept.events):
            break
        start = found.starts[row] if len(found.starts) else 0
        end, code = begin, _mixed(np.uint64(start), 1)
        for entry in range(found.offsets[row], found.offsets[row + 1]):
            position = found.positions[entry]
            if shown[position]:
                kept.events[end] = found.events[entry]
                kept.positions[end] = position
                code = _mixed(code ^ np.uint64(position), found.events[entry])
                end += 1
        row += 1
        if end == begin:
            continue
        kept.starts[count] = start
        kept.hashes[count] = code
        kept.offsets[count + 1] = end
        place = np.int64(code >> np.uint64(1)) & mask
        while kept.table[place] >= 0 and not _equal(kept, kept.table[place], count):
            place = (place + 1) & mask
        if kept.table[place] < 0:
            kept.table[place] = count
            count += 1
    return row, count


@njit(**INSIDE, wraps=True)
def _mixed(code: Any, value: int) -> Any:
    """A hash of both."""
    code = (code ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return code ^ (code >> np.uint64(29))


@njit(**INSIDE)
def _equal(kept: KeptRows, one: int, other: int) -> bool:
    """Whether two remainders are of one window and have the same events at the same positions."""
    low, high = kept.offsets[one], kept.offsets[other]
    size = kept.offsets[one + 1] - low
    if kept.hashes[one] != kept.hashes[other] or kept.starts[one] != kept.starts[other]:
        return False
    if kept.offsets[other + 1] - high != size:
        return False
    for entry in range(size):
        if kept.events[low + entry] != kept.events[high + entry]:
            return False
        if kept.positions[low + entry] != kept.positions[high + entry]:
            return False
    return True


@njit(nogil=True)
def _fill_table(table: Array, hashes: Array, count: int) -> None:
    """Give each remainder its place in an empty table."""
    mask = len(table) - 1
    for row in range(count):
        place = np.int64(hashes[row] >> np.uint64(1)) & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = row


@dataclass(frozen=True)
class ExistsKernel(SearchKernel):
    """`search` finds matches, at most `most` for each stretch of keys; `memory`: bytes of remainders that are kept.

    Equal remainders can come of matches anywhere within WITHIN of their first event, before and after it. So a
    remainder is certain when the watermark has passed that event by WITHIN, or at the end of its window, and events are
    kept for twice WITHIN, or as long as their windows.

    Keys are looked at some at a time: remainders of different keys differ, and those of done keys are forgotten.
    Cost: that of the search, and O(events of its matches).
    """

    search: SearchKernel
    most: int
    memory: int = MEMORY

    @property
    def depends_on_all(self) -> bool:
        return True

    def within(self, memory: int) -> Self:
        return replace(self, memory=memory)

    def all(self, block: Block) -> Iterator[Matches]:
        for some, low in _stretches_of_keys(block):
            for remainders in without_hidden(self.search.all(some), self.pattern_spec, self.most, self.memory):
                yield replace(remainders, events=remainders.events + low) if low else remainders


def _stretches_of_keys(block: Block) -> Iterator[tuple[Block, int]]:
    """The block in parts that divide no key, each with where it begins."""
    cuts = np.arange(STRETCH, len(block), STRETCH)
    bounds = np.unique(np.r_[0, np.searchsorted(block.key_starts, cuts), block.keys])
    if len(bounds) <= 2:
        yield block, 0
        return
    for first, last in pairwise(bounds.tolist()):
        yield block.of_keys(first, last), int(block.key_starts[first])
