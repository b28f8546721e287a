"""Collapsed trends without enumerating matches: exact at any size, work by events of rows, gaps filled once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from trendloom.errors import RunError
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.trends.collapsed import SpinesKernel
from trendloom.kernels.trends.prune import on_a_match
from trendloom.kernels.trends.spines import MATCHES, GapContents, GapFiller, GapInstances, distinct, packed
from trendloom.logical.bind import bind
from trendloom.model.amounts import NO_LIMITS, Limits
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.parallel import Run
from trendloom.runtime.planning import plan_query
from trendloom.runtime.task import show


def step_input(
    pattern: str, types: str, x: list[int | None] | None = None, limits: Limits = NO_LIMITS
) -> tuple[Physical, Stream]:
    """A planned query and a stream of events at times 0, 1, 2, ..."""
    table = pa.table(
        {
            "type": list(types),
            "time": list(range(len(types))),
            "x": pa.array(x if x is not None else [0] * len(types), pa.int64()),
        }
    )
    events = prepare(table)
    plan = bind(parse_query(f"RETURN COLLAPSED TRENDS PATTERN {pattern}"), events.schema)
    physical = plan_query(plan, limits)
    assert events.ticks is not None
    kinds = {column.name: column.kind for column in events.schema.columns}
    return physical, Stream(table, kinds, events.ticks)


def collapsed(pattern: str, types: str, x: list[int | None] | None = None, limits: Limits = NO_LIMITS) -> Matches:
    physical, stream = step_input(pattern, types, x, limits)
    return join(list(Run(physical.kernel, show(physical, stream).block).results()))


def numbers(matches: Matches) -> list[int]:
    return [int(number) for number in matches.columns.get(MATCHES, ())]


@pytest.mark.parametrize("size", [1, 62, 63, 64, 100, 5000])
def test_numbers_are_exact_at_any_size(size: int) -> None:
    found = collapsed("SEQ(A a, B+ b[], C c)", "A" + "B" * size + "C")
    assert numbers(found) == [2**size - 1]
    assert len(found.events) == size + 2


def test_products_of_gaps_are_exact() -> None:
    found = collapsed("SEQ(B+ b[], A a, C+ c[], D d, E* e[])", "B" * 50 + "A" + "C" * 50 + "D" + "E" * 50)
    assert numbers(found) == [(2**50 - 1) * (2**50 - 1) * 2**50]


def test_work_grows_with_events_of_rows_not_with_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    fill = GapFiller.fill

    def counted(self: GapFiller, asked: GapInstances) -> GapContents:
        filled = fill(self, asked)
        seen.append(len(filled.events))
        return filled

    monkeypatch.setattr(GapFiller, "fill", counted)
    collapsed("SEQ(A a, B+ b[])", "A" + "B" * 1000)
    assert sum(seen) == 1000


def test_a_gap_that_spines_share_is_filled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[int] = []
    fill = GapFiller.fill

    def counted(self: GapFiller, asked: GapInstances) -> GapContents:
        asked_for.append(len(asked))
        return fill(self, asked)

    monkeypatch.setattr(GapFiller, "fill", counted)
    found = collapsed("SEQ(A a, B+ b[], C c, D d)", "ABBCDDDD")
    assert numbers(found) == [3] * 4
    assert asked_for == [1]


def test_chains_are_counted_and_events_on_no_match_are_left_out() -> None:
    found = collapsed("SEQ(A a, B+ b[], C c) WHERE a.x < NEXT(b).x AND b.x < NEXT(b).x", "ABBBBC", [5, 3, 6, 4, 8, 0])
    assert numbers(found) == [3]  # 6, 8, 6 8
    assert found.events.tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize(
    ("operator", "x", "events"),
    [
        ("<", [2, 1, 3, 2, 4, 9], [0, 2, 4, 5]),
        ("<=", [2, 1, 2, 2, 1, 9], [0, 2, 3, 5]),
        (">", [2, 3, 1, 2, 0, 0], [0, 2, 4, 5]),
        (">=", [2, 3, 2, 2, 3, 0], [0, 2, 3, 5]),
        ("=", [2, 3, 2, 1, 2, 0], [0, 2, 4, 5]),
        ("!=", [2, 2, 1, 2, None, 0], [0, 2, 3, 5]),
    ],
)
def test_every_comparison_prunes(operator: str, x: list[int | None], events: list[int]) -> None:
    pattern = f"SEQ(A a, B+ b[], C c) WHERE a.x {operator} NEXT(b).x AND b.x {operator} NEXT(b).x"
    assert collapsed(pattern, "ABBBBC", x).events.tolist() == events


def test_what_is_on_a_match_does_not_depend_on_how_it_is_found() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        x = rng.integers(0, 6, 12).tolist()
        ordered = collapsed("SEQ(A a, B+ b[], C c) WHERE a.x < NEXT(b).x AND b.x < NEXT(b).x AND b.x < NEXT(c).x",
                            "A" + "B" * 10 + "C", x)  # fmt: skip
        scanned = collapsed(
            "SEQ(A a, B+ b[], C c) WHERE a.x < NEXT(b).x AND a.time != NEXT(b).time AND b.x < NEXT(b).x "
            "AND b.time != NEXT(b).time AND b.x < NEXT(c).x AND b.time != NEXT(c).time",
            "A" + "B" * 10 + "C", x,
        )  # fmt: skip
        assert ordered.events.tolist() == scanned.events.tolist()
        assert numbers(ordered) == numbers(scanned)


def test_positions_of_one_event() -> None:
    physical, stream = step_input("SEQ(A a, B+ b[], C c)", "BABCB")
    block, _ = build_block(physical, stream)
    assert isinstance(physical.kernel, SpinesKernel)
    (gap,) = (gap for gap in physical.kernel.spine.gaps if gap.positions)
    words = np.array([1, 2, 1, 4, 1], np.uint64)  # b is the gap's position 0, its source a 1, its target c 2
    inside = Block(block.key_starts, block.time, block.row, {}, (words,), (0, 1, 2))
    assert on_a_match(gap.ways, inside).tolist() == [0, 2, 1, 4, 0]


class TestMerging:
    def test_rows_stay_apart_by_position(self) -> None:
        found = collapsed("SEQ(OR(A, SEQ(A, NOT X, C?)), B+ b[])", "AB")
        assert numbers(found) == [1, 1]

    def test_too_many_matches(self) -> None:
        with pytest.raises(RunError, match="more than 10 matches to enumerate for collapsed trends") as caught:
            collapsed("SEQ(A a, NOT X, B+ b[])", "ABBBB", limits=Limits(enumerated=10))
        assert "COUNT(*)" in str(caught.value.hint)

    def test_numbers_that_leave_64_bits_together(self) -> None:
        found = collapsed("B+ b[] WITHIN 100", "B" * 150)
        assert numbers(found) == [sum(2 ** min(99, 149 - first) for first in range(150))]
        assert len(found.events) == 150


def test_distinct_rows_are_numbered_in_order() -> None:
    first, number = distinct([np.array([2, 1, 2, 1]), np.array([0, 5, 0, 4])])
    assert number.tolist() == [2, 1, 2, 0]
    assert first.tolist() == [3, 1, 0]


def test_wide_rows_are_packed() -> None:
    wide = np.array([0, 2**61, 5])
    code = packed([wide, wide, wide])
    assert np.argsort(code).tolist() == [0, 2, 1]
    assert len(set(code.tolist())) == 3
