"""How RETURN COLLAPSED TRENDS is computed: spine by spine without enumerating matches, or by merging matches.

The first is right where, once the events outside Kleene variables are known (the spine), every gap between two of them
can be filled by itself: no NOT, no AND, and every condition is about the spine alone, about one Kleene event and the
spine, or about two adjacent events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from trendloom.expr.nodes import Aggregate, Extent, walk
from trendloom.kernels.aggregate.program import obstacle as program_obstacle
from trendloom.kernels.contract.aggregates import AggregationSpec, Grain, Measure, Test
from trendloom.kernels.contract.pattern_spec import Pair, PatternPosition, PatternSpec, Rule, Scope
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.trends.collapsed import SpinesKernel
from trendloom.kernels.trends.spines import Gap, Settled, Spine
from trendloom.model.schema import Kind
from trendloom.model.time import Window
from trendloom.pattern.template import NOTHING, Crossings, Edge, Template, closure
from trendloom.planner.adjacency import Move, adjacent
from trendloom.planner.choice import COLLAPSED_ROWS
from trendloom.planner.estimates import estimate_search
from trendloom.planner.exists import HIDING
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

MOST_POSITIONS = 62
"""Positions of Kleene variables in a gap: one bit of a word for each, and two for the events around it."""
MATCHES = Measure("matches", "matches", None, None, Kind.INT)
NODE = int | None  # a position of the spine; None: the start, or the end


@dataclass(frozen=True)
class BySpine:
    """How rows are found spine by spine, and what that costs."""

    spine: Spine
    cost: str


def spine_of(pattern_spec: PatternSpec) -> BySpine | Refusal:
    """Spine by spine, or why that would not be right."""
    if pattern_spec.hidden:
        return HIDING
    rules = _refusal(pattern_spec) or _sorted_rules(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    spine = _Planner(pattern_spec, rules).spine()
    cost = "O(events of all rows), however many matches they stand for"
    if any(gap.ways.grain is not Grain.TYPE for gap in spine.gaps):
        cost += "; adjacent events are compared inside each gap"
    if spine.anchored:
        cost += ", once for each event that can begin a match: WITHIN bounds it from there"
    return BySpine(spine, cost)


def may_lack_a_spine(pattern_spec: PatternSpec) -> bool:
    """Whether some match has no event outside Kleene variables that EXISTS does not hide."""
    hidden = {pattern_spec.places[position].variable for position in pattern_spec.hidden}
    return _KleenePaths(replace(pattern_spec, plural=pattern_spec.plural | hidden)).passable(None, None)


def _refusal(pattern_spec: PatternSpec) -> Refusal | None:
    if len(pattern_spec.scopes) > 1:
        return Refusal(RefusalCode.NEGATION, "a NOT looks at more than the events around a gap")
    if any(place.branch for place in pattern_spec.places):
        return Refusal(RefusalCode.PATTERN, "parts of an AND may lie in any order")
    if sum(place.variable in pattern_spec.plural for place in pattern_spec.places) > MOST_POSITIONS:
        return Refusal(RefusalCode.PATTERN, f"the pattern has more than {MOST_POSITIONS} positions of Kleene variables")
    return None


# --------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True)
class _Rules:
    """The conditions, by what they depend on."""

    spine: tuple[Rule, ...]
    settled: tuple[Settled, ...]
    moves: tuple[tuple[Pair | Test, frozenset[Move]], ...]


def _sorted_rules(pattern_spec: PatternSpec) -> _Rules | Refusal:
    """The conditions of the pattern, or why some condition ties gaps together."""
    automaton = Automaton(pattern_spec.without_rules())
    spine: list[Rule] = []
    settled: list[Settled] = []
    moves: list[tuple[Pair | Test, frozenset[Move]]] = []
    for rule in pattern_spec.scopes[0].rules:
        plural = rule.shape.variables & pattern_spec.plural
        if rule.shape.pair is None and not rule.shape.looks_back and rule.shape.variables:
            # variables outside Kleene parts bind once in a match: rounds make no difference to their conditions
            if not plural:
                spine.append(Rule(rule.expr, None))
                continue
            if len(plural) == 1 and _of_single_events(rule, plural):
                (name,) = plural
                settled.append(Settled(name, tuple(sorted(rule.shape.variables - plural)), rule.expr))
                continue
        one = adjacent(rule, pattern_spec, automaton)
        if isinstance(one, Refusal):
            return one
        moves.append((one, frozenset((state, automaton.steps[step].target) for state, step in one.steps)))
    return _Rules(tuple(spine), tuple(settled), tuple(moves))


def _of_single_events(rule: Rule, plural: frozenset[str]) -> bool:
    """Whether a condition reads one event of the Kleene variable at a time, and plain attributes of all others."""
    aggregates = any(isinstance(node, Aggregate | Extent) for node in walk(rule.expr))
    return not (rule.shape.whole & plural) and not aggregates


# -------------------------------------------------------------------------------------------------- spines


class _KleenePaths:
    """Which positions can follow each other with nothing but positions of Kleene variables in between."""

    def __init__(self, pattern_spec: PatternSpec) -> None:
        template = pattern_spec.scopes[0].template
        self.template = template
        states = range(len(template.position_of))
        kleene = [pattern_spec.places[p].variable in pattern_spec.plural for p in template.position_of]
        self.fixed = [state for state in states if not kleene[state]]
        self.kleene = [state for state in states if kleene[state]]
        self.next = {state: template.targets(state) for state in states}

    def after(self, source: NODE) -> set[int]:
        """The states that can come next."""
        return {edge.target for edge in self.template.starts} if source is None else self.next[source]

    def direct(self, source: NODE, target: NODE) -> bool:
        if target is not None:
            return target in self.after(source)
        return source is not None and bool(self.template.accepts[source])

    def between(self, source: NODE, target: NODE) -> list[int]:
        """The states of Kleene variables on the ways from source to target."""
        kleene = set(self.kleene)
        reached = closure(self.after(source) & kleene, lambda state: self.next[state] & kleene)
        ends = {state for state in self.kleene if self.direct(state, target)}
        return sorted(
            reached & closure(ends, lambda state: [before for before in self.kleene if state in self.next[before]])
        )

    def passable(self, source: NODE, target: NODE) -> bool:
        return self.direct(source, target) or bool(self.between(source, target))


class _Planner:
    """The spine of a pattern without AND and NOT: every state is a position."""

    def __init__(self, pattern_spec: PatternSpec, rules: _Rules) -> None:
        self.pattern_spec, self.rules, self.paths = pattern_spec, rules, _KleenePaths(pattern_spec)
        self.template = pattern_spec.scopes[0].template
        self.anchored = pattern_spec.window.spanning and self._open_at_both_ends()

    def spine(self) -> Spine:
        nodes = self._nodes()
        gaps = [self._gap(*ends) for ends in self._ends(nodes)]
        return Spine(
            self._spines(nodes) if nodes else None,
            tuple(gaps),
            self.rules.settled,
            self.anchored,
            self.paths.passable(None, None),
        )

    def _open_at_both_ends(self) -> bool:
        """Whether some spine may have Kleene events before it and after it."""
        paths = self.paths
        if paths.between(None, None):
            return True
        first = [node for node in paths.fixed if paths.between(None, node)]
        later = closure(first, lambda node: [other for other in paths.fixed if paths.passable(node, other)])
        return any(paths.between(node, None) for node in later)

    def _nodes(self) -> list[int]:
        anchors = [state for state in self.paths.kleene if self.paths.direct(None, state)] if self.anchored else []
        return [*self.paths.fixed, *anchors]

    def _ends(self, nodes: list[int]) -> Iterator[tuple[NODE, NODE]]:
        """All gaps there can be."""
        for source, target in product([None, *nodes], [None, *nodes]):
            anchor = target is not None and target not in self.paths.fixed
            if self._leads(source, target) and not (anchor and source is not None):
                yield source, target

    def _leads(self, source: NODE, target: NODE) -> bool:
        if source is None and self.anchored:
            return self.paths.direct(None, target)
        return self.paths.passable(source, target)

    def _spines(self, nodes: list[int]) -> PatternSpec:
        """The pattern of the spines alone."""
        number = {node: at for at, node in enumerate(nodes)}
        position_of = tuple(self.template.position_of[node] for node in nodes)

        def edges(source: NODE, among: list[int]) -> tuple[Edge, ...]:
            found = [node for node in among if self._leads(source, node)]
            return tuple(Edge(self.template.position_of[node], number[node]) for node in found)

        template = Template(
            edges(None, nodes),
            tuple(edges(node, self.paths.fixed) for node in nodes),
            tuple((NOTHING,) if self._leads(node, None) else () for node in nodes),
            position_of,
        )
        # the first event of a match is a Kleene event that no gap holds: conditions on it are conditions of the spine
        anchors = tuple(Rule(one.expr, None) for one in self.rules.settled) if self.anchored else ()
        scope = Scope(0, 0, template, (*self.rules.spine, *anchors), frozenset())
        return PatternSpec(self.pattern_spec.places, (scope,), self.pattern_spec.window)

    # ---------------------------------------------------------------------------------------------- gaps

    def _gap(self, source: NODE, target: NODE) -> Gap:
        closed = source is None and self.anchored
        inside = [] if closed else self.paths.between(source, target)
        numbers = _Numbers(inside, source, target)
        pattern_spec = self._inside(numbers)
        automaton = Automaton(pattern_spec)
        compared = list(self._compared(numbers, automaton))
        pairs = tuple(one for one in compared if isinstance(one, Pair))
        tests = tuple(one for one in compared if isinstance(one, Test))
        algebra = not compared and program_obstacle(Automaton(pattern_spec)) is None
        grain = Grain.TYPE if algebra else Grain.EVENT if tests else Grain.MIXED
        ways = AggregationSpec(pattern_spec, grain, (MATCHES,), pairs, tests, algebra)
        position_of = self.template.position_of
        return Gap(
            None if source is None else position_of[source],
            None if target is None else position_of[target],
            tuple(position_of[state] for state in inside),
            ways,
            free=not inside and not compared,
        )

    def _inside(self, numbers: _Numbers) -> PatternSpec:
        """The pattern of one gap: from its source, over Kleene positions, to its target."""
        places, accepts = self.pattern_spec.places, self.template.accepts
        listed = [places[self.template.position_of[state]] for state in numbers.inside]
        outside = [PatternPosition("", "", 0, (), ()), PatternPosition("", "", 0, (), ())]
        ends: list[tuple[Crossings, ...]] = [() for _ in range(len(listed) + 2)]
        if numbers.target is not None:
            ends[-1] = (NOTHING,)
        else:
            for state, at in numbers.sources():
                ends[at] = (NOTHING,) if accepts[state] else ()
        edges: list[tuple[Edge, ...]] = [() for _ in ends]
        for state, at in numbers.sources():
            edges[at] = self._edges(self.paths.next[state], numbers)
        from_source = (Edge(numbers.at_source, numbers.at_source),)
        starts = from_source if numbers.source is not None else self._edges(self.paths.after(None), numbers)
        template = Template(starts, tuple(edges), tuple(ends), tuple(range(len(ends))))
        plain = tuple(replace(place, parts=(), branch=()) for place in [*listed, *outside])
        return PatternSpec(plain, (Scope(0, 0, template, (), frozenset()),), Window())

    def _edges(self, states: set[int], numbers: _Numbers) -> tuple[Edge, ...]:
        return tuple(Edge(at, at) for state, at in numbers.targets() if state in states)

    def _compared(self, numbers: _Numbers, automaton: Automaton) -> Iterator[Pair | Test]:
        """The conditions on adjacent events on the steps of this gap."""
        original = {at: state for state, at in numbers.sources()}
        reached = {at: state for state, at in numbers.targets()}
        for one, moves in self.rules.moves:
            steps = frozenset(
                (state, step.number)
                for state, steps in enumerate(automaton.moves[0])
                for step in steps
                if (original[state], reached[step.target]) in moves
            )
            if steps:
                yield replace(one, steps=steps)


@dataclass(frozen=True)
class _Numbers:
    """How the states of a gap are numbered: Kleene states, then the source, then the target."""

    inside: list[int]
    source: NODE
    target: NODE

    @property
    def at_source(self) -> int:
        return len(self.inside)

    def sources(self) -> Iterator[tuple[int, int]]:
        """States that steps lead from, with their numbers."""
        yield from ((state, at) for at, state in enumerate(self.inside))
        if self.source is not None:
            yield self.source, self.at_source

    def targets(self) -> Iterator[tuple[int, int]]:
        """States that steps lead to, with their numbers."""
        yield from ((state, at) for at, state in enumerate(self.inside))
        if self.target is not None:
            yield self.target, self.at_source + 1


# Collapsed trends: events outside Kleene variables first, then what may lie between them.


def consider(request: PlanningRequest) -> Choice | Refusal:
    found = spine_of(request.pattern_spec)
    if isinstance(found, Refusal):
        return found
    return Choice(
        SpinesKernel(request.pattern_spec, found.spine),
        "spines: events outside Kleene variables first, then what may lie between them",
        "what lies between two events outside Kleene variables does not depend on the rest of the match",
        found.cost,
        COLLAPSED_ROWS,
        estimate=estimate_search(request),
    )
