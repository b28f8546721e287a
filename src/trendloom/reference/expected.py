"""Expected values over the matches of imprecise time: each match counts as much as it is likely.

The expected value of a sum is the sum of the expected values, whether or not matches depend on each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from trendloom.expr.nodes import Group, Total
from trendloom.logical.plan import Aggregation, Plan
from trendloom.reference.matches import Binding
from trendloom.reference.results import Cell, Placed
from trendloom.reference.rows import Row, Scalar
from trendloom.reference.scalar import Leaf, evaluate


@dataclass
class Expectation:
    """The matches of one group and window with their confidences, and the probability that there is none at all."""

    matches: list[tuple[Fraction, Binding]] = field(default_factory=list)
    none: Fraction = Fraction(1)

    def add_partition(self, some_match: Fraction) -> None:
        """Partitions are independent, so that none of them has a match is the product."""
        self.none *= 1 - some_match


def expected_row(plan: Plan, output: Aggregation, cell: Cell, found: Expectation) -> Placed:
    """The row of one group and window."""
    groups = dict(zip(plan.group_by, cell.partition, strict=True))

    def read(leaf: Leaf) -> object:
        if isinstance(leaf, Group):
            return groups[leaf.column]
        if not isinstance(leaf, Total):
            raise TypeError(f"{leaf} has no meaning over all matches")
        return _expected(leaf, found)

    values = tuple(evaluate(value.expr, read) for value in output.values)
    return Placed(cell.key, Row(cell.partition, cell.window, values=values))


def _expected(leaf: Total, found: Expectation) -> Scalar:
    if leaf.function == "probability":
        return 1 - found.none
    if leaf.positions is None:
        return sum((confidence for confidence, _ in found.matches), Fraction(0))
    occurrences = [
        (confidence, event)
        for confidence, binding in found.matches
        for event, atom in binding
        if atom.position in leaf.positions
    ]
    if leaf.column is None:
        return sum((confidence for confidence, _ in occurrences), Fraction(0))
    column = leaf.column
    known = [(confidence, event.value(column)) for confidence, event in occurrences if event.value(column) is not None]
    if leaf.function == "count":
        return sum((confidence for confidence, _ in known), Fraction(0))
    if leaf.function != "sum":
        raise TypeError(f"{leaf.text} has no expected value")
    return _sum([(confidence, value) for confidence, value in known if isinstance(value, int | float | Fraction)])


def _sum(values: list[tuple[Fraction, int | float | Fraction]]) -> Fraction | float | None:
    """Exactly; of nothing it is NULL, and so it is of infinities that cancel."""
    if not values:
        return None
    infinite = {value for _, value in values if isinstance(value, float) and math.isinf(value)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else None
    return sum((confidence * Fraction(value) for confidence, value in values), Fraction(0))
