"""Too much to return or to compute: a warning beforehand, or a refusal with the way out; and how memory is divided.

The limit of memory is the user's, or a share of what is free: for what kernels store, rows held for sorting, batches of
rows. Events and the columns that a query reads are not part of it: they are in memory whatever the query does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from trendloom.errors import RunError, option
from trendloom.kernels.contract import Expected
from trendloom.kernels.contract.aggregates import TooManyDigits, Widening
from trendloom.model.amounts import free_memory
from trendloom.planner.plan import Physical
from trendloom.planner.workload import QueryGroup

WORTH_A_WARNING = 1e6
"""Events times words of exact numbers from which it takes seconds to compute them."""
MOST_DIGITS_OF_A_DOUBLE = 308


def warning_of_digits(widening: Widening) -> str | None:
    """What to say before long numbers are computed; None where that takes no time."""
    if widening.work < WORTH_A_WARNING:
        return None
    return (
        f"exact numbers of about {widening.digits:,} digits are computed, which takes long: "
        f"{option('numeric', 'log')} gives their logarithms at once"
        + (f", {option('numeric', 'float')} gives doubles" if widening.digits <= MOST_DIGITS_OF_A_DOUBLE else "")
    )


@contextmanager
def naming_the_way_out() -> Iterator[None]:
    """Run kernels in this block: where they refuse, the error names the option that helps; kernels have no options."""
    try:
        yield
    except TooManyDigits as refused:
        raise RunError(refused.message, hint=f"use {option('numeric', 'log')}") from refused


def refuse_floods(physical: Physical, expected: Expected | None, *, limited: bool) -> None:
    """Refuse to try or to return more results than allowed, before anything is built; `limited`: by an option."""
    if expected is None or expected.number <= physical.limits.trends or (limited and expected.stoppable):
        return
    if expected.tried is not None:
        fewer = f"{option('limit', 1000)} gives out so many of them, " if expected.stoppable else ""
        raise RunError(
            expected.tried.format(replace(expected, exact=True)),
            hint=f"use a smaller window or more partition attributes; {fewer}{option('max_trends')} tries more",
        )
    if expected.certain > physical.limits.trends:
        raise too_many(physical, expected.in_any_case)


def too_many(physical: Physical, number: str) -> RunError:
    """The refusal to return so many matches."""
    return RunError(
        f"there are {number} matches, more than {physical.limits.trends:,} to give out one by one",
        hint="RETURN COLLAPSED TRENDS or COUNT(*) say the same in few rows, RANK BY gives the best ones, a smaller "
        f"WITHIN has fewer; {option('limit', 1000)} gives out so many of them, {option('max_trends')} allows more",
    )


# -------------------------------------------------------------------------------------------------- memory


Planned = TypeVar("Planned", Physical, QueryGroup)

SHARE = 4
"""One part in so many of the free memory is used where no limit is given."""
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


def with_memory(planned: Planned, tasks: int = 1) -> Planned:
    """The same plans, with a limit in bytes where they had none: a share of what is free here, by so many tasks."""
    if planned.limits.memory is not None:
        return planned
    return planned.within(max(free_memory() // SHARE // tasks, LEAST))


def budget_of(physical: Physical) -> Budget:
    memory = physical.limits.memory
    return Budget(free_memory() // SHARE if memory is None else memory)
