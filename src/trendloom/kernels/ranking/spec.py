"""What a ranking kernel receives: how matches are scored, how many are wanted, and of what."""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.expr.nodes import Expr
from trendloom.model.schema import Kind

RANK, SCORE = "rank", "score"
"""Columns of ranked rows."""


@dataclass(frozen=True)
class OperandSpan:
    """Events bound at these positions lie in the last `within` ticks of a window; without SLIDE, so close together."""

    positions: tuple[int, ...]
    within: int


@dataclass(frozen=True)
class Scoring:
    """The `limit` best matches of each window and key, or of each window (`overall`); NULL scores are the worst.

    A score is the one preference, or `merge` (sum, avg, min, max) of those of which a variable is bound. `variables`
    are those of each preference. `names` are the variables of all positions, by which ties are broken at last.
    `kind` and `scale`: of scores, and the digits after their point.
    """

    preferences: tuple[Expr, ...]
    merge: str | None
    descending: bool
    limit: int
    overall: bool
    variables: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    spans: tuple[OperandSpan, ...] = ()
    scale: int = 0
    kind: Kind = Kind.FLOAT
