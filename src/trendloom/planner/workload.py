"""Several queries over one stream: what is read, moved and sorted once, and the kernels that answer them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trendloom.logical.plan import KeySet, Plan, Scan, Workload
from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.model.amounts import NO_LIMITS, Limits, show_names
from trendloom.planner.plan import Physical, choose
from trendloom.planner.query_group import QueryGroup, group_of_one

if TYPE_CHECKING:
    from trendloom.planner.sharing.groups import SharedGroup


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
        """What one kernel answers, for people to read."""
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
