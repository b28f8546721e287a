"""Bind a pattern: number its positions, unroll repetitions, find its scopes, and check where variables are used.

`p{n,m}` becomes copies, each with positions and NOT scopes of its own, so everything after the binder has only
sequence, Kleene plus, option, choice, conjunction and negation. Cost: linear in the unrolled pattern, which is
bounded by MOST_POSITIONS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from trendloom.errors import BindError, Span, did_you_mean
from trendloom.frontend import tree
from trendloom.frontend.tql.keywords import write_name
from trendloom.pattern import algebra

MOST_POSITIONS = 2000


@dataclass(frozen=True)
class Surroundings:
    """What a component stands in."""

    scope: int = 0  # the innermost NOT; 0: none
    parts: tuple[int, ...] = ()  # Kleene and Round parts, outermost first
    exists: frozenset[str] = frozenset()  # the variables that each EXISTS around it names


@dataclass(frozen=True)
class Attached:
    """A predicate written at a component: its place decides which events it restricts."""

    predicate: tree.Expression
    variable: str  # of the component
    around: Surroundings


@dataclass(frozen=True)
class BoundOperand:
    """An operand with a WITHIN of its own, and the positions it binds."""

    written: tree.OperandWithin
    positions: tuple[int, ...]


@dataclass
class Bound:
    """A bound pattern, with the scopes, variables and operands found in it; filled while binding, read afterwards."""

    pattern: algebra.Pattern | None = None
    placed: list[tuple[algebra.Atom, Surroundings]] = field(default_factory=list)  # by position
    parent: dict[int, int] = field(default_factory=dict)  # NOT scope → the scope around it
    attached: list[Attached] = field(default_factory=list)
    hidden: dict[str, Span | None] = field(default_factory=dict)  # what EXISTS leaves out of the result
    named: set[str] = field(default_factory=set)  # by any EXISTS, inside of NOTs too
    members: dict[int, set[str]] = field(default_factory=dict)  # part → variables inside it
    operands: list[BoundOperand] = field(default_factory=list)  # those with a WITHIN of their own
    parts: int = 0

    @property
    def atoms(self) -> list[algebra.Atom]:
        return [atom for atom, _ in self.placed]

    def atoms_in(self, scope: int) -> list[algebra.Atom]:
        """The atoms of a scope itself, from left to right."""
        return [atom for atom, around in self.placed if around.scope == scope]

    def variables(self, scope: int) -> frozenset[str]:
        """The variables that a scope binds itself."""
        return frozenset(atom.variable for atom in self.atoms_in(scope))

    def visible(self, scope: int) -> frozenset[str]:
        """The variables of a scope and of those around it."""
        names = self.variables(scope)
        return names | self.visible(self.parent[scope]) if scope else names

    @property
    def scopes(self) -> tuple[int, ...]:
        return (0, *self.parent)

    def scopes_of(self, variable: str) -> tuple[int, ...]:
        """The scopes that bind a variable; several only if it is a type that is used unnamed."""
        return tuple(scope for scope in self.scopes if variable in self.variables(scope))

    def encloses(self, outer: int, inner: int) -> bool:
        """Whether a scope is one of those around another."""
        return inner != 0 and (self.parent[inner] == outer or self.encloses(outer, self.parent[inner]))

    def type_of(self, variable: str) -> str:
        """A type of a variable, for messages."""
        return next((atom.type for atom in self.atoms if atom.variable == variable), variable)


def bind_pattern(pattern: tree.Pattern) -> Bound:
    """The algebra of a written pattern, or an error that names the place."""
    check_names(pattern)
    check_operands(pattern)
    check_negations(pattern, in_sequence=False)
    bound = Bound()
    bound.pattern = _Binder(bound).bind(pattern, Surroundings())
    return bound


def check_names(pattern: tree.Pattern) -> None:
    """A written variable appears once, and is not the name of a type used unnamed."""
    events = [*tree.nodes_of(pattern, tree.Event)]
    unnamed = {event.type for event in events if event.variable is None}
    written: set[str] = set()
    for event in events:
        name = event.variable
        if name is None:
            continue
        if name in written:
            raise BindError(
                f"variable '{name}' appears twice", event.span, hint="give each component a name of its own"
            )
        if name in unnamed:
            raise BindError(
                f"variable '{name}' is also the name of a type that is used without a variable",
                event.span,
                hint=f"name the other component too, for example `{name} {name.lower()}1`",
            )
        written.add(name)


def check_negations(pattern: tree.Pattern, *, in_sequence: bool) -> None:
    """A NOT stands in a SEQ that has something positive; inside an AND it stands between two components."""
    if isinstance(pattern, tree.Not) and not in_sequence:
        raise BindError(
            "NOT stands outside a SEQ: it says what does not happen before, between or after the components of a SEQ",
            pattern.span,
            hint="say what it stands between: SEQ(A, NOT B, C)",
        )
    if isinstance(pattern, tree.Seq) and all(isinstance(part, tree.Not) for part in pattern.parts):
        raise BindError(
            "this SEQ has nothing but NOT: a match holds at least one event",
            pattern.span,
            hint="add a component that must happen: SEQ(A, NOT B)",
        )
    if isinstance(pattern, tree.And):
        for part in pattern.parts:
            for negation in (*_edge_negations(part, 0), *_edge_negations(part, -1)):
                raise BindError(
                    "a NOT inside an AND must stand between two components",
                    negation.span,
                    hint="AND(SEQ(A, NOT B, C), D) is allowed, AND(SEQ(A, NOT B), D) is not",
                )
    for part in tree.parts(pattern):
        check_negations(part, in_sequence=isinstance(pattern, tree.Seq))


def check_operands(pattern: tree.Pattern, inside: str | None = None) -> None:
    """A WITHIN of its own belongs to an operand of the pattern's ANDs, ORs and SEQs: what happens once in a match."""
    if isinstance(pattern, tree.OperandWithin):
        what = "NOT" if isinstance(pattern.pattern, tree.Not) else inside
        if what is not None:
            raise BindError(
                f"a WITHIN of its own does not go with {what}: it belongs to an operand of AND, OR or SEQ",
                pattern.span,
                hint="put WITHIN behind the whole operand, or make it the WITHIN clause of the query",
            )
    inside = {tree.Not: "a NOT", tree.Repeat: "a repetition"}.get(type(pattern), inside)
    for part in tree.parts(pattern):
        check_operands(part, inside)


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
        for part in tree.parts(pattern):
            yield from _edge_negations(part, edge)


