"""Find signatures under skip-till-any-match: partial ones grow in chunks, in the order of the pattern.

Idea: partial signatures of equal length form a matrix (`prefixes`). All extensions by one step are a range join with
the events of that position, sorted by their earliest points; times, rules and bounds then filter them as whole columns
(`extension`). Chunks are explored depth first, so memory is bounded by (longest signature) x (chunk).

It costs O(1) per candidate whatever the size of intervals: an event is taken as a whole, not point by point. See
H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", 3.4 (event-based framework); the passes
over a whole match are replaced by two numbers per partial match, which are as sharp.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.matching.automaton import Step
from trendloom.kernels.matching.lookups import pieces
from trendloom.kernels.uncertain.extension import Extensions
from trendloom.kernels.uncertain.prefixes import Prefixes, nothing_bound

CHUNK = 1 << 18
"""Most entries (rows x length) of a matrix of partial signatures."""


class SignatureGrowth:
    """Over one block each event that fits, and may come later, extends a partial signature."""

    def __init__(self, extensions: Extensions, chunk: int = CHUNK) -> None:
        self.extensions, self.automaton, self.chunk = extensions, extensions.automaton, chunk

    def complete(self) -> Iterator[Prefixes]:
        """All signatures that may be matches, NOTs left out, in chunks of equal length."""
        todo: list[Iterator[Prefixes]] = [self.starts()]
        while todo:
            grown = next(todo[-1], None)
            if grown is None:
                todo.pop()
                continue
            complete = self.extensions.complete(grown)
            if len(complete):
                yield complete
            todo.append(self.children(grown))

    def starts(self) -> Iterator[Prefixes]:
        """Partial signatures of one event."""
        root = nothing_bound(self.automaton, self.extensions.block)
        for step in self.automaton.starts[0]:
            members = self.extensions.fitting[step.position].events
            for begin in range(0, len(members), self.chunk):
                events = members[begin : begin + self.chunk]
                yield from self._kept(root, np.zeros(len(events), np.int64), events, step)

    def children(self, prefixes: Prefixes) -> Iterator[Prefixes]:
        """Partial signatures with one more event."""
        for rows, step in self.moves(prefixes):
            begin, end = self.extensions.slices(prefixes, rows, step, None)
            members = self.extensions.fitting[step.position].events
            for picked, events in pieces(members, begin, end - begin, self.chunk // (prefixes.length + 1)):
                yield from self._kept(prefixes, rows[picked], events, step)

    def moves(self, prefixes: Prefixes) -> Iterator[tuple[Array, Step]]:
        """The rows in each state, with each step that leads on from it."""
        states = prefixes.states
        for state in np.unique(states):
            rows = np.flatnonzero(states == state)
            for step in self.automaton.moves[0][state]:
                yield rows, step

    def _kept(self, prefixes: Prefixes, rows: Array, events: Array, step: Step) -> Iterator[Prefixes]:
        tests = self.extensions
        kept = tests.possible(prefixes, rows, events, step)
        rows, events = rows[kept], events[kept]
        viable = tests.viable(*tests.times(prefixes, rows, events), events, step.target)
        rows, events = rows[viable], events[viable]
        kept = tests.unbroken(prefixes, rows, events, step)
        rows, events = rows[kept], events[kept]
        grown = tests.grown(prefixes, rows, events, np.full(len(rows), step.number))
        passed = tests.passing(grown.paths, step)
        if len(passed) < len(grown):
            grown, rows = grown.take(passed), rows[passed]
        grown = tests.likely(grown, prefixes, rows)
        if len(grown):
            yield grown
