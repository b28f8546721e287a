"""Whether components of a pattern exclude each other: no event can stand at two of them.

They do if their types differ, or if conditions on the event alone contradict each other: `a.place = 1` and
`b.place = 2`, or `a.x < 3` and `b.x >= 3`. Others that never meet in the data are not seen; saying less is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import Any

from trendloom.expr.nodes import MIRRORED, Attribute, Comparison, Constant, Expr, Junction
from trendloom.kernels.matching.spec import Place
from trendloom.logical.plan import Plan

NUMBERS = (int, float, Decimal)


@dataclass(frozen=True)
class _ValueRange:
    """Values from `low` to `high`, each of which may belong to it (`low_in`, `high_in`); None: no bound."""

    low: Any = None
    low_in: bool = True
    high: Any = None
    high_in: bool = True

    def meets(self, other: _ValueRange) -> bool:
        return self._reaches(other) and other._reaches(self)

    def _reaches(self, other: _ValueRange) -> bool:
        """Whether its upper end is not below the other's lower end."""
        if self.high is None or other.low is None:
            return True
        return bool(self.high > other.low) or (self.high == other.low and self.high_in and other.low_in)


def overlapping(plan: Plan, places: Sequence[Place], positions: Sequence[int]) -> tuple[int, int] | None:
    """Two of the positions that an event may both fit; None: they all exclude each other."""
    for one, other in combinations(positions, 2):
        if places[one].type == places[other].type and not _contradict(plan, one, other):
            return one, other
    return None


def _contradict(plan: Plan, one: int, other: int) -> bool:
    mine, theirs = ([*_ranges(plan, position)] for position in (one, other))
    return any(a == b and _comparable(left, right) and not left.meets(right) for a, left in mine for b, right in theirs)


def _ranges(plan: Plan, position: int) -> list[tuple[str, _ValueRange]]:
    """What the conditions on an event at a position alone allow, by column."""
    conjuncts = [part for where, expr in plan.filters if where == position for part in _parts(expr)]
    return [found for part in conjuncts if (found := _range(part)) is not None]


def _parts(expr: Expr) -> Sequence[Expr]:
    if isinstance(expr, Junction) and expr.operator == "and":
        return [part for operand in expr.operands for part in _parts(operand)]
    return (expr,)


def _range(expr: Expr) -> tuple[str, _ValueRange] | None:
    """The values that a comparison of an attribute with a constant allows."""
    if isinstance(expr, Comparison) and isinstance(expr.left, Constant):
        expr = replace(expr, left=expr.right, operator=MIRRORED[expr.operator], right=expr.left)  # type: ignore[arg-type]
    if not (isinstance(expr, Comparison) and isinstance(expr.left, Attribute) and isinstance(expr.right, Constant)):
        return None
    value, operator = expr.right.value, expr.operator
    if value is None or operator == "!=" or expr.left.kind is not expr.right.kind:
        return None
    found = _ValueRange()
    if operator in ("=", "<", "<="):
        found = replace(found, high=value, high_in=operator != "<")
    if operator in ("=", ">", ">="):
        found = replace(found, low=value, low_in=operator != ">")
    return expr.left.column, found


def _comparable(one: _ValueRange, other: _ValueRange) -> bool:
    """Whether all their bounds are numbers, or all texts of an equality: of other texts nobody says how they sort."""
    bounds = [bound for side in (one, other) for bound in (side.low, side.high) if bound is not None]
    if all(isinstance(bound, NUMBERS) for bound in bounds):
        return True
    return all(isinstance(bound, str) for bound in bounds) and len(bounds) == 4
