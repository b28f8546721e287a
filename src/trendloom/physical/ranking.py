"""How matches are ranked: what kernels need to know of a preference, and the column of scores."""

from __future__ import annotations

from trendloom.expr.nodes import Expr, variables
from trendloom.kernels.ranking.spec import OperandSpan, Scoring
from trendloom.model.schema import Kind
from trendloom.plan.logical import Plan, Value
from trendloom.plan.scales import digits_after_point

SCORE, RANK = "score", "rank"
"""Columns that ranked matches have."""


def scoring_of(plan: Plan, names: tuple[str, ...]) -> Scoring | None:
    """How the matches of a plan are scored; `names`: the variables of its positions. None: they are not ranked."""
    ranking = plan.ranking
    if ranking is None:
        return None
    used = tuple(tuple(sorted(variables(expr))) for expr in ranking.preferences)
    spans = tuple(OperandSpan(one.positions, one.within) for one in plan.operand_windows)
    overall = plan.ranks_across_keys
    return Scoring(ranking.preferences, ranking.merge, ranking.descending, ranking.limit, overall, used, names, spans)


def score_column(plan: Plan) -> Value:
    """The column of scores: its kind is that of all preferences together."""
    assert plan.ranking is not None
    preferences = plan.ranking.preferences
    kind = _kind(plan.ranking.merge, preferences)
    digits = max(digits_after_point(expr, plan.schema) for expr in preferences) if kind is Kind.DECIMAL else 0
    return Value(SCORE, preferences[0], kind, digits)


def _kind(merge: str | None, preferences: tuple[Expr, ...]) -> Kind:
    kinds = {expr.kind for expr in preferences}
    if merge == "avg" or not kinds <= {Kind.INT, Kind.DECIMAL}:
        return Kind.FLOAT
    return Kind.DECIMAL if Kind.DECIMAL in kinds else Kind.INT
