"""Which predicate restricts what: the pattern itself is scope 0, every NOT a scope of its own.

Everything here is read off the plan once, so that the tests of a binding can be short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Which, variables, walk
from trendloom.logical.plan import Condition, Plan
from trendloom.pattern.algebra import Kleene, Negation, Pattern, Round, atoms, negations, parts


@dataclass(frozen=True)
class Conjunct:
    """A condition, and how its variables are quantified."""

    expr: Expr
    part: int | None
    variables: frozenset[str]
    each: frozenset[str]  # read as `b.x`; without the left side of a NEXT
    indexed: tuple[tuple[str, int], ...]  # read by i, and the first i: 1 where the event before is spoken of, else 0
    pair: tuple[str, str] | None  # the variables of an adjacent pair, where NEXT occurs
    whole: frozenset[str]  # read as b[first], b[last], f(b[]), duration(b)

    @property
    def local(self) -> bool:
        """Speaks of every single event of one variable."""
        return not (self.indexed or self.pair or self.whole) and len(self.each) == 1


@dataclass(frozen=True)
class ScopeRules:
    """What restricts the matches of the pattern or of one NOT."""

    number: int
    variables: frozenset[str]  # bound by its positive positions
    parts: frozenset[int]  # Kleene and Round parts of the scope itself
    conjuncts: tuple[Conjunct, ...]
    needs: tuple[tuple[str, int | None], ...]  # variables of enclosing scopes that it uses, each with its part


def read_scopes(plan: Plan) -> dict[int, ScopeRules]:
    """All scopes of a plan by number."""
    bodies: dict[int, list[Pattern]] = {0: [plan.pattern]}
    parents: dict[int, int] = {}
    for parent, negation in _nested(plan.pattern, 0):
        bodies.setdefault(negation.scope, []).append(negation.body)  # copies of a repetition may share a scope
        parents[negation.scope] = parent
    own = {number: _variables(copies) for number, copies in bodies.items()}
    return {
        number: ScopeRules(
            number,
            own[number],
            frozenset(part for body in copies for part in _parts(body)),
            tuple(_conjunct(condition, copies) for condition in plan.conditions if condition.scope == number),
            tuple(_needs(number, plan.conditions, own, parents)),
        )
        for number, copies in bodies.items()
    }


def _nested(pattern: Pattern, scope: int) -> Iterator[tuple[int, Negation]]:
    for negation in negations(pattern):
        yield scope, negation
        yield from _nested(negation.body, negation.scope)


def _variables(copies: list[Pattern]) -> frozenset[str]:
    return frozenset(atom.variable for body in copies for atom in atoms(body, negated=False))


def _parts(pattern: Pattern) -> Iterator[int]:
    if isinstance(pattern, Kleene | Round):
        yield pattern.part
    for part in parts(pattern):
        if not isinstance(part, Negation):
            yield from _parts(part)


def _needs(
    number: int, conditions: tuple[Condition, ...], own: Mapping[int, frozenset[str]], parents: Mapping[int, int]
) -> Iterator[tuple[str, int | None]]:
    for condition in conditions:
        chain = [condition.scope]
        while chain[-1] != number and chain[-1] in parents:
            chain.append(parents[chain[-1]])
        if chain[-1] != number:
            continue
        inside = frozenset(name for scope in chain for name in own[scope])
        for name in sorted(variables(condition.expr) - inside):
            yield name, condition.part


def _conjunct(condition: Condition, copies: list[Pattern]) -> Conjunct:
    expr = condition.expr
    attributes = [node for node in walk(expr) if isinstance(node, Attribute)]
    aggregates = [node for node in walk(expr) if isinstance(node, Aggregate)]
    each = frozenset(node.variable for node in attributes if node.which is Which.EACH)
    following = sorted({node.variable for node in attributes if node.which is Which.NEXT})
    pair = ((min(each) if each else following[0]), following[0]) if following else None
    second = {node.variable for node in attributes if node.which is Which.PREVIOUS}
    second |= {node.variable for node in aggregates if node.before}
    current = {node.variable for node in attributes if node.which is Which.CURRENT} | second
    whole = {node.variable for node in attributes if node.which in (Which.FIRST, Which.LAST)}
    whole |= {node.variable for node in aggregates if not node.before}
    whole |= {node.variable for node in walk(expr) if isinstance(node, Extent)}
    conjunct = Conjunct(
        expr,
        condition.part,
        variables(expr),
        each - {pair[0]} if pair else each,
        tuple((name, int(name in second)) for name in sorted(current)),
        pair,
        frozenset(whole),
    )
    return _without_rounds(conjunct, copies)


def _without_rounds(conjunct: Conjunct, copies: list[Pattern]) -> Conjunct:
    """A predicate on single events holds of each, whatever its round: then rounds need not be told apart."""
    if conjunct.part is None or not conjunct.local:
        return conjunct
    named = {atom for body in copies for atom in atoms(body, negated=False) if atom.variable in conjunct.each}
    inside = {atom for body in copies for atom in _atoms_of(body, conjunct.part)}
    if not named or not named <= inside:
        return conjunct
    return Conjunct(conjunct.expr, None, conjunct.variables, conjunct.each, (), None, frozenset())


def _atoms_of(pattern: Pattern, part: int) -> Iterator[object]:
    if isinstance(pattern, Kleene | Round) and pattern.part == part:
        yield from atoms(pattern, negated=False)
    for inner in parts(pattern):
        if not isinstance(inner, Negation):
            yield from _atoms_of(inner, part)
