"""Random patterns, small enough for brute force: at most five atoms, three levels, two Kleene parts inside one another.

A pattern is a syntax tree whose events get names first and predicates of their own last, when all variables are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from trendloom.frontend.tree import And, Event, Exists, Not, OperandWithin, Or, Pattern, Repeat, Seq

TYPES = ("A", "B", "C", "D")


@dataclass(frozen=True)
class Variable:
    """A variable of the pattern. `scope` is the chain of NOTs around it, outermost first; () is the match itself."""

    name: str
    type: str
    scope: tuple[int, ...]
    plural: bool  # can bind several events of a match


@dataclass(frozen=True)
class Allowed:
    """What may still be built at a place of the pattern."""

    atoms: int
    depth: int
    kleene: int  # how many repetitions may stand inside one another
    negation: bool
    conjunction: bool
    sealed: bool = False  # inside an AND: a NOT stands between two components

    def spend(self, atoms: int) -> Allowed:
        return replace(self, atoms=atoms, depth=self.depth - 1)


@st.composite
def skeletons(draw: st.DrawFn, allowed: Allowed) -> Pattern:
    """A pattern without names."""
    shapes = ["atom"]
    if allowed.depth > 0:
        if allowed.atoms >= 2:
            shapes += ["seq", "seq", "seq", "or"] + (["and"] * 3 if allowed.conjunction else [])
        if allowed.kleene > 0 and not allowed.sealed:
            shapes += ["repeat", "repeat"]
    shape = draw(st.sampled_from(shapes))
    if shape == "seq":
        return Seq(tuple(draw(sequence_parts(allowed))))
    if shape == "or":
        return Or(tuple(draw(split(allowed))))
    if shape == "and":
        return And(tuple(draw(split(replace(allowed, sealed=True)))))
    event = Event(draw(st.sampled_from(TYPES)))
    if shape == "atom":
        return draw(repetitions(event)) if allowed.kleene > 0 and draw(st.booleans()) else event
    return draw(repetitions(draw(skeletons(replace(allowed.spend(allowed.atoms), kleene=allowed.kleene - 1)))))


@st.composite
def split(draw: st.DrawFn, allowed: Allowed) -> list[Pattern]:
    """Two or three parts that share the atoms between them."""
    first = draw(st.integers(1, allowed.atoms - 1))
    parts = [draw(skeletons(allowed.spend(first)))]
    rest = allowed.atoms - first
    if rest >= 2 and draw(st.booleans()):
        parts.append(draw(skeletons(allowed.spend(1))))
        rest -= 1
    return [*parts, draw(skeletons(allowed.spend(rest)))]


@st.composite
def sequence_parts(draw: st.DrawFn, allowed: Allowed) -> list[Pattern]:
    """The parts of a SEQ, with NOTs before, between and after them."""
    if not allowed.negation or not draw(st.booleans()):
        return draw(split(allowed))
    if allowed.sealed:
        if allowed.atoms < 3:
            return draw(split(allowed))
        return draw(sealed_negation(allowed.atoms))
    positive = draw(st.integers(1, allowed.atoms - 1))
    parts = draw(split(allowed.spend(positive))) if positive >= 2 else [draw(skeletons(allowed.spend(1)))]
    left = allowed.atoms - positive
    for _ in range(draw(st.integers(1, min(2, left)))):
        size = draw(st.integers(1, left)) if left > 1 else 1
        left -= size
        parts.insert(draw(st.integers(0, len(parts))), Not(draw(negated(size))))
        if left == 0:
            break
    return parts


@st.composite
def sealed_negation(draw: st.DrawFn, atoms: int) -> list[Pattern]:
    """A NOT between two components, of which one may be missing, perhaps beside one that can be too."""
    ends: list[Pattern] = [Event(draw(st.sampled_from(TYPES))) for _ in range(2)]
    if draw(st.integers(0, 2)) == 0:
        end = draw(st.integers(0, 1))
        ends[end] = Repeat(ends[end], 0, 1, "?")
    beside = atoms >= 4 and draw(st.booleans())
    parts: list[Pattern] = [Not(draw(negated(atoms - (3 if beside else 2))))]
    if beside:
        parts.insert(draw(st.integers(0, 1)), draw(repetitions(Event(draw(st.sampled_from(TYPES))))))
    return [ends[0], *parts, ends[1]]


@st.composite
def negated(draw: st.DrawFn, atoms: int) -> Pattern:
    """What a NOT forbids: an event, a repetition, an AND, or a sequence that may hold a NOT again."""
    event = Event(draw(st.sampled_from(TYPES)))
    if atoms == 1:
        return draw(repetitions(event)) if draw(st.integers(0, 3)) == 0 else event
    return draw(skeletons(Allowed(atoms, 1, 1, negation=atoms >= 2, conjunction=True)))


@st.composite
def nested_negations(draw: st.DrawFn, depth: int, outermost: bool = True) -> Pattern:
    """A SEQ with a NOT that holds a SEQ with a NOT, and so on; the whole may be repeated."""
    event = Event(draw(st.sampled_from(TYPES)))
    if depth == 0:
        return draw(repetitions(event)) if draw(st.integers(0, 5)) == 0 else event
    parts: list[Pattern] = [event]
    if draw(st.booleans()):
        second = Event(draw(st.sampled_from(TYPES)))
        parts.append(draw(repetitions(second)) if draw(st.booleans()) else second)
    parts.insert(draw(st.integers(0, len(parts))), Not(draw(nested_negations(depth - 1, False))))
    return Repeat(Seq(tuple(parts)), 1, None, "+") if outermost and draw(st.booleans()) else Seq(tuple(parts))


@st.composite
def repetitions(draw: st.DrawFn, body: Pattern) -> Repeat:
    spelling = draw(st.sampled_from(["+", "+", "+", "*", "?", "{}"]))
    if spelling != "{}":
        return Repeat(body, 1 if spelling == "+" else 0, 1 if spelling == "?" else None, spelling)
    most_copies = 3 if isinstance(body, Event) else 2
    least = draw(st.integers(0, 2))
    if draw(st.booleans()):
        return Repeat(body, least, None, "{}")
    return Repeat(body, least, draw(st.integers(max(1, least), most_copies)), "{}")


# ------------------------------------------------------------------------------------------------------ names


def rebuilt(pattern: Pattern, change: Callable[[Event], Event]) -> Pattern:
    """The pattern with every event changed, from left to right."""
    match pattern:
        case Event():
            return change(pattern)
        case Seq(parts) | Or(parts) | And(parts):
            return type(pattern)(tuple(rebuilt(part, change) for part in parts))
        case Not() | Repeat() | Exists() | OperandWithin():
            return replace(pattern, pattern=rebuilt(pattern.pattern, change))


@st.composite
def named(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The pattern with names for some of its events: a, b, c, ... from left to right."""
    letters = iter("abcdefghij")

    def name(event: Event) -> Event:
        return replace(event, variable=next(letters)) if draw(st.integers(0, 3)) > 0 else event

    return rebuilt(pattern, name)


