"""What is joined: operands of a pattern, each a sequence of single events or a choice of several, with preferences.

An entry of an operand has a column for every event of every branch; those of branches that it does not take hold −1. So
a row says by itself which branch it is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trendloom.expr.nodes import Expr, Fold


@dataclass(frozen=True)
class JoinBranch:
    """A sequence of single events: its positions in order, and its preference, which grows with the fold or falls."""

    positions: tuple[int, ...]
    variables: tuple[str, ...]
    preference: Expr
    fold: Fold
    falling: bool


@dataclass(frozen=True)
class JoinOperand:
    """One sequence, or an OR of several.

    `within`: its events lie in the last so many ticks of a window, or, where windows do not slide, less than that
    apart; None: no such bound.
    """

    branches: tuple[JoinBranch, ...]
    within: int | None = None

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """By column of an entry the position that is bound."""
        return tuple(position for branch in self.branches for position in branch.positions)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(variable for branch in self.branches for variable in branch.variables)

    def columns(self, branch: int) -> slice:
        """The columns of a branch."""
        begin = sum(len(one.positions) for one in self.branches[:branch])
        return slice(begin, begin + len(self.branches[branch].positions))
