"""The pattern algebra after binding: positions numbered, repetitions unrolled, every part with an identity.

Positions are numbered left to right over the whole pattern, those inside NOT included. `p{n,m}` is unrolled into
copies, each with positions of its own and the same variables. `p*` is `Maybe(Kleene(p))`.

Rounds: a `Kleene` starts a new round each time its body is entered; a `Round` (a copy of an unrolled repetition) is
one round. A predicate attached to a component is about the events of one round (see `logical.plan.Condition`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Atom:
    """One event of `type`, bound to `variable`."""

    position: int
    type: str
    variable: str


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Kleene:
    """One or more rounds of `body`; `part` identifies this Kleene part."""

    part: int
    body: Pattern


@dataclass(frozen=True)
class Round:
    """A copy of a repetition that was unrolled: one round of the part `part`."""

    part: int
    body: Pattern


@dataclass(frozen=True)
class Maybe:
    """A binding of `body` or nothing."""

    body: Pattern


@dataclass(frozen=True)
class Either:
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Both:
    """AND: a binding of each part, in any order, on different events. `part` identifies this AND."""

    part: int
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Negation:
    """NOT: stands in a Sequence. `scope` identifies it; scope 0 is the pattern itself."""

    scope: int
    body: Pattern


Pattern = Atom | Sequence | Kleene | Round | Maybe | Either | Both | Negation


def parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """The direct parts of a pattern."""
    if isinstance(pattern, Atom):
        return ()
    if isinstance(pattern, Sequence | Either | Both):
        return pattern.parts
    return (pattern.body,)


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and everything inside it, also inside NOT."""
    yield pattern
    for part in parts(pattern):
        yield from walk(part)


def atoms(pattern: Pattern, *, negated: bool = True) -> Iterator[Atom]:
    """The atoms from left to right; `negated` False leaves out those inside NOT."""
    if isinstance(pattern, Atom):
        yield pattern
    for part in parts(pattern):
        if negated or not isinstance(part, Negation):
            yield from atoms(part, negated=negated)


def negations(pattern: Pattern) -> Iterator[Negation]:
    """The NOTs of this scope: those inside another NOT are not reached."""
    for part in parts(pattern):
        if isinstance(part, Negation):
            yield part
        else:
            yield from negations(part)


def scopes_of(pattern: Pattern, scope: int = 0) -> Iterator[tuple[int, Pattern]]:
    """The pattern and the body of every NOT in it, however deep, each with the number of its scope."""
    yield scope, pattern
    for negation in negations(pattern):
        yield from scopes_of(negation.body, negation.scope)