class _Binder:
    """Walks the written pattern once, writing what it finds into `bound`."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def bind(self, pattern: tree.Pattern, around: Surroundings) -> algebra.Pattern:
        match pattern:
            case tree.Event():
                return self.event(pattern, around)
            case tree.Seq():
                return algebra.Sequence(tuple(self.bind(part, around) for part in pattern.parts))
            case tree.Or():
                return algebra.Either(tuple(self.bind(part, around) for part in pattern.parts))
            case tree.And():
                return algebra.Both(self.new_part(), tuple(self.bind(part, around) for part in pattern.parts))
            case tree.Not():
                inner = len(self.bound.parent) + 1
                self.bound.parent[inner] = around.scope
                return algebra.Negation(inner, self.bind(pattern.pattern, replace(around, scope=inner)))
            case tree.Exists():
                return self.exists(pattern, around)
            case tree.Repeat():
                return self.repeat(pattern, around)
            case tree.OperandWithin():
                return self.operand(pattern, around)

    def operand(self, operand: tree.OperandWithin, around: Surroundings) -> algebra.Pattern:
        found = self.bind(operand.pattern, around)
        positions = tuple(atom.position for atom in algebra.atoms(found, negated=False))
        self.bound.operands.append(BoundOperand(operand, positions))
        return found

    def event(self, event: tree.Event, around: Surroundings) -> algebra.Atom:
        bound = self.bound
        if len(bound.placed) >= MOST_POSITIONS:
            raise BindError(
                f"the pattern has more than {MOST_POSITIONS} positions once its repetitions are unrolled",
                event.span,
                hint="use + instead of a large {n,m}",
            )
        atom = algebra.Atom(len(bound.placed), event.type, event.variable or event.type)
        bound.placed.append((atom, around))
        for part in around.parts:
            bound.members[part].add(atom.variable)
        if event.predicate is not None:
            bound.attached.append(Attached(event.predicate, atom.variable, around))
        return atom

    def exists(self, exists: tree.Exists, around: Surroundings) -> algebra.Pattern:
        """The pattern without EXISTS, whose variable must be one that the pattern binds outside of its NOTs."""
        bound, name = self.bound, exists.variable
        first = len(bound.placed)
        pattern = self.bind(exists.pattern, replace(around, exists=around.exists | {name}))
        inside = bound.placed[first:]
        shown = {atom.variable for atom, at in inside if at.scope == around.scope}
        if name not in shown:
            raise _nothing_to_hide(exists, shown, in_a_not=any(atom.variable == name for atom, _ in inside))
        bound.named.add(name)
        if around.scope == 0:
            bound.hidden[name] = exists.span
        return pattern

    def repeat(self, repeat: tree.Repeat, around: Surroundings) -> algebra.Pattern:
        body, least, most = repeat.pattern, repeat.least, repeat.most
        if repeat.spelling == "?":
            return algebra.Maybe(self.bind(body, around))
        if most is None:
            copies = [self.round(algebra.Round, body, around) for _ in range(least - 1)]
            kleene = self.round(algebra.Kleene, body, around)
            if least == 0:
                kleene = algebra.Maybe(kleene)
            return algebra.Sequence((*copies, kleene)) if copies else kleene
        copies = [self.round(algebra.Round, body, around) for _ in range(most)]
        optional: algebra.Pattern | None = None
        for copy in reversed(copies[least:]):
            optional = algebra.Maybe(copy if optional is None else algebra.Sequence((copy, optional)))
        required = copies[:least] + ([] if optional is None else [optional])
        return required[0] if len(required) == 1 else algebra.Sequence(tuple(required))

    def round(
        self, kind: type[algebra.Kleene | algebra.Round], body: tree.Pattern, around: Surroundings
    ) -> algebra.Pattern:
        """A Kleene part, or a copy of a repetition that is unrolled."""
        part = self.new_part()
        return kind(part, self.bind(body, replace(around, parts=(*around.parts, part))))

    def new_part(self) -> int:
        part = self.bound.parts
        self.bound.parts += 1
        self.bound.members[part] = set()
        return part


def _nothing_to_hide(exists: tree.Exists, shown: set[str], *, in_a_not: bool) -> BindError:
    name = exists.variable
    if in_a_not:
        return BindError(
            f"EXISTS names '{name}', which its pattern binds only inside a NOT: there is no event of it to leave out",
            exists.span,
            hint="leave EXISTS out: a variable of a NOT is not part of the result anyway",
        )
    return BindError(
        f"EXISTS names '{name}', which its pattern does not bind",
        exists.span,
        hint=did_you_mean(name, shown) or "leave EXISTS out",
    )


# ------------------------------------------------------------------------------------------- scoping
#
# Which variable may be used where. A variable belongs to the innermost NOT around its component, or to the whole
# pattern. The rules are those of target and free variables of D. Zhang, "NEEL+: Supporting Predicates for Nested
# Complex Event Processing", ch. 2:
#
# - TV(NOT q) = ∅: nothing outside a NOT refers to what is bound inside it, so neither does RETURN, nor another NOT;
# - FV(NOT q) = FV(q) − TV(q): inside a NOT, variables of the patterns around it may be used;
# - TV(EXISTS x q) = TV(q) − {x}, FV(EXISTS x q) = FV(q) − {x}: no component outside an EXISTS refers to x.
#
# WHERE stands beside the pattern, not in it: each of its conjuncts goes to the scopes that bind its variables.


def usable_variables(bound: Bound, component: Attached) -> frozenset[str]:
    """What the predicate of a component may use: its NOT's variables and those around it, but not through an EXISTS."""
    return bound.visible(component.around.scope) - _behind_exists(bound, component)


