"""Collapsed trends under the kernel contract: by spines, or by merging all matches with the same spine.

Merging is the definition, on columns, for patterns whose gaps depend on more than the events around them. Matches are
merged while they are found, so that memory grows with the rows, not with the matches.
Cost: O(matches · length · log) for merging, which is why the matches are limited (`up_to`); for spines see `spines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Asked, Expected
from trendloom.kernels.contract.matches import Matches, ResultColumn, join
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.exists import without_hidden
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.search import CERTAIN_FROM, SearchKernel, SearchState
from trendloom.kernels.trends.spines import MATCHES, CollapsedRows, Spine, distinct, packed
from trendloom.model.schema import Kind
from trendloom.pattern.template import Edge, Template

CHUNK = 1 << 16
"""Entries of partial matches of a row that are held for each event of a match."""
MOST_HELD = 1 << 22
"""Events of matches that are held before they are merged, unless the rows themselves have more."""


@dataclass(frozen=True)
class CollapsedKernel(SearchKernel):
    """Matches that differ in events of Kleene variables alone are one row."""

    @property
    def depends_on_all(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return (ResultColumn(MATCHES, Kind.INT, "how many matches a row stands for", counts=True),)

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """None: there are polynomially many rows."""
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Matches] | None:
        """The pattern narrowed to the spine of the row, enumerated over the row's events."""
        spine = self._spine(block, variables - self.pattern_spec.plural, asked)
        return None if spine is None else enumerate_matches(with_spine(self.pattern_spec, spine), block, CHUNK)

    def _spine(self, block: Block, variables: frozenset[str], asked: Asked) -> frozenset[int] | None:
        """The positions of the row's events outside Kleene variables, which bind `variables`."""
        row = self.one(block, asked)
        return None if row is None else frozenset(row.positions.tolist()) - self._plural

    @property
    def _plural(self) -> frozenset[int]:
        """The positions of Kleene variables."""
        spec = self.pattern_spec
        return frozenset(position for position, one in enumerate(spec.places) if one.variable in spec.plural)


@dataclass(frozen=True)
class SpinesKernel(CollapsedKernel):
    """Events outside Kleene variables first, then what may lie between them."""

    spine: Spine

    def all(self, block: Block) -> Iterator[Matches]:
        found = CollapsedRows(self.spine, self.pattern_spec, block).chunks()
        return merged(found, self.pattern_spec, block) if self.spine.anchored else found


@dataclass(frozen=True)
class MergedKernel(CollapsedKernel):
    """All matches are found by `search`, at most `most` of them, and merged."""

    search: SearchKernel
    most: int

    def within(self, memory: int) -> Self:
        return replace(self, search=self.search.within(memory))

    def all(self, block: Block) -> Iterator[Matches]:
        return merged(up_to(self.most, self.search.all(block)), self.pattern_spec, block)

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Matches] | None:
        """The same, without the events that EXISTS hides."""
        found = super().unfold(block, variables, asked)
        if found is None or not self.pattern_spec.hidden:
            return found
        return without_hidden(found, self.pattern_spec, self.most)

    def _spine(self, block: Block, variables: frozenset[str], asked: Asked) -> frozenset[int] | None:
        """Read off the pattern where each variable has one position, since finding the row is expensive."""
        positions = enumerate(self.pattern_spec.places)
        choices = [position for position, one in positions if one.scope == 0 and one.variable in variables]
        return frozenset(choices) if len(choices) == len(variables) else super()._spine(block, variables, asked)


# ------------------------------------------------------------------------------------------------ merging


def merged(found: Iterable[Matches], pattern_spec: PatternSpec, block: Block) -> Iterator[Matches]:
    """One row for all matches (or rows that already represent several) with the same spine; in one chunk."""
    held: list[Matches] = []
    size, limit = 0, MOST_HELD
    for matches in found:
        if MATCHES not in matches.columns:
            matches = replace(matches, columns={MATCHES: np.ones(len(matches), np.int64)})
        held.append(replace(matches, columns={MATCHES: matches.columns[MATCHES]}))
        size += len(matches.events)
        if size > limit:
            held = [_merged_rows(join(held), pattern_spec, block)]
            size = len(held[0].events)
            limit = max(MOST_HELD, 2 * size)
    if held:
        yield _merged_rows(join(held), pattern_spec, block)


def up_to(most: int, found: Iterable[Matches]) -> Iterator[Matches]:
    """The same matches, unless there are more than so many."""
    count = 0
    for matches in found:
        count += len(matches)
        if count > most:
            raise RunError(
                f"more than {most:,} matches to enumerate for collapsed trends (explain says why it must)",
                hint="use COUNT(*), a smaller window, or more selective predicates",
            )
        yield matches


