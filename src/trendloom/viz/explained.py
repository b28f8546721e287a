"""The picture that goes with EXPLAIN: of one query its pattern, of several what they may share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trendloom.logical.plan import Plan
from trendloom.planner.considered import Considered
from trendloom.viz.query import draw_query_pattern
from trendloom.viz.sharing import draw_sharing


def draw_explained(plans: Sequence[Plan], shared: Sequence[Considered], path: str | Path) -> Path:
    """Draw queries into an .svg or .png file; `shared`: what was weighed for groups of them."""
    return draw_query_pattern(plans[0], path) if len(plans) == 1 else draw_sharing(shared, path)
