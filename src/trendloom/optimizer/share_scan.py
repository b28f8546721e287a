"""Find queries that keep events apart by the same attributes: their events are moved and sorted once."""

from __future__ import annotations

from dataclasses import replace

from trendloom.logical.workload import Attributes, KeySet, Workload


def find_key_sets(workload: Workload) -> Workload:
    """Put the plans together by the set of their key attributes, in the order in which the sets first appear."""
    members: dict[Attributes, list[int]] = {}
    for number, plan in enumerate(workload.plans):
        members.setdefault(tuple(sorted(plan.keys)), []).append(number)
    key_sets = tuple(KeySet(attributes, tuple(numbers)) for attributes, numbers in members.items())
    return replace(workload, key_sets=key_sets)
