"""The best matches: their scores, their order, and the windows of operands that they keep to.

Everything is sorted, so that it is the definition and nothing else; ranked rows are ordered by their rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from trendloom.expr.nodes import variables
from trendloom.logical.plan import OperandWindow, Plan, Ranking
from trendloom.model.schema import Kind
from trendloom.reference.matches import Binding
from trendloom.reference.results import Cell, Key, Placed, binding_key, match_row, value_of_match
from trendloom.reference.stream import Bounds
from trendloom.reference.summary import Number, average, combined


@dataclass(frozen=True)
class Ranked:
    """A match among the best of its board."""

    cell: Cell
    binding: Binding
    rank: int
    score: Number | None

    def placed(self, plan: Plan, ranking: Ranking) -> Placed:
        """Its row: boards of all partitions are ordered by window alone."""
        window, partition = self.cell.key
        key = (window, self.rank) if ranking.overall else (window, partition, self.rank)
        return Placed(key, replace(match_row(plan, self.cell, self.binding), rank=self.rank, score=self.score))


def ranked(plan: Plan, ranking: Ranking, cells: Iterable[tuple[Cell, Iterable[Binding]]]) -> Iterator[Ranked]:
    """The best matches of each board: of each window and partition, OVERALL of each window."""
    boards: dict[object, list[tuple[Cell, Binding]]] = {}
    for cell, bindings in cells:
        board = boards.setdefault(cell.window if ranking.overall else cell, [])
        board.extend((cell, binding) for binding in bindings)
    for board in boards.values():
        yield from _best(plan, ranking, board)


def _best(plan: Plan, ranking: Ranking, board: Iterable[tuple[Cell, Binding]]) -> Iterator[Ranked]:
    """The best matches, best first; NULL scores last, ties by instants, values, variables."""
    scored = [(_score(plan, ranking, cell, binding), cell, binding) for cell, binding in board]

    def place(item: tuple[Number | None, Cell, Binding]) -> Key:
        score, _, binding = item
        _, _, instants, contents, names, rows = binding_key(binding)
        better = 0 if score is None else -score if ranking.descending else score
        return (score is None, better, instants, contents, names, rows)

    best = sorted(scored, key=place)[: ranking.limit]
    for rank, (score, cell, binding) in enumerate(best, start=1):
        yield Ranked(cell, binding, rank, score)


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


# ------------------------------------------------------------------------------------------- windows of operands


def in_operand_windows(
    operands: Sequence[OperandWindow], window: Bounds | None, bindings: Iterable[Binding]
) -> list[Binding]:
    """The matches of a window whose operands keep to windows of their own."""
    return [binding for binding in bindings if all(_keeps(operand, window, binding) for operand in operands)]


def _keeps(operand: OperandWindow, window: Bounds | None, binding: Binding) -> bool:
    times = [event.time for event, atom in binding if atom.position in operand.positions]
    if not times:
        return True
    if window is not None:
        return min(times) >= window[1] - operand.within
    return max(times) - min(times) < operand.within
