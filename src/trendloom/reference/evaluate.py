"""The definitions, executed: partitions, windows, matches, results, one after the other.

This is the truth that every fast path is compared with. It shares nothing with the kernels: the pattern grows by its
tree (`derive`), expressions have an evaluator of their own (`scalar`), and everything is plain Python.
Cost: exponential in the number of events of a window; `budget` refuses what would take too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from trendloom.expr.nodes import variables
from trendloom.logical.plan import Aggregation, OperandWindow, Plan, Ranking
from trendloom.model.schema import Kind
from trendloom.reference.matches import Binding, Search
from trendloom.reference.results import (
    Cell,
    Key,
    Placed,
    aggregate_row,
    binding_key,
    group_of,
    in_order,
    match_row,
    match_rows,
    total_over,
    value_of_match,
    without_hidden,
)
from trendloom.reference.scalar import Number, average, combined
from trendloom.reference.stream import Bounds, Row, StepBudget, cut_partitions, cut_windows, read_event
from trendloom.reference.worlds import evaluate_worlds


def evaluate(plan: Plan, rows: Sequence[Mapping[str, object]], *, prune: bool = True) -> list[Row]:
    """The result of a query over input rows, in order.

    Times are whole ticks. `prune` False leaves every test of skip-till-any-match to the complete binding: slower still,
    it exists to check that the shortcuts change nothing.
    """
    budget = StepBudget()
    if plan.schema.imprecise:
        return in_order(evaluate_worlds(plan, rows, budget))
    cells = list(_cells(plan, rows, Search(plan, budget, prune)))
    if isinstance(plan.output, Aggregation):
        return in_order(_aggregated(plan, plan.output, cells))
    if plan.ranking is not None:
        return in_order(_ranked(plan, plan.ranking, cells))
    return in_order(placed for cell, bindings in cells for placed in match_rows(plan, cell, bindings))


def _cells(plan: Plan, rows: Sequence[Mapping[str, object]], search: Search) -> Iterator[tuple[Cell, list[Binding]]]:
    """The matches of every window of every partition."""
    events = [read_event(number, row, plan.schema) for number, row in enumerate(rows)]
    for partition, members in cut_partitions(events, plan.partition).items():
        for window, stream in cut_windows(members, plan.window, search.budget):
            found = [
                binding
                for binding in search.matches(stream)
                if all(_keeps(operand, window, binding) for operand in plan.operand_windows)
            ]
            yield Cell(window, partition), without_hidden(found, plan.hidden)


def _keeps(operand: OperandWindow, window: Bounds | None, binding: Binding) -> bool:
    """Whether the events of an operand lie in a window of its own."""
    times = [event.time for event, atom in binding if atom.position in operand.positions]
    if not times:
        return True
    if window is not None:
        return min(times) >= window[1] - operand.within
    return max(times) - min(times) < operand.within


def _aggregated(plan: Plan, output: Aggregation, cells: Sequence[tuple[Cell, list[Binding]]]) -> Iterator[Placed]:
    groups: dict[Cell, list[Binding]] = {}
    for cell, bindings in cells:
        groups.setdefault(group_of(plan, cell), []).extend(bindings)
    for group, members in groups.items():
        row = aggregate_row(plan, output, group, partial(total_over, bindings=members)) if members else None
        if row is not None:
            yield row


# ------------------------------------------------------------------------------------------------- ranking


def _ranked(plan: Plan, ranking: Ranking, cells: Iterable[tuple[Cell, list[Binding]]]) -> Iterator[Placed]:
    """The rows of the best matches of each window and partition; OVERALL of each window."""
    boards: dict[object, list[tuple[Cell, Binding]]] = {}
    for cell, bindings in cells:
        board = boards.setdefault(cell.window if ranking.overall else cell, [])
        board.extend((cell, binding) for binding in bindings)
    for board in boards.values():
        for rank, (score, cell, binding) in enumerate(_best(plan, ranking, board), start=1):
            window, partition = cell.key
            key = (window, rank) if ranking.overall else (window, partition, rank)
            yield Placed(key, replace(match_row(plan, cell, binding), rank=rank, score=score))


def _best(
    plan: Plan, ranking: Ranking, board: Iterable[tuple[Cell, Binding]]
) -> list[tuple[Number | None, Cell, Binding]]:
    """The best matches, best first; NULL scores last, ties by instants, values, variables."""
    scored = [(_score(plan, ranking, cell, binding), cell, binding) for cell, binding in board]

    def place(item: tuple[Number | None, Cell, Binding]) -> Key:
        score, _, binding = item
        better = 0 if score is None else -score if ranking.descending else score
        return (score is None, better, *binding_key(binding)[2:])

    return sorted(scored, key=place)[: ranking.limit]


def _score(plan: Plan, ranking: Ranking, cell: Cell, binding: Binding) -> Number | None:
    """The score of a match. A preference of MERGE is left out where the match binds none of its variables."""
    bound = {atom.variable for _, atom in binding}
    taken = [
        expr
        for expr in ranking.preferences
        if ranking.merge is None or not variables(expr) or not bound.isdisjoint(variables(expr))
    ]
    scores = [cast(Number | None, value_of_match(plan, cell, binding, expr)) for expr in taken]
    known = [score for score in scores if score is not None]
    if not known or len(known) < len(scores):
        return None
    if ranking.merge is None:
        return known[0]
    operator = {"min": "least", "max": "greatest"}.get(ranking.merge, "+")
    merged = combined(operator, known, ranking.kind if ranking.merge != "avg" else _widest(ranking))
    return merged if ranking.merge != "avg" or merged is None else average(merged, len(known))


def _widest(ranking: Ranking) -> Kind:
    """The kind in which preferences are added up."""
    kinds = {expr.kind for expr in ranking.preferences}
    return Kind.FLOAT if Kind.FLOAT in kinds else Kind.DECIMAL if Kind.DECIMAL in kinds else Kind.INT
