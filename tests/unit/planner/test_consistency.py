"""The four classes of conditions on Kleene variables, and what they discard before matching."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.property.strategies import SCHEMA, to_table

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.match.expansion import sifted
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.bind import bind
from trendloom.planner.consistency import Consistency, classify
from trendloom.runtime.planning import plan_query

TRUE, FALSE, BOTH, NEITHER = Consistency.TRUE, Consistency.FALSE, Consistency.BOTH, Consistency.NEITHER


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("b.x > 5", BOTH),
        ("b[i].x > 5 OR b[i].y IS NULL", BOTH),
        ("a.x < b.x", BOTH),
        ("b.time - a.time < 5 OR a.g LIKE 'u%'", BOTH),
        ("a.x = NEXT(c).x", BOTH),
        ("b[i].x > max(b[..i-1].x)", TRUE),
        ("b[i].x >= max(b[..i-1].x) + 2", TRUE),
        ("min(b[..i-1].x) >= b[i].x", TRUE),
        ("b[i].x > count(b[..i-1])", TRUE),
        ("NOT (b[i].x < max(b[..i-1].x))", TRUE),
        ("b.x < d.x", TRUE),
        ("count(b[]) <= 3", TRUE),
        ("duration(b) < 10", TRUE),
        ("b[i].x < max(b[..i-1].x)", FALSE),
        ("b[i].x > min(b[..i-1].x)", FALSE),
        ("b[i].x < 2 * max(b[..i-1].x)", FALSE),
        ("b[i].x > -2 * max(b[..i-1].x)", FALSE),
        ("c.x < max(b[].x)", FALSE),
        ("count(b[]) >= 3", FALSE),
        ("max(b[].x) - min(b[].x) > 2", FALSE),
        ("b[i].x < max(b[..i-1].x) OR b[i].y > 1", FALSE),
        ("b[i].x > b[i-1].x", NEITHER),
        ("b.x < NEXT(b).x", NEITHER),
        ("a.x < NEXT(b).x", NEITHER),
        ("b[i].x > avg(b[..i-1].x)", NEITHER),
        ("b[i].x > sum(b[..i-1].x)", NEITHER),
        ("b[i].x = max(b[..i-1].x)", NEITHER),
        ("b[i].x < a.x * max(b[..i-1].x)", NEITHER),
        ("b[i].x < max(b[..i-1].x) OR b[i].x > max(b[..i-1].y)", NEITHER),
        ("b[last].x > 3", NEITHER),
        ("max(b[].x) IS NULL", NEITHER),
        ("abs(max(b[].x)) > 1", NEITHER),
    ],
)
def test_classes(condition: str, expected: Consistency) -> None:
    plan = bind(parse_query(f"PATTERN SEQ(A a, B+ b[], C c, D+ d[]) WHERE ({condition})"), SCHEMA)
    (conjunct,) = plan.conditions
    assert classify(conjunct.expr, plan.kleene) is expected


def stream(values: list[int | None], times: list[int] | None = None) -> pa.Table:
    times = times or list(range(len(values)))
    return to_table(
        [
            {"id": n, "type": "B", "time": time, "x": x, "y": None, "g": None, "k": n // 4}
            for n, (x, time) in enumerate(zip(values, times, strict=True))
        ]
    )


def passed(condition: str, table: pa.Table, where: str = "") -> list[bool] | None:
    from trendloom.runtime.blocks import Stream, build_block

    physical = plan_query(bind(parse_query(f"PATTERN B+ b[] WHERE {where} {condition}"), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    block, _ = build_block(physical, Stream(table, kinds, table["time"].to_numpy()))
    assert isinstance(physical.kernel, SearchKernel)
    masks = list(sifted(Automaton(physical.kernel.pattern_spec), block).values())
    return masks[0].tolist() if masks else None


class TestSieves:
    def test_an_event_above_all_before_it_is_discarded(self) -> None:
        assert passed("b[i].x < max(b[..i-1].x)", stream([2, 3, 1, 2])) == [False, False, True, True]
        assert passed("max(b[..i-1].x) >= b[i].x", stream([2, 3, 3, 2])) == [False, False, True, True]
        assert passed("b[i].x > min(b[..i-1].x)", stream([2, 1, 1, 2])) == [False, False, False, True]

    def test_events_of_one_time_are_not_before_each_other(self) -> None:
        found = passed("b[i].x < max(b[..i-1].x)", stream([3, 1, 1, 9], [0, 0, 1, 1]))
        assert found == [False, False, True, False]

    def test_nulls_are_nobody(self) -> None:
        found = passed("b[i].x < max(b[..i-1].x)", stream([None, 1, None, 0]))
        assert found == [False, False, False, True]

    def test_every_partition_by_itself(self) -> None:
        found = passed("b[i].x < max(b[..i-1].x)", stream([9, 1, 1, 1, 2, 1, 3, 2]), "[k] AND")
        assert found == [False, True, True, True, False, True, False, True]

    @pytest.mark.parametrize("condition", ["b[i].x > max(b[..i-1].y)", "b[i].x < avg(b[..i-1].x)", "count(b[]) > 2"])
    def test_other_conditions_discard_nothing(self, condition: str) -> None:
        assert passed(condition, stream([1, 2])) is None

    def test_what_is_left_is_right(self) -> None:
        query = "PATTERN B+ b[] WHERE b[i].x < max(b[..i-1].x) AND b[i].x != min(b[..i-1].x)"
        table = stream([2, 3, 1, 2, None, 4, 3, 2], [0, 1, 1, 2, 3, 3, 4, 5])
        local, reference = (tl.run(query, table, engine=engine).num_rows for engine in ("local", "reference"))
        assert local == reference > 8
