"""Warnings, and how they reach the caller: as data for a callback, else as Python's warnings, whatever engine runs.

What concerns the events is said once; what concerns a query is said with its name. A warning of Python's points at the
first line outside this package, so that it is shown once for each call that people wrote.

Counted here are events of equal time: they have no order and so are never adjacent, which is seldom meant. A second of
a log may hold many lines. Only events that a query reads count, by its partitions, after the columns of `order` have
ordered what they can. Cost: one pass over the sorted block.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trendloom.errors import QueryWarning, option
from trendloom.logical.plan import Plan
from trendloom.pattern.algebra import negations
from trendloom.pattern.template import build_template

if TYPE_CHECKING:
    from trendloom.kernels.columns.block import Block

FEW = 3
SHARE = 0.01
"""Fewer tied events than FEW, or a lesser share of all, cause no warning."""

Warn = Callable[[QueryWarning, str | None], None]
"""Callback invoked with a warning, and the name of its query where it belongs to one of a workload."""


def warn_in_python(warning: QueryWarning, query: str | None = None) -> None:
    """The warning as one of Python's."""
    text = str(warning) if query is None else f"query {query}: {warning}"
    warnings.warn(text, stacklevel=_frames_inside() + 1)


def report_warnings(reading: Iterable[QueryWarning], plans: Iterable[Plan], warn: Warn) -> None:
    """All that is known before queries run."""
    for warning in reading:
        warn(warning, None)
    for plan in plans:
        for warning in plan.warnings:
            warn(warning, plan.name)


def _frames_inside() -> int:
    """How many frames from the caller of this on are our own."""
    frame, count = sys._getframe(1), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


# ------------------------------------------------------------------------------------- events of equal time


@dataclass(frozen=True)
class Ties:
    """How many events there are, and how many of them share their time with another of their key."""

    events: int
    tied: int

    def __add__(self, other: Ties) -> Ties:
        return Ties(self.events + other.events, self.tied + other.tied)


Tied = Callable[[Ties], None]
"""Callback invoked with the ties of a block, once its events are sorted."""


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
    """Whether matches depend on which of two events is first: those of one event do not, unless there is a NOT."""
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
