"""The template of a pattern: which event may follow which, and which NOTs lie between them.

Idea: Glushkov's construction. Every component is a position; a pattern is described by the positions that can
start it (first), end it (last) and stand next to each other (follow). Here the construction works on *fragments*,
which also carry what the seeds attach to transitions: NOT scopes (a NOT is a fragment that matches nothing and is
crossed), rounds of Kleene parts, and, for AND, the product of its parts.

An `Edge` leads to a state; without AND a state is a position. Several edges between the same states are
*alternatives*: ways to derive the same step that cross different NOTs or start different rounds. A step is possible
if one of them is. Alternatives that are never needed (their NOTs and rounds include another's) are dropped.

Cost: O(positions²) edges in the worst case; AND multiplies the states of its parts.
See Poppe, "Event Stream Analytics", 2.2 and 2.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from trendloom.errors import PlanError
from trendloom.pattern import algebra
from trendloom.pattern.algebra import Atom, Both, Either, Kleene, Maybe, Negation, Pattern, Round, Sequence

MOST_EDGES = 200_000
MOST_PAIRS = 100_000
MOST_WAYS = 1_000


@dataclass(frozen=True)
class Crossing:
    """A NOT between two events. `late`: it lies in the round of the later event, else in that of the earlier."""

    scope: int
    late: bool = False


Crossings = frozenset[Crossing]
NOTHING: Crossings = frozenset()


@dataclass(frozen=True)
class Edge:
    """A step that binds an event at `position` and leads to state `target`."""

    position: int
    target: int
    crossings: Crossings = NOTHING
    rounds: frozenset[int] = frozenset()  # parts of which this step starts a new round
    may_tie: bool = False  # the event before it belongs to an earlier part of the same AND


@dataclass(frozen=True)
class Template:
    """The automaton of one scope. State s is entered only by binding `position_of[s]`.

    `accepts[s]` lists the alternatives for ending in s: the NOTs that are then trailing; empty if s cannot end a match.
    """

    starts: tuple[Edge, ...]
    edges: tuple[tuple[Edge, ...], ...]
    accepts: tuple[tuple[Crossings, ...], ...]
    position_of: tuple[int, ...]

    @property
    def first(self) -> frozenset[int]:
        """Positions that can start a match."""
        return frozenset(edge.position for edge in self.starts)

    @property
    def last(self) -> frozenset[int]:
        """Positions that can end a match."""
        return frozenset(p for p, ways in zip(self.position_of, self.accepts, strict=True) if ways)

    @property
    def follow(self) -> dict[int, frozenset[int]]:
        """The positions that can come right after each position."""
        found: dict[int, set[int]] = {position: set() for position in self.position_of}
        for state, edges in enumerate(self.edges):
            found[self.position_of[state]].update(edge.position for edge in edges)
        return {position: frozenset(after) for position, after in found.items()}

    def targets(self, state: int) -> set[int]:
        """The states that can come right after a state."""
        return {edge.target for edge in self.edges[state]}

    @cached_property
    def reached(self) -> tuple[set[int], ...]:
        """The states that can come after each state, however much later."""
        return tuple(closure(self.targets(state), self.targets) for state in range(len(self.edges)))

    def ends_without(self, positions: Collection[int]) -> bool:
        """Whether a match can do without an event at any of these positions."""
        allowed = {state for state, position in enumerate(self.position_of) if position not in positions}
        starts = {edge.target for edge in self.starts} & allowed
        return any(self.accepts[state] for state in closure(starts, lambda state: self.targets(state) & allowed))

    def without_states(self, states: Collection[int]) -> Template:
        """The template without some states and the steps into and out of them.

        The states that stay keep their order and are numbered anew.
        """
        kept = [state for state in range(len(self.edges)) if state not in states]
        number = {state: new for new, state in enumerate(kept)}

        def renumbered(edges: Iterable[Edge]) -> tuple[Edge, ...]:
            return tuple(replace(edge, target=number[edge.target]) for edge in edges if edge.target in number)

        return Template(
            starts=renumbered(self.starts),
            edges=tuple(renumbered(self.edges[state]) for state in kept),
            accepts=tuple(self.accepts[state] for state in kept),
            position_of=tuple(self.position_of[state] for state in kept),
        )

    @property
    def minimal_length(self) -> int:
        """The least number of events of a match."""
        length, reached = 1, {edge.target for edge in self.starts}
        while not any(self.accepts[state] for state in reached):
            length, reached = length + 1, reached.union(*map(self.targets, reached))
        return length


def closure(states: Iterable[int], following: Callable[[int], Collection[int]]) -> set[int]:
    """States and all that follow them, step by step."""
    seen = set(states)
    todo = list(seen)
    while todo:
        more = set(following(todo.pop())) - seen
        seen |= more
        todo.extend(more)
    return seen


def build_template(pattern: Pattern) -> Template:
    """The template of a pattern; NOTs inside are crossed, not entered (each has a template of its own).

    Binding, warnings and planning all need it, and queries of a workload often differ in types and variables only,
    which are not part of a template: so the last ones are kept.
    """
    return _template_of(_shape(pattern))


def _shape(pattern: Pattern) -> Pattern:
    """The pattern without what a template does not depend on: types, variables, what is inside NOT."""
    match pattern:
        case Atom(position):
            return Atom(position, "", "")
        case Negation(scope):
            return Negation(scope, Sequence(()))
        case Sequence(parts) | Either(parts) | Both(parts=parts):
            return replace(pattern, parts=tuple(map(_shape, parts)))
        case Maybe(body) | Round(body=body) | Kleene(body=body):
            return replace(pattern, body=_shape(body))


@lru_cache(maxsize=64)
def _template_of(shape: Pattern) -> Template:
    fragment = _fragment(shape)
    return Template(
        starts=_least(fragment.starts),
        edges=tuple(_least(edges) for edges in fragment.edges),
        accepts=tuple(_least_crossings(ways) for ways in fragment.accepts),
        position_of=tuple(fragment.position_of),
    )


# --------------------------------------------------------------------------------------------- fragments


@dataclass
class _Fragment:
    """A template under construction. `empty`: the ways to match nothing, each with the NOTs it crosses."""

    starts: list[Edge] = field(default_factory=list)
    edges: list[list[Edge]] = field(default_factory=list)
    accepts: list[list[Crossings]] = field(default_factory=list)
    position_of: list[int] = field(default_factory=list)
    empty: list[Crossings] = field(default_factory=list)


def _fragment(pattern: Pattern) -> _Fragment:
    match pattern:
        case Atom():
            start = Edge(pattern.position, 0)
            return _Fragment([start], [[]], [[NOTHING]], [pattern.position], [])
        case Negation():
            return _Fragment(empty=[frozenset({Crossing(pattern.scope)})])
        case Sequence():
            whole = _Fragment(empty=[NOTHING])
            for part in pattern.parts:
                whole = _concatenate(whole, _fragment(part))
            return whole
        case Either():
            return _union([_fragment(part) for part in pattern.parts])
        case Maybe():
            fragment = _fragment(pattern.body)
            fragment.empty = [NOTHING]  # the way that crosses least
            return fragment
        case Round():
            return _entering(_fragment(pattern.body), pattern.part)
        case Kleene():
            return _repeat(_entering(_fragment(pattern.body), pattern.part))
        case Both():
            return _entering(_product([_fragment(part) for part in pattern.parts]), pattern.part)


def _entering(fragment: _Fragment, part: int) -> _Fragment:
    fragment.starts = [replace(edge, rounds=edge.rounds | {part}) for edge in fragment.starts]
    return fragment


def _repeat(fragment: _Fragment) -> _Fragment:
    for state, ways in enumerate(fragment.accepts):
        fragment.edges[state].extend(_joined(ways, fragment.starts))
    _check_size(sum(map(len, fragment.edges)))
    return fragment


def _joined(ways: Iterable[Crossings], starts: Iterable[Edge]) -> list[Edge]:
    """Edges from an end to a start: what trails before it and what leads after it are crossed together."""
    starts = list(starts)
    return [replace(edge, crossings=way | _late(edge.crossings)) for way in ways for edge in starts]


def _late(crossings: Crossings) -> Crossings:
    return frozenset(replace(crossing, late=True) for crossing in crossings)


def _shifted(fragment: _Fragment, by: int) -> _Fragment:
    def move(edges: list[Edge]) -> list[Edge]:
        return [replace(edge, target=edge.target + by) for edge in edges]

    fragment.starts = move(fragment.starts)
    fragment.edges = [move(edges) for edges in fragment.edges]
    return fragment


def _concatenate(left: _Fragment, right: _Fragment) -> _Fragment:
    right = _shifted(right, len(left.position_of))
    starts = left.starts + _joined(left.empty, right.starts)
    # most states of a long pattern end nothing, and are left as they are
    edges = [
        edges + _joined(ways, right.starts) if ways else edges
        for edges, ways in zip(left.edges, left.accepts, strict=True)
    ]
    accepts = [_both(ways, right.empty) if ways and right.empty else [] for ways in left.accepts]
    whole = _Fragment(
        starts,
        edges + right.edges,
        accepts + right.accepts,
        left.position_of + right.position_of,
        _both(left.empty, right.empty),
    )
    _check_size(sum(map(len, whole.edges)))
    return whole


def _union(fragments: list[_Fragment]) -> _Fragment:
    whole = _Fragment()
    for fragment in fragments:
        moved = _shifted(fragment, len(whole.position_of))
        whole.starts += moved.starts
        whole.edges += moved.edges
        whole.accepts += moved.accepts
        whole.position_of += moved.position_of
        whole.empty += moved.empty
    return whole


def _product(fragments: list[_Fragment]) -> _Fragment:
    """AND: the parts advance independently. A state is the state of each part (None: not begun) and who moved last.

    Equal times are allowed only from an earlier to a later part, so that each binding is derived in one order.
    """
    whole = _Fragment()
    number: dict[tuple[tuple[int | None, ...], int], int] = {}
    todo: list[tuple[tuple[int | None, ...], int]] = []

    def enter(states: tuple[int | None, ...], mover: int, position: int) -> int:
        key = (states, mover)
        if key not in number:
            number[key] = len(number)
            whole.edges.append([])
            whole.accepts.append(_joint_acceptance(fragments, states))
            whole.position_of.append(position)
            todo.append(key)
        return number[key]

    def moves(states: tuple[int | None, ...], last: int) -> list[Edge]:
        found = []
        for mover, fragment in enumerate(fragments):
            here = states[mover]
            for edge in fragment.starts if here is None else fragment.edges[here]:
                moved = (*states[:mover], edge.target, *states[mover + 1 :])
                target = enter(moved, mover, edge.position)
                tie = last >= 0 and (mover > last or (mover == last and edge.may_tie))
                found.append(replace(edge, target=target, may_tie=tie))
        return found

    whole.starts = moves((None,) * len(fragments), -1)
    edges = 0
    while todo:
        key = todo.pop()
        whole.edges[number[key]] = moves(*key)
        edges += len(whole.edges[number[key]])
        _check_size(edges)
    # one part may be nothing, not all of them: an AND never matches nothing
    return whole


def _joint_acceptance(fragments: list[_Fragment], states: tuple[int | None, ...]) -> list[Crossings]:
    """The ways for all parts of an AND to end at once; a part that has not begun must be able to match nothing."""
    ways: list[Crossings] = [NOTHING]
    for fragment, state in zip(fragments, states, strict=True):
        mine = fragment.empty if state is None else fragment.accepts[state]
        ways = _both(ways, mine)
    return ways


def _both(ways: list[Crossings], others: list[Crossings]) -> list[Crossings]:
    """The ways to cross both."""
    if len(ways) * len(others) > MOST_WAYS:
        raise PlanError(
            f"NOTs in optional parts can be passed in more than {MOST_WAYS} ways", hint="split the pattern with OR"
        )
    return list(_least_crossings(way | other for way in ways for other in others))


def _check_size(edges: int) -> None:
    if edges > MOST_EDGES:
        raise PlanError(
            f"the pattern needs more than {MOST_EDGES} transitions",
            hint="use smaller repetitions or fewer parts of AND",
        )


def _least(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Without alternatives that cross and start no less than another one between the same states."""
    kept: list[Edge] = []
    for edge in sorted(set(edges), key=lambda e: (e.position, e.target, len(e.crossings), sorted(e.rounds), str(e))):
        same = [k for k in kept if (k.position, k.target, k.may_tie) == (edge.position, edge.target, edge.may_tie)]
        if not any(k.rounds == edge.rounds and k.crossings <= edge.crossings for k in same):
            kept.append(edge)
    return tuple(kept)


