"""Several queries over one stream: what is read, moved and sorted once, and the groups that one kernel answers.

Engines run nothing but groups; most of them are of a single query, the others of a shared sweep. The kernel of a group
gets one block with the events of all its queries, sorted by their common partition attributes, and tags its results by
the number of the query within the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trendloom.kernels.contract import Kernel
from trendloom.logical.plan import KeySet, Plan, Scan, Workload
from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.model.amounts import NO_LIMITS, Limits, show_names
from trendloom.planner.plan import EventFilter, Physical, choose

if TYPE_CHECKING:
    from trendloom.planner.sharing.groups import SharedGroup


@dataclass(frozen=True)
class QueryGroup:
    """`queries`, by their numbers `members` in the workload, and the kernel of all of them.

    `filters`: the event filter of each position of the kernel's pattern.
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


@dataclass(frozen=True)
class PhysicalWorkload:
    """Executable plans in the order of the queries. `bound`: the plans as the binder made them.

    `shared_groups`: those of queries that one kernel answers.
    """

    bound: tuple[Plan, ...]
    optimized: Workload
    queries: tuple[Physical, ...]
    shared_groups: tuple[SharedGroup, ...] = ()

    @property
    def key_sets(self) -> tuple[KeySet, ...]:
        return self.optimized.key_sets

    @cached_property
    def groups(self) -> tuple[QueryGroup, ...]:
        """The queries by kernels, in the order of the first query of each."""
        apart = set(range(len(self.queries))).difference(*(group.members for group in self.shared_groups))
        found = [group_of_one(self.queries[number], number) for number in apart]
        for group in self.shared_groups:
            queries = tuple(self.queries[number] for number in group.members)
            found.append(QueryGroup(group.members, queries, group.kernel, group.kernel.asked))
        return tuple(sorted(found, key=lambda group: group.members[0]))

    @property
    def scan(self) -> Scan:
        """What is read of the input, once for all queries."""
        assert self.optimized.scan is not None
        return self.optimized.scan

    @property
    def several(self) -> bool:
        return len(self.queries) > 1

    def named(self, numbers: Iterable[int], most: int | None = None) -> str:
        """Some queries by their names; of more than `most` the first ones, and how many more."""
        names = [str(self.queries[number].plan.name) for number in numbers]
        return show_names(names, len(names) if most is None else most)

    def describe_shared(self) -> Iterator[str]:
        """A line of text for each group that shares a kernel."""
        for group in self.shared_groups:
            yield f"count {self.named(group.members)} in one sweep over the events: {group.saved}"


def plan_workload(
    bound: tuple[Plan, ...], optimized: Workload, limits: Limits = NO_LIMITS, statistics: StatisticsOf = nothing_known
) -> PhysicalWorkload:
    """Choose an algorithm for each plan of an optimized workload, and the groups that share one kernel."""
    queries = tuple(
        choose(plan, limits, statistics=statistics(of)) for of, plan in zip(bound, optimized.plans, strict=True)
    )
    if sum(one.aggregates for one in queries) < 2:
        return PhysicalWorkload(bound, optimized, queries)
    from trendloom.planner.sharing.groups import shared_groups

    return PhysicalWorkload(bound, optimized, queries, shared_groups(optimized, queries, statistics))
