"""Conditions on how many events a repeated component has become part of the pattern.

Before: B+ b[] where count(b[]) >= 3.   After: B b{3,}, which is two rounds and then B+. Likewise `>`, `=`, `<`, `<=`
and BETWEEN. A step then depends on two events alone: runs, postponing and aggregates need that.

Valid where b is one component with a `+` of its own, inside no other repetition, so that all its events are of this
part. Under skip-till-any-match and contiguous, matches are the bindings that pass, however a run finds them. Under
skip-till-next-match a run that waits for more of b steps over what could come after it, so nothing may come after it:
the run takes the same events then, and emits those matches that have as many of them.
Rows of complete and collapsed trends need the repeated component as it stands. A count that no match can have, and
one that would take more than MOST_COPIES positions, stay conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

from trendloom.expr.nodes import MIRRORED, Aggregate, Comparison, Constant, Expr, Junction, Total, with_totals
from trendloom.logical.plan import Aggregation, Condition, Output, Plan
from trendloom.model.selection import Semantics, Trends
from trendloom.pattern import algebra
from trendloom.pattern.algebra import Atom, Kleene, Pattern, Round, Sequence
from trendloom.pattern.template import build_template

Copies = dict[int, tuple[int, ...]]
"""The new positions of each old one."""
MOST_COPIES = 32
"""Positions that a component may become."""


def with_pattern(plan: Plan, pattern: Pattern) -> Plan:
    """The plan with another pattern, whose positions are numbered as those of which they are copies: the one place that
    renumbers positions in everything that names them.

    A rewritten pattern may have copies of a component, which then have one number. Afterwards numbers count from left
    to right again, and whatever holds for a position holds for each of its copies.
    """
    numbers, copies = count(), Copies()
    pattern = _numbered(pattern, numbers, copies)
    filters = tuple((copy, expr) for position, expr in plan.filters for copy in copies.get(position, ()))
    windows = tuple(
        replace(one, positions=tuple(sorted(copy for position in one.positions for copy in copies.get(position, ()))))
        for one in plan.operand_windows
    )
    output = _of_copies(plan.output, copies)
    return replace(plan, pattern=pattern, filters=filters, operand_windows=windows, output=output)


def _numbered(pattern: Pattern, numbers: count[int], copies: Copies) -> Pattern:
    match pattern:
        case Atom():
            number = next(numbers)
            copies[pattern.position] = (*copies.get(pattern.position, ()), number)
            return replace(pattern, position=number)
        case Sequence() | algebra.Either() | algebra.Both():
            return replace(pattern, parts=tuple(_numbered(part, numbers, copies) for part in pattern.parts))
        case _:
            return replace(pattern, body=_numbered(pattern.body, numbers, copies))


def _of_copies(output: Output, copies: Copies) -> Output:
    if not isinstance(output, Aggregation):
        return output

    def renumbered(expr: Expr) -> Expr:
        return with_totals(expr, lambda total: _total_of_copies(total, copies))

    values = tuple(replace(value, expr=renumbered(value.expr)) for value in output.values)
    return Aggregation(values, None if output.having is None else renumbered(output.having))


def _total_of_copies(total: Total, copies: Copies) -> Total:
    if total.positions is None:
        return total
    return replace(total, positions=tuple(sorted(copy for position in total.positions for copy in copies[position])))


def count_in_pattern(plan: Plan) -> Plan:
    """Move counts of the events of repeated components from conditions into the pattern."""
    if plan.output in (Trends.COMPLETE, Trends.COLLAPSED):
        return plan
    counted = dict.fromkeys(variable for one in plan.conditions for variable, *_ in _bounds(one.expr))
    return reduce(_with_counts, counted, plan)


@dataclass(frozen=True)
class _Repeated:
    """A component with a `+` of its own, in a scope."""

    part: int
    atom: Atom
    scope: int


def _repeated(pattern: Pattern, scope: int) -> Iterator[_Repeated]:
    """The repeated components that are in no other repetition and in no AND, whose states would multiply."""
    if isinstance(pattern, Kleene):
        if isinstance(pattern.body, Atom):
            yield _Repeated(pattern.part, pattern.body, scope)
    elif not isinstance(pattern, Round | algebra.Both):
        inside = pattern.scope if isinstance(pattern, algebra.Negation) else scope
        for part in algebra.parts(pattern):
            yield from _repeated(part, inside)


def _is_alone(one: _Repeated, plan: Plan) -> bool:
    """Whether its variable is nowhere else, and runs take the same events whatever their number."""
    if sum(atom.variable == one.atom.variable for atom in algebra.atoms(plan.pattern)) > 1:
        return False
    if one.scope or plan.semantics is not Semantics.NEXT:
        return True
    return build_template(plan.pattern).follow[one.atom.position] == {one.atom.position}


# ------------------------------------------------------------------------------------------------- counts


def _bounds(expr: Expr) -> list[tuple[str, int, int | None]]:
    """The variable that a condition counts, with the least and the most events it may have; else nothing."""
    if isinstance(expr, Junction) and expr.operator == "and":
        found = [_bounds(operand) for operand in expr.operands]
        several = [bound for some in found for bound in some]
        return several if all(found) and len({variable for variable, *_ in several}) == 1 else []
    if not isinstance(expr, Comparison):
        return []
    turned = isinstance(expr.left, Constant)
    left, right = (expr.right, expr.left) if turned else (expr.left, expr.right)
    if not (isinstance(left, Aggregate) and isinstance(right, Constant) and type(right.value) is int):
        return []
    if left.function != "count" or left.column is not None or left.before:
        return []
    number = right.value
    between: dict[str, tuple[int, int | None]] = {
        ">=": (number, None), ">": (number + 1, None), "=": (number, number), "<=": (1, number), "<": (1, number - 1)
    }  # fmt: skip
    operator = MIRRORED[expr.operator] if turned else expr.operator
    return [(left.variable, *between[operator])] if operator in between else []


def _with_counts(plan: Plan, variable: str) -> Plan:
    """The plan whose pattern bounds the number of events of a variable."""
    for one in _repeated(plan.pattern, 0):
        if one.atom.variable == variable and _is_alone(one, plan):
            return _with_counts_of(one, plan)
    return plan


def _with_counts_of(one: _Repeated, plan: Plan) -> Plan:
    counting = [condition for condition in plan.conditions if _counts(condition, one)]
    bounds = [bound for condition in counting for bound in _bounds(condition.expr)]
    least = max((least for _, least, _ in bounds), default=1)
    most = min((most for *_, most in bounds if most is not None), default=None)
    least = max(least, 1)
    if not bounds or (most is not None and least > most) or (most or least) > MOST_COPIES:
        return plan
    kept = [condition for condition in plan.conditions if condition not in counting]
    if most is None and least == 1:
        return replace(plan, conditions=tuple(kept))
    unused = 1 + max(_part_of(node) for node in algebra.walk(plan.pattern))
    rounds = list(range(unused, unused + (least - 1 if most is None else most)))
    body = _unrolled(one, rounds, least, most)
    # a condition on one round is a condition on each of them
    mine = [condition for condition in kept if condition.part == one.part]
    others = [replace(condition, part=part) for part in rounds for condition in mine]
    kept = [condition for condition in kept if most is None or condition not in mine]
    changed = with_pattern(plan, _replaced(plan.pattern, one.part, body))
    return replace(changed, conditions=(*kept, *others))


def _counts(condition: Condition, one: _Repeated) -> bool:
    """Whether a condition does nothing but count the events of a component in whole matches."""
    whole = condition.part is None and condition.scope == one.scope
    return whole and any(variable == one.atom.variable for variable, *_ in _bounds(condition.expr))


# ------------------------------------------------------------------------------------------------ patterns


def _unrolled(one: _Repeated, rounds: list[int], least: int, most: int | None) -> Pattern:
    """As `p{n,m}` is written out: required rounds, then a `+`, or optional ones inside each other."""
    copies: list[Pattern] = [Round(part, one.atom) for part in rounds]
    if most is None:
        return Sequence((*copies, Kleene(one.part, one.atom)))
    optional: Pattern | None = None
    for copy in reversed(copies[least:]):
        optional = algebra.Maybe(copy if optional is None else Sequence((copy, optional)))
    required = copies[:least] + ([] if optional is None else [optional])
    return required[0] if len(required) == 1 else Sequence(tuple(required))


def _replaced(pattern: Pattern, part: int, body: Pattern) -> Pattern:
    """The pattern with something else in the place of a repeated part, in a SEQ as parts of it."""
    if isinstance(pattern, Kleene) and pattern.part == part:
        return body
    if isinstance(pattern, Atom):
        return pattern
    found = [_replaced(one, part, body) for one in algebra.parts(pattern)]
    if isinstance(pattern, Sequence):
        spliced = [one.parts if one is body and isinstance(one, Sequence) else (one,) for one in found]
        return Sequence(tuple(one for some in spliced for one in some))
    if isinstance(pattern, algebra.Either | algebra.Both):
        return replace(pattern, parts=tuple(found))
    return replace(pattern, body=found[0])


def _part_of(pattern: Pattern) -> int:
    return pattern.part if isinstance(pattern, Kleene | Round | algebra.Both) else -1
