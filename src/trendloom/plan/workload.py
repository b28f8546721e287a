"""Several logical plans over one stream, and what they have in common: columns, types, partitions, windows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from trendloom.model.window import Window
from trendloom.plan.logical import Plan

Attributes = tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """The plans, in the order in which their answers are given out."""

    plans: tuple[Plan, ...]

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that some plan reads."""
        return frozenset(name for plan in self.plans for name in plan.scan.columns)

    @cached_property
    def types(self) -> frozenset[str] | None:
        """The types of events that some plan reads; None: all."""
        listed = [plan.scan.types for plan in self.plans]
        return None if None in listed else frozenset(name for types in listed for name in types or ())

    @cached_property
    def by_attributes(self) -> dict[Attributes, tuple[Plan, ...]]:
        """The plans by the attributes that partition their events."""
        found: dict[Attributes, tuple[Plan, ...]] = {}
        for plan in self.plans:
            found[plan.partition] = (*found.get(plan.partition, ()), plan)
        return found

    @property
    def shared_attributes(self) -> frozenset[Attributes]:
        """Partition attributes that more than one plan has: their events are sorted, or shuffled, once."""
        return frozenset(names for names, plans in self.by_attributes.items() if len(plans) > 1)

    @cached_property
    def windows(self) -> Counter[Window]:
        """How many plans have each window."""
        return Counter(plan.window for plan in self.plans)