def variables_of(pattern: Pattern) -> list[Variable]:
    """Every variable once per scope, from left to right."""
    found: dict[tuple[str, tuple[int, ...]], Variable] = {}
    for event, scope, repeated in _occurrences(pattern, (), False, [0]):
        key = (event.variable or event.type, scope)
        plural = repeated or key in found
        found[key] = Variable(key[0], event.type, scope, plural)
    return list(found.values())


def _occurrences(
    pattern: Pattern, scope: tuple[int, ...], repeated: bool, counter: list[int]
) -> Iterator[tuple[Event, tuple[int, ...], bool]]:
    match pattern:
        case Event():
            yield pattern, scope, repeated
        case Seq(parts) | Or(parts) | And(parts):
            for part in parts:
                yield from _occurrences(part, scope, repeated, counter)
        case Not(inner):
            counter[0] += 1
            yield from _occurrences(inner, (*scope, counter[0]), repeated, counter)
        case Repeat(inner):
            yield from _occurrences(inner, scope, repeated or pattern.most != 1, counter)
        case Exists(_, inner) | OperandWithin(inner):
            yield from _occurrences(inner, scope, repeated, counter)


def rivals(pattern: Pattern) -> int:
    """The most positions of the match that compete for the events of one type: brute force grows with its power."""
    counts: dict[str, int] = dict.fromkeys(TYPES, 0)
    _count(pattern, 1, counts)
    return max(counts.values())


def _count(pattern: Pattern, copies: int, counts: dict[str, int]) -> None:
    match pattern:
        case Event():
            counts[pattern.type] += copies
        case Seq(parts) | Or(parts) | And(parts):
            for part in parts:
                _count(part, copies, counts)
        case Repeat(inner):
            unrolled = max(1, pattern.least) if pattern.most is None else pattern.most
            _count(inner, copies * unrolled, counts)
        case Exists(_, inner) | OperandWithin(inner):
            _count(inner, copies, counts)
