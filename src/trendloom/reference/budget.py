"""How much work the reference may do before it gives up.

The definitions are executed as they stand, so their cost can grow like 2^n. Nobody wants to wait for that without
knowing: every elementary step is counted, and above the limit the run ends with an error that names the way out.
"""

from __future__ import annotations

from trendloom.errors import DataError, option

STEP_LIMIT = 5_000_000
"""Elementary steps (an event tried, an event of a binding copied, a predicate evaluated) of one evaluation."""

WORLD_LIMIT = 200_000
"""Possible worlds of one partition of a stream with imprecise time."""


class StepBudget:
    """Counts steps; the only thing in this room that changes."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = STEP_LIMIT if limit is None else limit
        self.spent = 0

    def spend(self, steps: int = 1) -> None:
        self.spent += steps
        if self.spent > self.limit:
            raise DataError(
                f"the reference evaluator gave up after {self.limit} steps: it tries every combination of events",
                hint=f"use {option('engine', 'local')}, or fewer events",
            )
