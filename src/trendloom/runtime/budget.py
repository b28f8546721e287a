"""How a run's memory is shared out: what kernels may store, what is held for sorting, what a batch of rows may take.

The limit is the user's, or a share of the memory that is free. Events and the columns that a query reads are not part
of it: they are there whatever the query does.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from trendloom.model.memory import free_memory
from trendloom.planner.plan import Physical

SHARE = 4
"""One part in so many of the free memory is used, if nobody gives a limit."""
LEAST = 64 << 20
HELD_ENTRY = 24
"""Bytes of an event of a match that waits to be sorted, with what sorting needs."""
MOST_HELD = 50_000_000
MOST_BATCHED = 1 << 22


@dataclass(frozen=True)
class Budget:
    """Shares of a number of bytes."""

    memory: int

    @property
    def held(self) -> int:
        """Entries (events of matches) that are held and sorted."""
        return min(MOST_HELD, self.memory // 4 // HELD_ENTRY)

    def batched(self, table: pa.Table) -> int:
        """Events of matches in a batch of rows."""
        width = table.nbytes / max(table.num_rows, 1) + 16
        return min(MOST_BATCHED, max(int(self.memory / 12 / width), 1))


def with_memory(physical: Physical, tasks: int = 1) -> Physical:
    """The same plan, with a limit in bytes where it had none: a share of what is free here, by so many tasks."""
    if physical.limits.memory is not None:
        return physical
    return physical.within(max(free_memory() // SHARE // tasks, LEAST))


def budget_of(physical: Physical) -> Budget:
    memory = physical.limits.memory
    return Budget(free_memory() // SHARE if memory is None else memory)
