"""Find queries that keep events apart by the same attributes: their events are moved and sorted once."""

from __future__ import annotations

from dataclasses import replace

from trendloom.logical.plan import Attributes, KeySet, Scan, Workload


def find_key_sets(workload: Workload) -> Workload:
    """Put the plans together by the set of their key attributes, in the order in which the sets first appear."""
    members: dict[Attributes, list[int]] = {}
    for number, plan in enumerate(workload.plans):
        members.setdefault(tuple(sorted(plan.keys)), []).append(number)
    key_sets = tuple(KeySet(attributes, tuple(numbers)) for attributes, numbers in members.items())
    return replace(workload, key_sets=key_sets)


def read_once(workload: Workload) -> Workload:
    """Let the workload scan the union of what its plans scan."""
    if not workload.plans:
        return workload
    named = {name for plan in workload.plans for name in plan.scan.columns}
    columns = tuple(name for name in workload.plans[0].schema.names if name in named)
    types = [plan.scan.types for plan in workload.plans]
    every = any(some is None for some in types)
    union = None if every else tuple(dict.fromkeys(name for some in types for name in some or ()))
    return replace(workload, scan=Scan(columns, union))
