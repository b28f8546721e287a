"""The reference ranks as a sort of all matches does, with scores that are computed once more in plain Python.

And the local engine as the reference, row by row.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from tests.property.amounts import amount, thorough
from tests.property.strategies_ranking import KINDS, Bound, Number, RankedCase, ranked_cases

import trendloom as tl
from trendloom.errors import BindError, PlanError

CASES = 90


def rows_of(query: str, case: RankedCase, engine: str = "reference") -> list[dict[str, Any]]:
    try:
        return tl.run(query, case.table(), engine=engine).to_pylist()
    except (BindError, PlanError):
        assume(False)
        raise


def exactly(score: object) -> object:
    """Exact numbers compare with one another, whatever type they have in the table."""
    return Fraction(score) if isinstance(score, int | Decimal) else score


def keeps_windows(case: RankedCase, bound: Bound, window_end: int | None) -> bool:
    for operand in case.operands:
        names = {component.name for component in operand.components}
        times = [row["time"] for name, row in bound if name in names]
        if operand.within is None or not times:
            continue
        if (
            max(times) - min(times) >= operand.within
            if window_end is None
            else min(times) < window_end - operand.within
        ):
            return False
    return True


def sorted_by_force(case: RankedCase) -> list[tuple[object, ...]]:
    """Board by board the best of all matches: window, partition, rank, score, ids with their variables."""
    boards: dict[tuple[object, ...], list[tuple[Any, ...]]] = {}
    for row in rows_of(case.unranked, case):
        bound = [(event["var"], event) for event in row["events"]]
        if not keeps_windows(case, bound, row.get("window_end")):
            continue
        score = case.score(bound)
        window, key = row.get("window_start", 0), row.get("k", 0)
        times, ids = [event["time"] for _, event in bound], [event["id"] for _, event in bound]
        better: Number = 0 if score is None else -score if case.descending else score
        place = (score is None, better, times, ids, [name for name, _ in bound])
        board = (window,) if case.overall else (window, key)
        boards.setdefault(board, []).append((place, window, key, score, list(zip(ids, place[4], strict=True))))
    found = []
    for _, board in sorted(boards.items()):
        best = sorted(board, key=lambda entry: entry[0])[: case.limit]
        found += [(window, key, rank, score, events) for rank, (_, window, key, score, events) in enumerate(best, 1)]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_are_those_of_a_sort_of_all_matches(kind: str) -> None:
    seen: Counter[str] = Counter()

    @thorough(amount(CASES))
    @given(ranked_cases(KINDS[kind]))
    def compare(case: RankedCase) -> None:
        expected = sorted_by_force(case)
        rows = rows_of(case.query, case)
        assert rows_of(case.query, case, "local") == rows, case.query
        assert [(row["rank"], exactly(row["score"])) for row in rows] == [
            (rank, exactly(score)) for _, _, rank, score, _ in expected
        ], case.query
        if case.returns == "TRENDS":
            found = [
                (row.get("window_start", 0), row.get("k", 0), [(event["id"], event["var"]) for event in row["events"]])
                for row in rows
            ]
            assert found == [(window, key, events) for window, key, _, _, events in expected], case.query
        scores = [row["score"] for row in rows]
        seen.update({"rows": bool(rows), "null": None in scores, "ties": len(set(scores)) < len(scores)})
        seen.update({"several boards": len({(one[0], one[1]) for one in expected}) > 1, "all": 1})
        seen.update({"overall": case.overall and any("k" in row for row in rows)})

    compare()
    assert seen["rows"] > seen["all"] / 3, seen
    assert all(seen[what] for what in ("null", "ties", "several boards", "overall")), seen
