"""Read the input once for all queries of a workload: the columns and types that any of them needs."""

from __future__ import annotations

from dataclasses import replace

from trendloom.logical.plan import Scan
from trendloom.logical.workload import Workload


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
