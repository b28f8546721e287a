"""Several logical plans over one stream, and what they have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trendloom.plan.logical import Plan

Attributes = tuple[str, ...]
"""The columns that partition a stream."""


@dataclass(frozen=True)
class Workload:
    """The plans, in the order in which their answers are given out."""

    plans: tuple[Plan, ...]

    @property
    def shared_attributes(self) -> frozenset[Attributes]:
        """Partition attributes that more than one plan has: their events are sorted once."""
        counts = Counter(plan.partition for plan in self.plans)
        return frozenset(names for names, count in counts.items() if count > 1)
