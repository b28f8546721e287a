"""Queries that one kernel answers: mostly a single one, else those of a shared sweep. Engines run nothing but groups.

The kernel sees one block with the events of all its queries, sorted by their common partition attributes, and tags its
results by the number of the query within the group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trendloom.kernels.contract import Kernel
from trendloom.logical.plan import Plan
from trendloom.model.amounts import Limits, show_names
from trendloom.planner.plan import EventFilter, Physical


@dataclass(frozen=True)
class QueryGroup:
    """`queries`, by their numbers `members` in the workload, and the kernel of all of them.

    `filters`: what each position of the kernel's pattern asks of an event.
    """

    members: tuple[int, ...]
    queries: tuple[Physical, ...]
    kernel: Kernel[Any, Any]
    filters: tuple[EventFilter, ...]

    @property
    def plan(self) -> Plan:
        """The plan of any query: partition attributes, schema and order of events are those of all."""
        return self.queries[0].plan

    @property
    def name(self) -> str | None:
        """The names of the queries, for messages; None: a single query without a name."""
        names = [query.plan.name for query in self.queries]
        return names[0] if len(names) == 1 else show_names([str(name) for name in names], 3)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that kernels compare or add up."""
        return tuple(sorted(self.kernel.reads.union(*(query.columns for query in self.queries))))

    @property
    def scanned(self) -> tuple[str, ...]:
        """The columns that any query reads, in the order in which they are first read."""
        return tuple(dict.fromkeys(name for query in self.queries for name in query.plan.scan.columns))

    @property
    def reads_all(self) -> bool:
        """Whether events that fit no position matter."""
        return any(query.reads_all for query in self.queries)

    @property
    def limits(self) -> Limits:
        return self.queries[0].limits

    def within(self, memory: int) -> QueryGroup:
        """The same with so many bytes to use."""
        return replace(
            self, queries=tuple(one.within(memory) for one in self.queries), kernel=self.kernel.within(memory)
        )

    def in_numbers(self, numeric: str) -> QueryGroup:
        """The same with `exact`, `float` or `log` numbers."""
        queries = tuple(one.in_numbers(numeric) for one in self.queries)
        return replace(self, queries=queries, kernel=self.kernel.in_numbers(numeric))


def group_of_one(physical: Physical, number: int = 0) -> QueryGroup:
    """A single query with the kernel of its plan."""
    return QueryGroup((number,), (physical,), physical.kernel, physical.filters)
