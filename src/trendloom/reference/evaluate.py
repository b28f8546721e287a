"""The definitions, executed: partitions, windows, matches, results, one after the other.

This is the truth that every fast path is compared with. It shares nothing with the kernels: the pattern grows by its
tree (`derive`), expressions have an evaluator of their own (`scalar`), and everything is plain Python.
Cost: exponential in the number of events of a window; `budget` refuses what would take too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trendloom.logical.plan import Aggregation, Plan
from trendloom.reference.matches import Binding, Search
from trendloom.reference.ranking import in_operand_windows, ranked
from trendloom.reference.results import Cell, Placed, aggregate_row, in_order, match_rows, without_hidden
from trendloom.reference.stream import Row, StepBudget, cut_partitions, cut_windows, read_event
from trendloom.reference.worlds import evaluate_worlds


def evaluate(plan: Plan, rows: Sequence[Mapping[str, object]], *, prune: bool = True) -> list[Row]:
    """The result of a query over input rows, in order.

    Times are whole ticks. `prune` False leaves every test of skip-till-any-match to the complete binding: slower still,
    it exists to check that the shortcuts change nothing.
    """
    budget = StepBudget()
    if plan.schema.imprecise:
        return in_order(evaluate_worlds(plan, rows, budget))
    cells = list(_cells(plan, rows, Search(plan, budget, prune), budget))
    if isinstance(plan.output, Aggregation):
        return in_order(_aggregated(plan, plan.output, cells))
    if plan.ranking is not None:
        return in_order(found.placed(plan, plan.ranking) for found in ranked(plan, plan.ranking, cells))
    return in_order(placed for cell, bindings in cells for placed in match_rows(plan, cell, bindings))


def _cells(
    plan: Plan, rows: Sequence[Mapping[str, object]], search: Search, budget: StepBudget
) -> Iterator[tuple[Cell, list[Binding]]]:
    """The matches of every window of every partition."""
    events = [read_event(number, row, plan.schema) for number, row in enumerate(rows)]
    for partition, members in cut_partitions(events, plan.partition).items():
        for window, stream in cut_windows(members, plan.window, budget):
            found = in_operand_windows(plan.operand_windows, window, search.matches(stream))
            yield Cell(window, partition), without_hidden(found, plan.hidden)


def _aggregated(plan: Plan, output: Aggregation, cells: Sequence[tuple[Cell, list[Binding]]]) -> Iterator[Placed]:
    """Partitions that agree on the grouping attributes are one group."""
    groups: dict[Cell, list[Binding]] = {}
    for cell, bindings in cells:
        values = dict(zip(plan.partition, cell.partition, strict=True))
        group = Cell(cell.window, tuple(values[name] for name in plan.group_by))
        groups.setdefault(group, []).extend(bindings)
    for group, members in groups.items():
        row = aggregate_row(plan, output, group, members)
        if row is not None:
            yield row