def _least_crossings(ways: Iterable[Crossings]) -> tuple[Crossings, ...]:
    kept: list[Crossings] = []
    for way in sorted(set(ways), key=lambda w: (len(w), sorted((c.scope, c.late) for c in w))):
        if not any(k <= way for k in kept):
            kept.append(way)
    return tuple(kept)


# ------------------------------------------------------------------------------------- derived properties


def plural_variables(pattern: Pattern) -> frozenset[str]:
    """Variables outside NOT that can bind more than one event of a match."""
    variable = {atom.position: atom.variable for atom in algebra.atoms(pattern)}
    template = build_template(pattern)
    states: dict[str, set[int]] = {}
    for state, position in enumerate(template.position_of):
        states.setdefault(variable[position], set()).add(state)
    return frozenset(name for name, mine in states.items() if any(mine & template.reached[state] for state in mine))


def in_every_match(pattern: Pattern, variable: str) -> bool:
    """Whether every match binds an event to the variable."""
    binds = {atom.position for atom in algebra.atoms(pattern, negated=False) if atom.variable == variable}
    return not build_template(pattern).ends_without(binds)


def adjacent_variables(pattern: Pattern) -> frozenset[tuple[str, str]]:
    """Pairs of variables of which events can be adjacent in a match; inside AND, any two of its parts' can."""
    variable = {atom.position: atom.variable for atom in algebra.atoms(pattern)}
    template = build_template(pattern)
    return frozenset(
        (variable[template.position_of[state]], variable[edge.position])
        for state, edges in enumerate(template.edges)
        for edge in edges
    )


