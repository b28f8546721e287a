"""Remainders of EXISTS counted without finding a match: which patterns allow it, and what events of one time do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.property.compare import rows_of
from tests.property.strategies_aggregates import ENTANGLED, HIDDEN

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.aggregate import type_grained
from trendloom.kernels.aggregate.program import Existence
from trendloom.kernels.aggregate.type_grained.matrices import one_per_instant
from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.planner.pattern_tables import describe
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import plan_query

SCHEMA = Schema(tuple(Column(*one) for one in (("type", Kind.STRING), ("time", Kind.INT), ("x", Kind.INT))))


def physical_of(text: str) -> Physical:
    return plan_query(bind(parse_query(f"RETURN COUNT(*) {text}"), SCHEMA))


def existence_of(pattern: str) -> Existence:
    """The hidden states of the pattern as it is written, before a plan leaves any out."""
    return Existence(Automaton(describe(bind(parse_query(f"PATTERN {pattern}"), SCHEMA))))


@pytest.mark.parametrize("pattern", [shape.pattern for shape in HIDDEN])
def test_plain_tests_of_existence_are_counted(pattern: str) -> None:
    physical = physical_of(f"PATTERN {pattern}")
    assert existence_of(pattern).obstacle is None
    assert physical.kernel.adds_up
    assert "what EXISTS hides is a plain test at its place" in physical.chosen.why


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (ENTANGLED[0].pattern, "a NOT stands right before an event that EXISTS hides"),
        (ENTANGLED[1].pattern, "a NOT stands right before an event that EXISTS hides"),
        (ENTANGLED[3].pattern, "a remainder of EXISTS can come about in several ways"),
        (ENTANGLED[4].pattern, "a NOT stands right before an event that EXISTS hides"),
        ("EXISTS c (SEQ(C c, A a*))", "EXISTS may hide all events of a match"),
        ("EXISTS c (SEQ(AND(A a, C c), B b))", "EXISTS hides a part of an AND"),
        ("EXISTS c (EXISTS d (SEQ(A a, (SEQ(B c, C d))+, A b)))", "EXISTS hides the whole of a repeated part"),
        ("EXISTS c (SEQ(A a, C c, B b)) SEMANTICS contiguous", "EXISTS hides events of runs, and different runs"),
        ("EXISTS c (SEQ(A a, C c, B b)) WHERE a.x < c.x", "EXISTS hides events, and a predicate relates adj"),
    ],
)
def test_others_are_found_and_compared(query: str, reason: str) -> None:
    physical = physical_of(f"PATTERN {query}")
    assert not physical.kernel.adds_up
    assert reason in physical.chosen.why


def test_a_condition_on_a_pivot_leaves_a_plain_test() -> None:
    physical = physical_of("PATTERN EXISTS c (SEQ(A a, B b, C c, B d)) WHERE a.x < c.x")
    assert physical.kernel.adds_up
    assert "one aggregate per event of a" in physical.chosen.why


def test_what_can_be_missing_is_needless() -> None:
    assert existence_of("EXISTS c (EXISTS d (SEQ(A a, C c*, B d?, A b)))").needless == {1, 2}
    assert existence_of("EXISTS c (SEQ(A a, C c+, B b))").needless == frozenset()


def block(instants: list[int], fits: list[int], bits: tuple[int, ...], kind: Any = np.uint8) -> Block:
    return Block(np.array([0, len(fits)]), np.array(instants), np.arange(len(fits)), {}, (np.array(fits, kind),), bits)


def test_of_the_events_of_an_instant_one_fits() -> None:
    whole = block([1, 1, 1, 2], [1, 3, 1, 1], (0, 0, 1))
    found = one_per_instant(whole, frozenset({1}))
    assert [members.tolist() for members in found.members] == [[0, 1, 2, 3], [0, 3], [1]]
    assert one_per_instant(whole, frozenset({2})) is whole


def test_words_are_as_wide_as_needed() -> None:
    full = one_per_instant(block([1, 1], [128, 128], tuple(range(8))), frozenset({7}))
    assert full.fits[0].dtype == np.uint16
    assert full.members[7].tolist() == [0]
    more = one_per_instant(block([1, 1], [2**63, 2**63], tuple(range(64)), np.uint64), frozenset({63}))
    assert len(more.fits) == 2
    assert more.members[63].tolist() == [0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("pattern", [shape.pattern for shape in HIDDEN])
def test_panes_and_windows_one_by_one_agree(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    events = pa.table({"type": random.choice(list("ABC"), 60), "time": np.sort(random.integers(0, 40, 60)),
                       "x": random.integers(0, 5, 60)})  # fmt: skip
    query = f"RETURN COUNT(*), SUM(a.x), MIN(a.x), MAX(a.x) PATTERN {pattern} WITHIN 9 SLIDE 2"
    each = tl.run(query, events)
    monkeypatch.setattr(type_grained, "FEW_STEPS", 0)
    monkeypatch.setattr(type_grained, "_worth_panes", lambda *_: True)
    assert rows_of(tl.run(query, events)) == rows_of(each)
