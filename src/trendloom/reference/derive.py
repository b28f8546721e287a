"""How a pattern grows event by event, read directly from the pattern's tree.

What remains of a pattern is again a tree, the *rest*. `Growth.advance` gives every way in which a rest can take one
more event: the atom that takes it, the NOTs that were passed on the way, and the new rest. `Growth.finish` gives every
way in which a rest can end without an event. No automaton is built; the kernels build one, and must agree.

Where a thing happens is its *place*: the round of every Kleene part around it, and its branch of every AND around it.
Rounds are never empty, because a round is only entered to bind an event ("one or more bindings of p", and a binding is
not empty); only a Kleene part whose body may be nothing is nothing as a whole.

Cost: the size of the pattern per step; an ambiguous pattern has many derivations of one binding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trendloom.pattern.algebra import Atom, Both, Either, Kleene, Maybe, Negation, Pattern, Round, Sequence, atoms
from trendloom.reference.stream import StreamEvent

Mark = tuple[int, int]
"""Identity of a round or of an AND being matched: how far the derivation was when it began, and its first position."""


@dataclass(frozen=True)
class Nesting:
    rounds: tuple[tuple[int, Mark], ...] = ()
    branches: tuple[tuple[Mark, int], ...] = ()

    def round(self, part: int) -> Mark | None:
        """The round of a part in which this place lies; None outside of it."""
        return next((mark for known, mark in self.rounds if known == part), None)

    def enter(self, part: int, mark: Mark) -> Nesting:
        return Nesting((*self.rounds, (part, mark)), self.branches)

    def branch(self, conjunction: Mark, number: int) -> Nesting:
        return Nesting(self.rounds, (*self.branches, (conjunction, number)))

    def beside(self, other: Nesting) -> bool:
        """Whether the two lie in different branches of one AND: then neither is before the other."""
        for (mine, my_number), (theirs, their_number) in zip(self.branches, other.branches, strict=False):
            if (mine, my_number) != (theirs, their_number):
                return mine == theirs
        return False


TOP = Nesting()
"""Inside no round and no AND."""


@dataclass(frozen=True)
class BoundEvent:
    """An event that the derivation has bound."""

    event: StreamEvent
    atom: Atom
    place: Nesting


@dataclass(frozen=True)
class Crossed:
    """A NOT that the derivation has passed."""

    negation: Negation
    place: Nesting


Trace = tuple[BoundEvent | Crossed, ...]
"""A derivation so far. Of two items that are not beside each other, the first is before the second in the pattern."""


@dataclass(frozen=True)
class Chain:
    """One rest after another."""

    items: tuple[Rest, ...]


@dataclass(frozen=True)
class Again:
    """A Kleene part that has had a round: any number of further ones."""

    kleene: Kleene


@dataclass(frozen=True)
class Inside:
    """The rest of one round of a part."""

    part: int
    mark: Mark
    rest: Rest


@dataclass(frozen=True)
class Split:
    """An AND of which something is bound: the rest of each branch."""

    mark: Mark
    branches: tuple[Rest, ...]


Rest = Pattern | Chain | Again | Inside | Split

NOTHING = Chain(())


@dataclass(frozen=True)
class NextEvent:
    """One more event: the NOTs passed before it, the atom that binds it and where, and what remains."""

    crossed: tuple[Crossed, ...]
    atom: Atom
    place: Nesting
    rest: Rest


@dataclass(frozen=True)
class Growth:
    """How rests advance and finish. Rounds are recorded only for `tracked` parts: those that a predicate is about."""

    tracked: frozenset[int]

    def advance(self, rest: Rest, place: Nesting, clock: int) -> Iterator[NextEvent]:
        """Every way of binding one more event. `clock` grows with the derivation: it distinguishes rounds."""
        if isinstance(rest, Atom):
            yield NextEvent((), rest, place, NOTHING)
        elif isinstance(rest, Sequence | Chain):
            yield from self._advance_chain(_items(rest), place, clock)
        elif isinstance(rest, Either):
            for part in rest.parts:
                yield from self.advance(part, place, clock)
        elif isinstance(rest, Maybe):
            yield from self.advance(rest.body, place, clock)
        elif isinstance(rest, Kleene):
            for step in self._advance_round(rest.part, _mark(rest, clock), rest.body, place, clock):
                yield NextEvent(step.crossed, step.atom, step.place, _chain((step.rest, Again(rest))))
        elif isinstance(rest, Again):
            yield from self.advance(rest.kleene, place, clock)
        elif isinstance(rest, Round):
            yield from self._advance_round(rest.part, _mark(rest, clock), rest.body, place, clock)
        elif isinstance(rest, Inside):
            yield from self._advance_round(rest.part, rest.mark, rest.rest, place, clock)
        elif isinstance(rest, Both):
            yield from self._advance_branches(Split(_mark(rest, clock), rest.parts), place, clock)
        elif isinstance(rest, Split):
            yield from self._advance_branches(rest, place, clock)

    def _advance_chain(self, items: tuple[Rest, ...], place: Nesting, clock: int) -> Iterator[NextEvent]:
        skipped: list[tuple[Crossed, ...]] = [()]  # the ways in which everything before the item can be nothing
        for number, item in enumerate(items):
            for step in self.advance(item, place, clock) if skipped else ():
                rest = _chain((step.rest, *items[number + 1 :]))
                for crossed in skipped:
                    yield NextEvent(crossed + step.crossed, step.atom, step.place, rest)
            skipped = _joined(skipped, self.finish(item, place, clock))

    def _advance_round(self, part: int, mark: Mark, body: Rest, place: Nesting, clock: int) -> Iterator[NextEvent]:
        if part not in self.tracked:
            yield from self.advance(body, place, clock)
            return
        for step in self.advance(body, place.enter(part, mark), clock):
            rest = step.rest if step.rest == NOTHING else Inside(part, mark, step.rest)
            yield NextEvent(step.crossed, step.atom, step.place, rest)

    def _advance_branches(self, split: Split, place: Nesting, clock: int) -> Iterator[NextEvent]:
        for number, branch in enumerate(split.branches):
            for step in self.advance(branch, place.branch(split.mark, number), clock):
                branches = (*split.branches[:number], step.rest, *split.branches[number + 1 :])
                yield NextEvent(step.crossed, step.atom, step.place, Split(split.mark, branches))

    def finish(self, rest: Rest, place: Nesting, clock: int) -> tuple[tuple[Crossed, ...], ...]:
        """Every way of ending without another event: the NOTs that are passed then."""
        if isinstance(rest, Negation):
            return ((Crossed(rest, place),),)
        if isinstance(rest, Maybe | Again):
            return ((),)
        if isinstance(rest, Sequence | Chain):
            return _product(self.finish(item, place, clock) for item in _items(rest))
        if isinstance(rest, Either):
            return tuple(dict.fromkeys(way for part in rest.parts for way in self.finish(part, place, clock)))
        if isinstance(rest, Kleene | Round):
            return self._finish_round(rest.part, _mark(rest, clock), rest.body, place, clock)
        if isinstance(rest, Inside):
            return self._finish_round(rest.part, rest.mark, rest.rest, place, clock)
        if isinstance(rest, Split):
            return _product(
                self.finish(branch, place.branch(rest.mark, number), clock)
                for number, branch in enumerate(rest.branches)
            )
        return ()  # an atom needs its event; of an AND not all branches may be nothing

    def _finish_round(
        self, part: int, mark: Mark, body: Rest, place: Nesting, clock: int
    ) -> tuple[tuple[Crossed, ...], ...]:
        return self.finish(body, place.enter(part, mark) if part in self.tracked else place, clock)


def _items(rest: Sequence | Chain) -> tuple[Rest, ...]:
    return rest.parts if isinstance(rest, Sequence) else rest.items


def _chain(items: tuple[Rest, ...]) -> Rest:
    """The items one after another, in one flat chain: equal rests shall look equal."""
    flat: list[Rest] = []
    for item in items:
        flat.extend(_items(item) if isinstance(item, Sequence | Chain) else (item,))
    return flat[0] if len(flat) == 1 else Chain(tuple(flat))


def _mark(pattern: Pattern, clock: int) -> Mark:
    """Two things of one part that begin at the same time are copies, and differ in their first position."""
    first = next(atoms(pattern), None)
    return (clock, -1 if first is None else first.position)  # A{0} has no positions, and nothing happens in it


def _joined(before: Iterable[tuple[Crossed, ...]], after: Iterable[tuple[Crossed, ...]]) -> list[tuple[Crossed, ...]]:
    return list(dict.fromkeys(first + second for first, second in itertools.product(before, after)))


def _product(ways: Iterable[Iterable[tuple[Crossed, ...]]]) -> tuple[tuple[Crossed, ...], ...]:
    found: list[tuple[Crossed, ...]] = [()]
    for way in ways:
        found = _joined(found, way)
    return tuple(found)
