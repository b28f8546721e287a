"""Put queries that keep events apart by the same attributes into one group: their events are moved and sorted once."""

from __future__ import annotations

from dataclasses import replace

from trendloom.plan.workload import Attributes, Group, Workload


def group_by_attributes(workload: Workload) -> Workload:
    """Group the plans by their set of partition attributes, in the order in which the sets first appear."""
    members: dict[Attributes, list[int]] = {}
    for number, plan in enumerate(workload.plans):
        members.setdefault(tuple(sorted(plan.partition)), []).append(number)
    groups = tuple(Group(attributes, tuple(numbers)) for attributes, numbers in members.items())
    return replace(workload, groups=groups)