def _merged_rows(matches: Matches, pattern_spec: PatternSpec, block: Block) -> Matches:
    group, first = _groups(matches, pattern_spec, block)
    label, representative = _labels(pattern_spec)
    bound = label[matches.positions]
    entry = np.unique(packed([group[matches.match], matches.events, bound]), return_index=True)[1]
    sizes = np.bincount(group[matches.match[entry]], minlength=len(first))
    return Matches(
        np.r_[0, np.cumsum(sizes)].astype(np.int64),
        matches.events[entry],
        representative[bound[entry]],
        None if matches.window_start is None else matches.window_start[first],
        {MATCHES: _sums(matches, group, len(first)), CERTAIN_FROM: _certain_from(matches, pattern_spec)[first]},
    )


def _labels(pattern_spec: PatternSpec) -> tuple[Array, Array]:
    """Per position a number, the same for those of one Kleene variable, by name; and per number its first position."""
    positions = enumerate(pattern_spec.places)
    named = [(one.variable, -1 if one.variable in pattern_spec.plural else p) for p, one in positions]
    listed = sorted(set(named))
    label = np.array([listed.index(name) for name in named], np.int64)
    return label, np.array([named.index(name) for name in listed], np.int32)


def _groups(matches: Matches, pattern_spec: PatternSpec, block: Block) -> tuple[Array, Array]:
    """The number of every row's group, and a row of each group."""
    code = block.key[matches.first]
    if matches.window_start is not None:
        code = packed([code, np.unique(matches.window_start, return_inverse=True)[1].reshape(-1)])
    row, event, position = _fixed(matches, pattern_spec)
    begin = np.searchsorted(row, np.arange(len(matches) + 1))
    for nth in range(int(np.diff(begin).max(initial=0))):
        has = np.flatnonzero(np.diff(begin) > nth)
        entry = np.zeros(len(matches), np.int64)
        entry[has] = event[begin[has] + nth] * len(pattern_spec.places) + position[begin[has] + nth] + 1
        code = distinct([code, entry])[1]
    first, group = distinct([code])
    return group, first


def _fixed(matches: Matches, pattern_spec: PatternSpec) -> tuple[Array, Array, Array]:
    """(row, event, position) of all that is bound outside Kleene variables, in this order."""
    fixed = np.array([one.variable not in pattern_spec.plural for one in pattern_spec.places], np.bool_)
    entry = np.flatnonzero(fixed[matches.positions])
    columns = matches.match[entry], matches.events[entry], matches.positions[entry].astype(np.int64)
    order = np.lexsort(columns[::-1])
    row, event, position = (column[order] for column in columns)
    return row, event, position


def _sums(matches: Matches, group: Array, groups: int) -> Array:
    values = matches.columns[MATCHES]
    if values.dtype == np.int64 and int(values.max(initial=0)) * len(values) >= 2**63:
        values = values.astype(object)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(groups))
    return np.add.reduceat(values[order], bounds) if groups else values[:0]


def _certain_from(matches: Matches, pattern_spec: PatternSpec) -> Array:
    """The first event outside Kleene variables, or the first where there is none."""
    found = matches.first.copy()
    row, event, _ = _fixed(matches, pattern_spec)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    found[row[first]] = event[first]
    return found


# ------------------------------------------------------------------------------- the pattern of one spine
#
# Its matches are those that a row of collapsed trends represents. A state of the narrowed template includes the
# positions of the spine that have been bound. A match must bind them all, and no other position outside Kleene
# variables, so that no match is found in vain.


Node = tuple[int, frozenset[int]]  # a state of the template, and the positions of the spine that are bound


def with_spine(pattern_spec: PatternSpec, spine: frozenset[int]) -> PatternSpec:
    """The matches that bind exactly these positions outside Kleene variables, besides any that are hidden."""
    first, *others = pattern_spec.scopes
    template = _Narrowing(pattern_spec, spine).template()
    narrowed = (replace(first, template=template), *others)
    return replace(pattern_spec, scopes=narrowed, sieves=())  # which number the steps of the whole template


@dataclass
class _Narrowing:
    pattern_spec: PatternSpec
    spine: frozenset[int]
    number: dict[Node, int] = field(default_factory=dict)

    def template(self) -> Template:
        whole = self.pattern_spec.scopes[0].template
        starts = self._edges(whole.starts, frozenset())
        edges: list[tuple[Edge, ...]] = []
        while len(edges) < len(self.number):
            state, bound = list(self.number)[len(edges)]
            edges.append(self._edges(whole.edges[state], bound))
        accepts = tuple(whole.accepts[state] if bound == self.spine else () for state, bound in self.number)
        return Template(starts, tuple(edges), accepts, tuple(whole.position_of[state] for state, _ in self.number))

    def _edges(self, edges: Iterable[Edge], bound: frozenset[int]) -> tuple[Edge, ...]:
        found = []
        for edge in edges:
            plural = self.pattern_spec.places[edge.position].variable in self.pattern_spec.plural
            plural |= edge.position in self.pattern_spec.hidden
            if plural or (edge.position in self.spine and edge.position not in bound):
                node = edge.target, bound if plural else bound | {edge.position}
                found.append(replace(edge, target=self.number.setdefault(node, len(self.number))))
        return tuple(found)
