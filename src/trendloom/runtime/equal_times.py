"""Events of equal time: counted, because they have no order and so are never adjacent, which people seldom mean.

A second of a log may hold many lines. What counts are the events that a query looks at, in its partitions, after the
columns of `order` have put in order what they can. Cost: one pass over the sorted block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trendloom.errors import QueryWarning, option
from trendloom.kernels.columns.block import Block
from trendloom.logical.plan import Plan
from trendloom.pattern.algebra import negations
from trendloom.pattern.template import build_template

FEW = 3
SHARE = 0.01
"""Fewer tied events than FEW, or a lesser share of all, are not worth a word."""


@dataclass(frozen=True)
class Ties:
    """How many events there are, and how many of them share their time with another of their key."""

    events: int
    tied: int

    def __add__(self, other: Ties) -> Ties:
        return Ties(self.events + other.events, self.tied + other.tied)


Tied = Callable[[Ties], None]


def ties_of(block: Block) -> Ties:
    """The ties of a block."""
    if len(block) < 2:
        return Ties(len(block), 0)
    same = block.instant[1:] == block.instant[:-1]
    if not same.any():
        return Ties(len(block), 0)
    starts = block.key_starts[1:-1]
    same[starts[(starts > 0) & (starts < len(block))] - 1] = False
    tied = np.r_[same, False] | np.r_[False, same]
    return Ties(len(block), int(np.count_nonzero(tied)))


def orders_events(plan: Plan) -> bool:
    """Whether the query asks which of two events is first: matches of one event do not, unless there is a NOT."""
    return any(build_template(plan.pattern).follow.values()) or any(True for _ in negations(plan.pattern))


def warning_of_ties(plan: Plan, ties: Ties) -> QueryWarning | None:
    """A warning where more than a few events have no order."""
    if ties.tied < FEW or ties.tied <= SHARE * ties.events or not orders_events(plan):
        return None
    of = f" of equal {', '.join(plan.keys)}" if plan.keys else ""
    also = f" and equal {', '.join(plan.schema.order)}" if plan.schema.order else ""
    return QueryWarning(
        f"{ties.tied:,} of {ties.events:,} events have the same time as another{of}{also}: "
        "these have no order, so none of them is before or next to the other",
        hint=f"{option('order', 'COLUMN')} says which of them is first"
        if not plan.schema.order
        else "add a column that tells them apart, such as the number of a line",
    )
