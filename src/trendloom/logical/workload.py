"""Several logical plans over one stream, and what they have in common: what is read, and by what events are kept apart.

The binder says nothing of what plans share; the workload rules of `optimize` fill it in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trendloom.logical.plan import Plan, Scan

Attributes = tuple[str, ...]
"""The columns that partition a stream."""


@dataclass(frozen=True)
class KeySet:
    """Queries whose events meet by the same attributes, in whatever order; `members`: their numbers in the workload."""

    attributes: Attributes
    members: tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """The plans, in the order in which their answers are given out.

    `scan`: what all of them together need of the input, so that it is read once. `key_sets`: every query has one, and
    the events of a set are moved and sorted once.
    """

    plans: tuple[Plan, ...]
    scan: Scan | None = None
    key_sets: tuple[KeySet, ...] = ()

    @property
    def shared_attributes(self) -> frozenset[Attributes]:
        """Attributes by which more than one plan keeps events apart: their events are sorted once."""
        counts = Counter(plan.keys for plan in self.plans)
        return frozenset(names for names, count in counts.items() if count > 1)
