"""Bind a pattern: number its positions, unroll repetitions, and find what every variable and NOT is.

`p{n,m}` becomes copies, each with positions and NOT scopes of its own, so everything after the binder knows only
sequence, Kleene plus, option, choice, conjunction and negation. Cost: linear in the unrolled pattern, which is
bounded by MOST_POSITIONS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trendloom.errors import BindError, Span, did_you_mean
from trendloom.lang import tree
from trendloom.pattern import algebra

MOST_POSITIONS = 2000


@dataclass(frozen=True)
class Attached:
    """A predicate written at a component: where it stands decides what it speaks of."""

    predicate: tree.Expression
    scope: int
    parts: tuple[int, ...]  # enclosing Kleene and Round parts, outermost first


@dataclass
class Bound:
    """Everything the binder learns of a pattern; filled while binding, read afterwards."""

    pattern: algebra.Pattern | None = None
    atoms: list[algebra.Atom] = field(default_factory=list)
    scope_of: list[int] = field(default_factory=list)  # by position
    parent: dict[int, int] = field(default_factory=dict)  # NOT scope → the scope around it
    attached: list[Attached] = field(default_factory=list)
    hidden: dict[str, Span | None] = field(default_factory=dict)
    members: dict[int, set[str]] = field(default_factory=dict)  # part → variables inside it
    parts: int = 0

    def variables(self, scope: int) -> frozenset[str]:
        """The variables that a scope binds itself."""
        return frozenset(a.variable for a, s in zip(self.atoms, self.scope_of, strict=True) if s == scope)

    def visible(self, scope: int) -> frozenset[str]:
        """The variables of a scope and of those around it."""
        names = self.variables(scope)
        return names | self.visible(self.parent[scope]) if scope else names

    @property
    def scopes(self) -> tuple[int, ...]:
        return (0, *self.parent)

    @property
    def types_of(self) -> dict[str, str]:
        """A type of each variable, for messages."""
        return {atom.variable: atom.type for atom in reversed(self.atoms)}


def bind_pattern(pattern: tree.Pattern) -> Bound:
    """The algebra of a written pattern, or an error that names the place."""
    check_names(pattern)
    check_negations(pattern, in_sequence=False)
    bound = Bound()
    bound.pattern = _Binder(bound).bind(pattern, 0, ())
    for name, span in bound.hidden.items():
        if name not in bound.variables(0):
            raise BindError(
                f"EXISTS names '{name}', which its pattern does not bind",
                span,
                hint=did_you_mean(name, bound.visible(0)),
            )
    return bound


def events_of(pattern: tree.Pattern) -> Iterator[tree.Event]:
    """The written events from left to right."""
    if isinstance(pattern, tree.Event):
        yield pattern
    for part in _parts(pattern):
        yield from events_of(part)


def _parts(pattern: tree.Pattern) -> tuple[tree.Pattern, ...]:
    if isinstance(pattern, tree.Event):
        return ()
    if isinstance(pattern, tree.Seq | tree.Or | tree.And):
        return pattern.parts
    return (pattern.pattern,)


def check_names(pattern: tree.Pattern) -> None:
    """A written variable appears once, and is not the name of a type used unnamed."""
    unnamed = {event.type for event in events_of(pattern) if event.variable is None}
    written: set[str] = set()
    for event in events_of(pattern):
        if event.variable is None:
            continue
        if event.variable in written:
            raise BindError(
                f"variable '{event.variable}' appears twice", event.span, hint="give each component a name of its own"
            )
        if event.variable in unnamed:
            raise BindError(
                f"variable '{event.variable}' is also the name of a type that is used without a variable",
                event.span,
                hint=f"name the other component too, for example `{event.variable} {event.variable.lower()}1`",
            )
        written.add(event.variable)


def check_negations(pattern: tree.Pattern, *, in_sequence: bool) -> None:
    """A NOT stands in a SEQ that has something positive; inside an AND it stands between two components."""
    if isinstance(pattern, tree.Not) and not in_sequence:
        raise BindError("NOT stands outside a SEQ", pattern.span, hint="say what it stands between: SEQ(A, NOT B, C)")
    if isinstance(pattern, tree.Seq) and all(isinstance(part, tree.Not) for part in pattern.parts):
        raise BindError(
            "this SEQ has nothing but NOT", pattern.span, hint="add a component that must happen: SEQ(A, NOT B)"
        )
    if isinstance(pattern, tree.And):
        for part in pattern.parts:
            for negation in (*_edge_negations(part, 0), *_edge_negations(part, -1)):
                raise BindError(
                    "a NOT inside an AND must stand between two components",
                    negation.span,
                    hint="AND(SEQ(A, NOT B, C), D) is allowed, AND(SEQ(A, NOT B), D) is not",
                )
    for part in _parts(pattern):
        check_negations(part, in_sequence=isinstance(pattern, tree.Seq))


def _edge_negations(pattern: tree.Pattern, edge: int) -> Iterator[tree.Not]:
    """NOTs with nothing positive before (edge 0) or after them (edge −1) in a part of an AND."""
    if isinstance(pattern, tree.Seq):
        for part in pattern.parts if edge == 0 else reversed(pattern.parts):
            if isinstance(part, tree.Not):
                yield part
            else:
                yield from _edge_negations(part, edge)
                return
    elif not isinstance(pattern, tree.Not):
        for part in _parts(pattern):
            yield from _edge_negations(part, edge)


class _Binder:
    """Walks the written pattern once, writing what it finds into `bound`."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def bind(self, pattern: tree.Pattern, scope: int, parts: tuple[int, ...]) -> algebra.Pattern:
        match pattern:
            case tree.Event():
                return self.event(pattern, scope, parts)
            case tree.Seq():
                return algebra.Sequence(tuple(self.bind(part, scope, parts) for part in pattern.parts))
            case tree.Or():
                return algebra.Either(tuple(self.bind(part, scope, parts) for part in pattern.parts))
            case tree.And():
                part = self.new_part()
                return algebra.Both(part, tuple(self.bind(each, scope, parts) for each in pattern.parts))
            case tree.Not():
                inner = len(self.bound.parent) + 1
                self.bound.parent[inner] = scope
                return algebra.Negation(inner, self.bind(pattern.pattern, inner, parts))
            case tree.Exists():
                if scope == 0:
                    self.bound.hidden[pattern.variable] = pattern.span
                return self.bind(pattern.pattern, scope, parts)
            case tree.Repeat():
                return self.repeat(pattern, scope, parts)

    def event(self, event: tree.Event, scope: int, parts: tuple[int, ...]) -> algebra.Atom:
        bound = self.bound
        if len(bound.atoms) >= MOST_POSITIONS:
            raise BindError(
                f"the pattern has more than {MOST_POSITIONS} positions once its repetitions are unrolled",
                event.span,
                hint="use + instead of a large {n,m}",
            )
        atom = algebra.Atom(len(bound.atoms), event.type, event.variable or event.type)
        bound.atoms.append(atom)
        bound.scope_of.append(scope)
        for part in parts:
            bound.members[part].add(atom.variable)
        if event.predicate is not None:
            bound.attached.append(Attached(event.predicate, scope, parts))
        return atom

    def repeat(self, repeat: tree.Repeat, scope: int, parts: tuple[int, ...]) -> algebra.Pattern:
        body, least, most = repeat.pattern, repeat.least, repeat.most
        if repeat.spelling == "?":
            return algebra.Maybe(self.bind(body, scope, parts))
        if most is None:
            copies = [self.copy(body, scope, parts) for _ in range(least - 1)]
            kleene: algebra.Pattern = self.kleene(body, scope, parts)
            if least == 0:
                kleene = algebra.Maybe(kleene)
            return algebra.Sequence((*copies, kleene)) if copies else kleene
        copies = [self.copy(body, scope, parts) for _ in range(most)]
        optional: algebra.Pattern | None = None
        for copy in reversed(copies[least:]):
            optional = algebra.Maybe(copy if optional is None else algebra.Sequence((copy, optional)))
        required = copies[:least] + ([] if optional is None else [optional])
        return required[0] if len(required) == 1 else algebra.Sequence(tuple(required))

    def kleene(self, body: tree.Pattern, scope: int, parts: tuple[int, ...]) -> algebra.Pattern:
        part = self.new_part()
        return algebra.Kleene(part, self.bind(body, scope, (*parts, part)))

    def copy(self, body: tree.Pattern, scope: int, parts: tuple[int, ...]) -> algebra.Pattern:
        part = self.new_part()
        return algebra.Round(part, self.bind(body, scope, (*parts, part)))

    def new_part(self) -> int:
        part = self.bound.parts
        self.bound.parts += 1
        self.bound.members[part] = set()
        return part
