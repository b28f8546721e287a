"""Groups of queries that one kernel answers together, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trendloom.kernels.sharing.kernel import SharedKernel
from trendloom.kernels.sharing.steps import CountedQuery
from trendloom.physical.considered import Considered
from trendloom.physical.counted import Letters, counted_query
from trendloom.physical.plan import Physical
from trendloom.plan.workload import Workload


@dataclass(frozen=True)
class AnsweredTogether:
    """Queries of one set of keys, by their numbers in the workload, that one kernel answers; `saved`: for EXPLAIN."""

    members: tuple[int, ...]
    kernel: SharedKernel
    saved: str
    considered: Considered | None = None

    def in_numbers(self, numeric: str) -> AnsweredTogether:
        """The same with `exact`, `float` or `log` numbers."""
        return replace(self, kernel=replace(self.kernel, numeric=numeric))


def answered_together(workload: Workload, queries: tuple[Physical, ...]) -> tuple[AnsweredTogether, ...]:
    """The groups of queries that are answered by one kernel."""
    found = []
    for keys in workload.key_sets:
        letters = Letters()
        taken = [(number, counted_query(queries[number], letters)) for number in keys.members]
        counted = [(number, one) for number, one in taken if isinstance(one, CountedQuery)]
        if len(counted) > 1:
            kernel = SharedKernel(tuple(one for _, one in counted), letters.listed)
            positions = sum(len(one.steps) for _, one in counted)
            saved = f"{kernel.merged.nodes} prefixes for {positions} positions"
            found.append(AnsweredTogether(tuple(number for number, _ in counted), kernel, saved))
    return tuple(found)
