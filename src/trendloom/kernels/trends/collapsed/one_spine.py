"""The pattern narrowed to one spine: its matches are those that a row of collapsed trends stands for.

A state of the narrowed template also knows which positions of the spine have been bound. A match must bind them all,
and no other position outside Kleene variables, so that nothing is found only to be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from trendloom.kernels.matching.spec import Detection
from trendloom.pattern.template import Edge, Template

Node = tuple[int, frozenset[int]]  # a state of the template, and the positions of the spine that are bound


def with_spine(detection: Detection, spine: frozenset[int]) -> Detection:
    """The matches that bind exactly these positions outside Kleene variables, besides any that are hidden."""
    first, *others = detection.scopes
    template = _Narrowing(detection, spine).template()
    narrowed = (replace(first, template=template), *others)
    return replace(detection, scopes=narrowed, sieves=())  # which number the steps of the whole template


@dataclass
class _Narrowing:
    detection: Detection
    spine: frozenset[int]
    number: dict[Node, int] = field(default_factory=dict)

    def template(self) -> Template:
        whole = self.detection.scopes[0].template
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
            plural = self.detection.places[edge.position].variable in self.detection.plural
            plural |= edge.position in self.detection.hidden
            if plural or (edge.position in self.spine and edge.position not in bound):
                node = edge.target, bound if plural else bound | {edge.position}
                found.append(replace(edge, target=self.number.setdefault(node, len(self.number))))
        return tuple(found)
