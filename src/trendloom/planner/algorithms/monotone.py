"""Which conditions on the whole of a match a match passes if one that it contains passes: `count(p[]) > 10`.

Then complete trends can be found first and tested last. Proof: let M be the matches without the condition C. If m
passes C and lies in n ∈ M, n passes C, too; so what is largest among those that pass is largest in M. Conversely, what
is largest in M and passes is largest among those that pass.

A side of a comparison *rises* if it never falls when events are added: `count`, `max`, `duration`; it *falls* if it
never rises: `min`. NULL is what there is before the first value and never comes back. Sums and means do neither.
"""

from __future__ import annotations

from trendloom.expr.nodes import Aggregate, Arithmetic, Attribute, Comparison, Expr, Extent, Junction, Negate, walk

RISES = {"count": 1, "max": 1, "min": -1}


def monotone(expr: Expr) -> bool:
    """Whether a conjunct stays true when events are added to the variables that it reads as a whole."""
    if isinstance(expr, Junction):
        return all(monotone(operand) for operand in expr.operands)
    if not isinstance(expr, Comparison) or expr.operator in ("=", "!="):
        return False
    left, right = _rises(expr.left), _rises(expr.right)
    if left is None or right is None:
        return False
    low, high = (right, left) if expr.operator in (">", ">=") else (left, right)
    return high >= 0 >= low


def _rises(expr: Expr) -> int | None:
    """1: never falls when events are added; −1: never rises; 0: stays; None: nobody knows."""
    if not any(isinstance(node, Attribute | Aggregate | Extent) for node in walk(expr)):
        return 0
    match expr:
        case Aggregate():
            return None if expr.before else RISES.get(expr.function)
        case Extent():
            return 1
        case Negate():
            found = _rises(expr.operand)
            return None if found is None else -found
        case Arithmetic(operator="+" | "-"):
            left, right = _rises(expr.left), _rises(expr.right)
            if left is None or right is None:
                return None
            right = right if expr.operator == "+" else -right
            return left + right if 0 in (left, right) else left if left == right else None
        case _:
            return None
