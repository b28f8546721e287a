"""Many sequences as one program: a tree of their prefixes, with cells that hold what is counted and added up.

A node of the tree stands for the first steps of one or more queries in a family of windows. Its *cells* hold, for each
window that is open: how many partial matches there are; for a measure what their events add up to, or their least
value. Where NOT follows, another cell holds what was counted since no forbidden event came. An event adds to a cell
what the cells before it hold, times the event's weight where it is measured:

- matches:  m(n) += m(before) + m(n) if the step repeats
- sums:     s(n) += s(before) + s(n) if it repeats, + weight · (m(before) + m(n) if it repeats) if n is measured
- least:    l(n) = min(l(n), l(before), l(n) if it repeats, value if n is measured), if there is a match to extend

Cells are shared by all queries with the same prefix; those of measures by queries that measure the same on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.shared import (
    CountedQuery,
    CountedStep,
    Family,
    SharedSteps,
    StepMeasure,
    families_of,
    slide,
    within,
)
from trendloom.kernels.shared.per_start import SegmentProgram, begins_of

INTEGER, DOUBLE, LEAST = 0, 1, 2
"""What a cell holds."""
NO_WEIGHT = -1
WATCHED, MEASURED, COUNTED, FIRST = range(4)
"""The order in which cells of one depth are updated, so that none reads what the same event has added."""

Edges = tuple[tuple[int, int], ...]
"""(cell that is added, weight or NO_WEIGHT); of least values the weight stands for the whole cell."""


class SweepProgram(NamedTuple):
    """What a sweep reads. Cells by number: what they hold, where their lanes begin, their family, their edges.

    Families: their first cell, which is 1 in every lane that is open; grid, offset, reach, lanes, first stage. Stages:
    windows of equal length; their length and first query. Queries: after how many moments of the grid a window begins,
    counted from which, and which cells are its results.
    """

    holds: Array
    lane: Array
    family: Array
    edges: Array  # by cell, and one more
    source: Array
    weight: Array
    unit: Array
    grid: Array
    offset: Array
    reach: Array
    lanes: Array
    stages: Array  # by family, and one more
    length: Array
    queries: Array  # by stage, and one more
    every: Array
    shift: Array
    reads: Array  # by query, and one more
    read: Array


@dataclass(frozen=True)
class SweepCell:
    """`letter` adds to it, those that `reset` it empty it before."""

    family: int
    holds: int
    letter: int | None
    edges: Edges
    depth: int
    rank: int
    reset: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class MergedQueries:
    """The program of some queries. `order`: which query stands where in it; `needs`: by query the cells it reads of.

    `weights`, `values`: measures whose columns are added up, as integers or doubles, or compared. `backwards`: time
    runs that way.
    """

    program: SweepProgram
    segments: SegmentProgram
    noted: tuple[int, ...]  # by position of a segment its letter
    cells: tuple[SweepCell, ...]
    families: tuple[Family, ...]
    order: tuple[int, ...]
    needs: tuple[frozenset[int], ...]
    weights: tuple[tuple[Measure, ...], tuple[Measure, ...], tuple[Measure, ...]]
    nodes: int
    backwards: bool = False

    def __len__(self) -> int:
        return len(self.order)


def merge_queries(
    queries: Sequence[CountedQuery], *, doubles: bool = False, backwards: bool = False,
    segments: Sequence[SharedSteps] = (),
) -> MergedQueries:  # fmt: skip
    """The program of all queries; `doubles`: numbers of matches are doubles, too. `backwards`: from the last step.

    `segments`: what is counted for each of its START events, where integers are counted forwards.
    """
    given = [query.reversed() for query in queries] if backwards else list(queries)
    families = families_of(given, backwards=backwards)
    merging = _Merging(doubles)
    for segment in segments:
        merging.shared |= dict.fromkeys(segment.places, segment.steps)
    for number, family in enumerate(families):
        merging.begin(number, family)
        staged = sorted(
            (at for at, query in enumerate(given) if query.window in family.windows),
            key=lambda at: within(given[at].window),
        )
        for at in staged:
            merging.add(number, family, at, given[at], backwards=backwards)
    return merging.merged(tuple(families), backwards=backwards)


Signature = tuple[str, str | None, bool, tuple[int, ...]]
"""A measure as far as a prefix goes: function, column, whether its numbers are doubles, and the steps measured."""


@dataclass
class _Merging:
    """A program under way."""

    doubles: bool
    cells: list[SweepCell] = field(default_factory=list)
    nodes: dict[tuple[int, CountedStep], int] = field(default_factory=dict)  # (cell of the node before, step)
    measured: dict[tuple[int, Signature], int] = field(default_factory=dict)  # by the cell of a node
    watched: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)  # by any cell
    weights: tuple[dict[tuple[str, str | None], Measure], ...] = field(default_factory=lambda: ({}, {}, {}))
    units: list[int] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    every: list[int] = field(default_factory=list)
    shift: list[int] = field(default_factory=list)
    reads: list[list[int]] = field(default_factory=list)
    shared: dict[tuple[int, int], tuple[CountedStep, ...]] = field(default_factory=dict)  # by query and first step
    uses: dict[tuple[int, tuple[CountedStep, ...]], dict[int, int]] = field(default_factory=dict)  # outcome by entry

    def begin(self, number: int, family: Family) -> None:
        self.units.append(self._cell(SweepCell(number, self._counts, None, (), 0, FIRST)))
        self.stages.append(len(self.lengths))

    @property
    def _counts(self) -> int:
        return DOUBLE if self.doubles else INTEGER

    def add(self, number: int, family: Family, at: int, query: CountedQuery, *, backwards: bool) -> None:
        """Add a query of a family; those with shorter windows come first."""
        length = within(query.window)
        if len(self.lengths) == self.stages[number] or self.lengths[-1] != length:
            self.lengths.append(length)
            self.firsts.append(len(self.order))
        self.order.append(at)
        self.every.append(slide(query.window) // family.grid)
        self.shift.append((family.offset + length) // family.grid if backwards else 0)
        self.reads.append(self._path(number, at, query))

    def _path(self, number: int, at: int, query: CountedQuery) -> list[int]:
        """The cells of a query's results: its matches, then its measures."""
        node, passed = self.units[number], 0
        least: list[int | None] = [None] * len(query.measures)
        for depth, step in enumerate(query.steps):
            segment = self.shared.get((at, depth))
            if segment is not None:
                node, passed = self._outcome(number, depth, node, step, segment), depth + len(segment)
            if depth < passed:
                continue
            before, node = node, self._node(number, depth, node, step)
            least = [
                self._measure(number, depth, before, node, step, one, earlier)
                for one, earlier in zip(query.measures, least, strict=True)
            ]
        return [node, *(one for one in least if one is not None)]

    def _node(self, number: int, depth: int, before: int, step: CountedStep) -> int:
        if (before, step) not in self.nodes:
            edges = [(self._seen(before, step.forbidden), NO_WEIGHT)]
            edges += [(len(self.cells), NO_WEIGHT)] * step.repeats
            made = SweepCell(number, self._counts, step.letter, tuple(edges), depth + 1, COUNTED)
            self.nodes[before, step] = self._cell(made)
        return self.nodes[before, step]

    def _outcome(
        self, number: int, depth: int, before: int, step: CountedStep, segment: tuple[CountedStep, ...]
    ) -> int:
        """The cell for the matches of a prefix and a segment."""
        entry = self._seen(before, step.forbidden)
        known = self.uses.setdefault((number, segment), {})
        if entry not in known:
            known[entry] = self._cell(SweepCell(number, INTEGER, None, (), depth + len(segment), COUNTED))
        return known[entry]

    def _measure(
        self, number: int, depth: int, before: int, node: int, step: CountedStep, one: StepMeasure, earlier: int | None
    ) -> int | None:
        """The cell of a measure at a node; None as long as no step was measured. `earlier`: that of the node before."""
        places = tuple(place for place in one.steps if place <= depth)
        if not places:
            return None
        measure, doubles = one.measure, self.doubles or one.measure.fractional
        signature = (measure.function, measure.column, doubles, places)
        if (node, signature) not in self.measured:
            weighed = depth in places
            if measure.function in ("min", "max"):
                holds, edges = LEAST, self._compared(before, earlier, step, weighed, measure)
            else:
                holds = DOUBLE if doubles else INTEGER
                edges = self._added(before, node, earlier, step, weighed, measure, doubles)
            made = SweepCell(number, holds, step.letter, tuple(edges), depth + 1, MEASURED)
            self.measured[node, signature] = self._cell(made)
        return self.measured[node, signature]

    def _added(
        self, before: int, node: int, earlier: int | None, step: CountedStep, weighed: bool, measure: Measure,
        doubles: bool,
    ) -> list[tuple[int, int]]:  # fmt: skip
        edges = [] if earlier is None else [(self._seen(earlier, step.forbidden), NO_WEIGHT)]
        edges += [(len(self.cells), NO_WEIGHT)] * step.repeats
        if weighed:
            weight = NO_WEIGHT if measure.column is None else self._weight(measure, doubles)
            edges.append((self._seen(before, step.forbidden), weight))
            edges += [(node, weight)] * step.repeats
        return edges

    def _compared(
        self, before: int, earlier: int | None, step: CountedStep, weighed: bool, measure: Measure
    ) -> list[tuple[int, int]]:
        weight = self._weight(measure, doubles=False) if weighed else NO_WEIGHT
        edges = [(self._seen(before if earlier is None else earlier, step.forbidden), weight)]
        return edges + [(len(self.cells), weight)] * step.repeats

    def _seen(self, cell: int, forbidden: frozenset[int]) -> int:
        """The cell through which the next step sees another: itself, or what it counted since no forbidden event."""
        if not forbidden:
            return cell
        if (cell, forbidden) not in self.watched:
            made = self.cells[cell]
            self.watched[cell, forbidden] = self._cell(
                SweepCell(made.family, made.holds, made.letter, made.edges, made.depth, WATCHED, forbidden)
            )
        return self.watched[cell, forbidden]

    def _weight(self, measure: Measure, doubles: bool) -> int:
        known, key = self.weights[_kind_of_weight(measure, doubles)], (measure.function, measure.column)
        known.setdefault(key, measure)
        return list(known).index(key)

    def _cell(self, cell: SweepCell) -> int:
        self.cells.append(cell)
        return len(self.cells) - 1

    def merged(self, families: tuple[Family, ...], *, backwards: bool) -> MergedQueries:
        lanes = [family.lanes for family in families]
        holds = np.array([cell.holds for cell in self.cells], np.int64)
        widths = np.array([lanes[cell.family] for cell in self.cells], np.int64)
        places = np.zeros(len(self.cells), np.int64)
        for kind in (INTEGER, DOUBLE, LEAST):
            some = holds == kind
            places[some] = np.cumsum(widths[some]) - widths[some]
        edges = [edge for cell in self.cells for edge in cell.edges]
        program = SweepProgram(
            holds,
            places,
            np.array([cell.family for cell in self.cells], np.int64),
            begins_of(len(cell.edges) for cell in self.cells),
            np.array([source for source, _ in edges], np.int64),
            np.array([weight for _, weight in edges], np.int64),
            np.array(self.units, np.int64),
            np.array([family.grid for family in families], np.int64),
            np.array([family.offset for family in families], np.int64),
            np.array([family.reach for family in families], np.int64),
            np.array(lanes, np.int64),
            np.array([*self.stages, len(self.lengths)], np.int64),
            np.array(self.lengths, np.int64),
            np.array([*self.firsts, len(self.order)], np.int64),
            np.array(self.every, np.int64),
            np.array(self.shift, np.int64),
            begins_of(len(cells) for cells in self.reads),
            np.array([cell for cells in self.reads for cell in cells], np.int64),
        )
        integers, doubles, values = (tuple(known.values()) for known in self.weights)
        entries = {outcome: entry for known in self.uses.values() for entry, outcome in known.items()}
        needs = tuple(self._needs(cells, entries) for cells in self.reads)
        segments, noted = self._segments()
        return MergedQueries(
            program, segments, noted, tuple(self.cells), families, tuple(self.order), needs,
            (integers, doubles, values), len(self.nodes), backwards,
        )  # fmt: skip

    def _segments(self) -> tuple[SegmentProgram, tuple[int, ...]]:
        """The segments, but for the room of their START events, and the letters of their positions."""
        steps = [step for _, segment in self.uses for step in segment]
        entries = [(entry, cell) for known in self.uses.values() for entry, cell in known.items()]
        counts = [len(known) for known in self.uses.values()]
        use = np.full(len(self.cells), -1, np.int64)
        use[[cell for _, cell in entries]] = np.arange(len(entries))
        nothing = np.zeros(1, np.int64)
        return SegmentProgram(
            np.array([number for number, _ in self.uses], np.int64),
            begins_of(len(segment) for _, segment in self.uses),
            np.array([step.repeats for step in steps], np.bool_),
            np.array([at for at, (_, segment) in enumerate(self.uses) for _ in segment], np.int64),
            np.zeros(len(self.uses), np.int64),
            begins_of(counts),
            np.array([entry for entry, _ in entries], np.int64),
            np.array([cell for _, cell in entries], np.int64),
            np.repeat(np.arange(len(counts)), np.array(counts, np.int64)),
            use,
            nothing,
            nothing,
            nothing,
        ), tuple(step.letter for step in steps)

    def _needs(self, cells: list[int], entries: dict[int, int]) -> frozenset[int]:
        """All cells that some cells are made of."""
        found, waiting = set(cells), list(cells)
        while waiting:
            cell = waiting.pop()
            sources = {source for source, _ in self.cells[cell].edges}
            sources |= {entries[cell]} if cell in entries else set()
            waiting += sources - found
            found |= sources
        return frozenset(found)


def _kind_of_weight(measure: Measure, doubles: bool) -> int:
    if measure.function in ("min", "max"):
        return LEAST
    return DOUBLE if doubles else INTEGER