def _behind_exists(bound: Bound, component: Attached) -> frozenset[str]:
    """The variables that are bound inside an EXISTS that names them and does not hold the component."""
    hidden = bound.named - component.around.exists
    return frozenset(hidden - {atom.variable for atom, around in bound.placed if atom.variable not in around.exists})


def error_of_component(bound: Bound, component: Attached, name: str, span: Span | None) -> BindError:
    """Why the predicate of a component may not use a variable."""
    scopes = bound.scopes_of(name)
    if not scopes:
        return unknown_variable(bound, name, span, usable_variables(bound, component))
    scope, outside = component.around.scope, f"a component outside it, here '{component.variable}', cannot refer to it"
    if name in bound.visible(scope):
        return BindError(
            f"'{name}' is bound by EXISTS: {outside}",
            span,
            hint=f"move the predicate to WHERE, or put both components into EXISTS {write_name(name)} (...)",
        )
    if any(bound.encloses(scope, other) for other in scopes):
        owner = f"{write_name(bound.type_of(name))} {write_name(name)}"
        return BindError(
            f"'{name}' is a variable of a NOT: {outside}",
            span,
            hint=f"attach the predicate to the NOT's own component, as in ({owner}: ...), or move it to WHERE: "
            f"it then says which {name} must not happen",
        )
    return BindError(
        f"'{name}' is a variable of another NOT than '{component.variable}': "
        f"a NOT sees its own variables and those of the patterns around it",
        span,
        hint="each NOT is tested on its own: compare with a component outside of both, or put one NOT into the other",
    )


