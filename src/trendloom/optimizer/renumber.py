"""Number the positions of a pattern anew, with everything in a plan that names them: the one place that does so.

A rewritten pattern may have copies of a component, which then have one number. Afterwards numbers count from left to
right again, and whatever was said of a position is said of each of its copies.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from trendloom.expr.nodes import Expr, Total
from trendloom.expr.rewriting import with_totals
from trendloom.logical.plan import Aggregation, Output, Plan
from trendloom.pattern.algebra import Atom, Both, Either, Pattern, Sequence

Copies = dict[int, tuple[int, ...]]
"""The new positions of each old one."""


def with_pattern(plan: Plan, pattern: Pattern) -> Plan:
    """The plan with another pattern, whose positions are numbered as those of which they are copies."""
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
        case Sequence() | Either() | Both():
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