def ambiguous_types(pattern: Pattern) -> tuple[str, ...] | None:
    """A sequence of types that the pattern derives at two different sequences of positions, or None.

    Walks pairs of states that read the same types; ambiguous if a pair that has differed once ends in two accepting
    states. Cost: O(states² · edges²), so it gives up after MOST_PAIRS: a large AND may go without its warning.
    """
    template = build_template(pattern)
    types = {atom.position: atom.type for atom in algebra.atoms(pattern)}
    steps = _type_steps(template, types)
    queue: deque[tuple[int, int, bool, tuple[str, ...]]] = deque([(-1, -1, False, ())])
    seen = {(-1, -1, False)}
    while queue and len(seen) <= MOST_PAIRS:
        left, right, differed, word = queue.popleft()
        if differed and template.accepts[left] and template.accepts[right]:
            return word
        for name, lefts in steps[left].items():
            for a in lefts:
                for b in steps[right].get(name, ()):
                    key = (a, b, differed or template.position_of[a] != template.position_of[b])
                    if key not in seen:
                        seen.add(key)
                        queue.append((*key, (*word, name)))
    return None


def _type_steps(template: Template, types: dict[int, str]) -> dict[int, dict[str, set[int]]]:
    steps: dict[int, dict[str, set[int]]] = {}
    for state, edges in ((-1, template.starts), *enumerate(template.edges)):
        table = steps.setdefault(state, {})
        for edge in edges:
            table.setdefault(types[edge.position], set()).add(edge.target)
    return steps