def error_of_result(bound: Bound, clause: str, name: str, span: Span | None, usable: frozenset[str]) -> BindError:
    """Why RETURN, HAVING or RANK BY may not use a variable, or the events of a type."""
    if not bound.scopes_of(name):
        of_type = sorted(atom.variable for atom in bound.atoms if atom.type == name)
        if not of_type or usable.intersection(of_type):
            return unknown_variable(bound, name, span, usable)
        return error_of_result(bound, clause, of_type[0], span, usable)
    if name in bound.hidden:
        return BindError(
            f"'{name}' is bound by EXISTS and is not part of the result, so {clause} cannot use it",
            span,
            hint="leave EXISTS out to use the variable; conditions on it may stand in WHERE",
        )
    return BindError(
        f"'{name}' is a variable of a NOT: there is no event of it in a match, so {clause} cannot use it",
        span,
        hint="leave it out, or make the component positive",
    )


def unknown_variable(bound: Bound, name: str, span: Span | None, usable: frozenset[str]) -> BindError:
    """The error of a name that no component has; the name of a type leads to its variable."""
    called = sorted({atom.variable for atom in bound.atoms if atom.type == name} & usable)
    hint = f"the variable of {name} is '{called[0]}'" if len(called) == 1 else did_you_mean(name, usable)
    return BindError(f"unknown variable '{name}'", span, hint=hint)


def error_of_conjunct(bound: Bound, used: frozenset[str], span: Span | None) -> BindError:
    """The error of a conjunct of WHERE on events that no match and no NOT holds together."""
    one, other = _apart(bound, used)
    return BindError(
        f"this conjunct uses variables of two NOTs of which neither encloses the other: '{one}' and '{other}'",
        span,
        hint="no match holds events of both, and each NOT is tested on its own; state a condition for each",
    )


def _apart(bound: Bound, used: frozenset[str]) -> tuple[str, str]:
    """Two of the variables that no scope sees together."""
    names = sorted(used)
    seen = [bound.visible(scope) for scope in bound.scopes]
    pairs = (pair for pair in combinations(names, 2) if not any(visible.issuperset(pair) for visible in seen))
    return next(pairs, (names[0], names[-1]))
