"""Collapsed trends under the contract every kernel keeps: by spines, or by putting all matches together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Asked, Expected
from trendloom.kernels.contract.matches import Matches, ResultColumn
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.exists import without_hidden
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.trends.collapsed.merge import merged, up_to
from trendloom.kernels.trends.collapsed.spec import MATCHES, Spine
from trendloom.kernels.trends.collapsed.spines import collapse
from trendloom.model.schema import Kind
from trendloom.pattern.template import Edge, Template

# The pattern narrowed to one spine: its matches are those that a row of collapsed trends stands for.
#
# A state of the narrowed template also knows which positions of the spine have been bound. A match must bind them all,
# and no other position outside Kleene variables, so that nothing is found only to be thrown away.


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


CHUNK = 1 << 16
"""Entries of partial matches of a row that are held for each event of a match."""


@dataclass(frozen=True)
class CollapsedKernel(SearchKernel):
    """Matches that differ in events of Kleene variables alone are one row."""

    @property
    def together(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return (ResultColumn(MATCHES, Kind.INT, "how many matches a row stands for", counts=True),)

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """There are polynomially many rows: nobody has to be told."""
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
        places = enumerate(self.pattern_spec.places)
        return frozenset(position for position, place in places if place.variable in self.pattern_spec.plural)


@dataclass(frozen=True)
class SpinesKernel(CollapsedKernel):
    """Events outside Kleene variables first, then what may lie between them."""

    spine: Spine

    def all(self, block: Block) -> Iterator[Matches]:
        return collapse(self.spine, self.pattern_spec, block)


@dataclass(frozen=True)
class MergedKernel(CollapsedKernel):
    """All matches are found by `search`, at most `most` of them, and put together."""

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
        """There is no cheap way to look for the row, and often no need: each variable has one position."""
        places = enumerate(self.pattern_spec.places)
        choices = [position for position, place in places if place.scope == 0 and place.variable in variables]
        return frozenset(choices) if len(choices) == len(variables) else super()._spine(block, variables, asked)
