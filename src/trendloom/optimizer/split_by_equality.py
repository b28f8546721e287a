"""An attribute that is equal in all events of a match keeps events apart, as if `[attribute]` had been written.

Before: conditions {a.id = b.id, b.id = c.id}.   After: split by id, conditions {}. Columns and rows stay as they are.

Valid for a column if, in each scope, equalities of it link every variable: those of the query among each other, so that
NULL is in no match; those of a NOT with a variable outside of it, so that it forbids nothing in other events. A
variable in an equality means all its events, so those of a repeated one are equal, too. For that
- the equality is for whole matches (`part` None), or of variables that have one event;
- every variable is bound in every match of its scope: a condition on one that is not bound is true;
- nothing of other keys stands in the way: not under contiguous, where any event does. Under skip-till-next-match every
  component must equal an earlier one, so that a run steps over other keys as soon as it meets them;
- what is made of matches needs one key at a time: RANK BY does not. Rows of collapsed trends do if their matches share
  an event, which they do where a variable has one.
Rows are in order of their events' times, which `order` columns would refine across keys: these are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trendloom.expr.nodes import Attribute, Comparison, Which
from trendloom.logical.plan import Condition, Plan
from trendloom.model.schema import Kind
from trendloom.model.selection import Semantics, Trends
from trendloom.pattern.algebra import Atom, Either, Maybe, Negation, Pattern, atoms, negations, parts
from trendloom.pattern.template import plural_variables

STEPS = {Which.CURRENT, Which.PREVIOUS}


def split_by_equality(plan: Plan) -> Plan:
    """Keep events apart by every column that the conditions make equal in all events of a match."""
    equated = _equated(plan)
    if not equated or not _may_be_split(plan):
        return plan
    scopes = list(_scopes(plan.pattern, 0, ()))
    columns = [name for name in equated if all(_links(scope, name, plan) for scope in scopes)]
    if not columns:
        return plan
    kept = tuple(one for one in plan.conditions if _equal_column(one) not in columns)
    return replace(plan, split=(*plan.split, *columns), conditions=kept)


def _may_be_split(plan: Plan) -> bool:
    if plan.semantics is Semantics.CONTIGUOUS or plan.ranking is not None:
        return False
    if plan.schema.imprecise or plan.schema.order:
        return False
    variables = {atom.variable for atom in atoms(plan.pattern, negated=False)}
    if variables <= plan.hidden:
        return False
    return plan.output is not Trends.COLLAPSED or bool(variables - plan.kleene)


def _equated(plan: Plan) -> list[str]:
    """The columns that some condition compares with themselves, as far as they can be keys."""
    known = {plan.schema.type, plan.schema.time, *plan.keys}
    named = dict.fromkeys(name for name in map(_equal_column, plan.conditions) if name is not None)
    return [name for name in named if name not in known and plan.schema.kind(name) not in (None, Kind.OTHER)]


def _equal_column(condition: Condition) -> str | None:
    """The column that a condition requires to be equal in two events; None: it is no such condition."""
    expr = condition.expr
    if not isinstance(expr, Comparison) or expr.operator != "=":
        return None
    left, right = expr.left, expr.right
    if not (isinstance(left, Attribute) and isinstance(right, Attribute)) or left.column != right.column:
        return None
    return left.column


# ------------------------------------------------------------------------------------------------- scopes


@dataclass(frozen=True)
class _BindingScope:
    """The variables that a scope binds, each with the `first` position where it can be bound and the one where it must.

    `plural`: those that can have several events. `around`: the scopes around it, the nearest first.
    """

    number: int
    first: dict[str, int]
    certain: dict[str, int]
    plural: frozenset[str]
    around: tuple[_BindingScope, ...]

    def owner(self, variable: str) -> _BindingScope | None:
        """The nearest scope that binds a variable."""
        return next((one for one in (self, *self.around) if variable in one.first), None)


def _scopes(pattern: Pattern, number: int, around: tuple[_BindingScope, ...]) -> Iterator[_BindingScope]:
    first, certain = _earliest(atoms(pattern, negated=False)), _earliest(_certain(pattern))
    scope = _BindingScope(number, first, certain, plural_variables(pattern), around)
    yield scope
    for negation in negations(pattern):
        yield from _scopes(negation.body, negation.scope, (scope, *around))


def _earliest(some: Iterator[Atom]) -> dict[str, int]:
    found: dict[str, int] = {}
    for atom in some:
        found[atom.variable] = min(found.get(atom.variable, atom.position), atom.position)
    return found


def _certain(pattern: Pattern) -> Iterator[Atom]:
    """The atoms that every match of a pattern binds."""
    if isinstance(pattern, Atom):
        yield pattern
    if not isinstance(pattern, Maybe) and not (isinstance(pattern, Either) and len(pattern.parts) > 1):
        for part in parts(pattern):
            if not isinstance(part, Negation):
                yield from _certain(part)


# -------------------------------------------------------------------------------------------------- links


def _links(scope: _BindingScope, column: str, plan: Plan) -> bool:
    """Whether every match of a scope has one value of a column, that of the scopes around it."""
    if set(scope.first) != set(scope.certain):
        return False
    pairs = list(_pairs(scope, column, plan))
    linked = {one for pair in pairs for one in pair if None in pair} - {None}
    if not scope.around:
        if len(scope.first) < 2 or (plan.semantics is Semantics.NEXT and not _each_equals_an_earlier(scope, pairs)):
            return False
        linked = {next(iter(scope.first))}
    while more := {one for pair in pairs for one in pair if set(pair) & linked} - linked:
        linked |= more
    return linked - {None} == set(scope.first)


def _pairs(scope: _BindingScope, column: str, plan: Plan) -> Iterator[tuple[str | None, str | None]]:
    """Variables of a scope whose events all have one value of a column; None: a variable of a scope around it."""
    for condition in plan.conditions:
        if condition.scope != scope.number or _equal_column(condition) != column:
            continue
        sides = _sides(condition)
        owners = [scope.owner(side.variable) for side in sides]
        several = any(owner is None or side.variable in owner.plural for side, owner in zip(sides, owners, strict=True))
        if condition.part is not None and several:
            continue
        which = {side.which for side in sides}
        first, second = (side.variable if owner is scope else None for side, owner in zip(sides, owners, strict=True))
        if which == {Which.EACH} and first != second:
            yield first, second
        elif which == STEPS:
            yield first, first


def _sides(condition: Condition) -> tuple[Attribute, Attribute]:
    expr = condition.expr
    assert isinstance(expr, Comparison)
    assert isinstance(expr.left, Attribute)
    assert isinstance(expr.right, Attribute)
    return expr.left, expr.right


def _each_equals_an_earlier(scope: _BindingScope, pairs: list[tuple[str | None, str | None]]) -> bool:
    """Whether every event of a run after its first has the value of one before it."""
    beginning = min(scope.first, key=lambda name: scope.first[name])
    if beginning in scope.plural and (beginning, beginning) not in pairs:
        return False
    both = {*pairs, *((second, first) for first, second in pairs)}
    return all(
        any((name, other) in both and place < scope.first[name] for other, place in scope.certain.items())
        for name in scope.first
        if name != beginning
    )
