"""When collapsed trends are found spine by spine, when matches are put together, and what live streams refuse."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from tests.property.strategies import SCHEMA

from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.trends.collapsed import MergedKernel, SpinesKernel
from trendloom.kernels.trends.spines import Spine
from trendloom.logical.bind import bind
from trendloom.logical.display import Branch, draw
from trendloom.model.schema import Column, Kind
from trendloom.planner.display import describe_physical
from trendloom.planner.live import describe_live, live_kernel
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import plan_query


def physical_of(pattern: str) -> Physical:
    return plan_query(bind(parse_query(f"RETURN COLLAPSED TRENDS PATTERN {pattern}"), SCHEMA))


def spine(pattern: str) -> Spine:
    kernel = physical_of(pattern).kernel
    assert isinstance(kernel, SpinesKernel)
    return kernel.spine


@pytest.mark.parametrize(
    "pattern",
    [
        "A+",
        "SEQ(A a, B+ b[], C c)",
        "SEQ(A a?, B+ b[], C c?)",
        "OR(SEQ(A a, B+ b[]), SEQ(C c, (SEQ(B d, A e))+))",
        "SEQ(A a, B+ b[]) WHERE a.x = b.x",
        "SEQ(A a, B+ b[]) WHERE abs(b[i].x - b[i-1].x) < 2",
        "SEQ(A a, B+ b[], C c) WHERE a.x + c.x < b.x AND a.y < c.y",
        "SEQ(A a, B+ b[]) WHERE b[i].x > b[i-1].x AND a.x < NEXT(b).x",
        "(SEQ(A a, (B b: b.x = a.x)))+",
        "A+ a[] WITHIN 5",
    ],
)
def test_spines(pattern: str) -> None:
    assert spine(pattern).gaps


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("SEQ(A a, NOT X, B+ b[])", "a NOT looks at more than the events around a gap"),
        ("AND(A a, B+ b[])", "parts of an AND may lie in any order"),
        ("SEQ(A+ a[], B+ b[]) WHERE a.x < b.x", "a predicate compares events that are not next to each other"),
        ("SEQ(A a, B+ b[]) WHERE b[first].x < a.x", "a predicate looks at more than two events"),
        ("SEQ(A a, B+ b[]) WHERE count(b[]) > 1", "a predicate looks at more than two events"),
        ("SEQ(A a, B+ b[]) WHERE b[i].x > avg(b[..i-1].x)", "a predicate looks at more than two events"),
    ],
)
def test_matches_are_merged(pattern: str, reason: str) -> None:
    found = physical_of(pattern).chosen
    assert isinstance(found.kernel, MergedKernel)
    assert found.result.endswith(": matches are enumerated and merged")
    assert found.obstacles == (Branch("not by spines", reason),)


@pytest.mark.parametrize(
    ("pattern", "anchored"),
    [
        ("SEQ(A a, B+ b[], C c) WITHIN 5", False),
        ("SEQ(B+ b[], C c) WITHIN 5", False),
        ("SEQ(A a, B+ b[]) WITHIN 5", False),
        ("SEQ(B+ b[], A a, C+ c[]) WITHIN 5", True),
        ("SEQ(B+ b[], A a, C+ c[]) WITHIN 5 SLIDE 5", False),
        ("SEQ(B+ b[], A a, C+ c[])", False),
        ("A+ WITHIN 5", True),
    ],
)
def test_a_bound_on_the_match_ties_its_ends_together(pattern: str, anchored: bool) -> None:
    assert spine(pattern).anchored == anchored


def test_plans_travel() -> None:
    physical = physical_of("SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x AND a.x = b.x WITHIN 5")
    assert pickle.loads(pickle.dumps(physical)) == physical


def test_a_partition_named_like_the_number_of_matches() -> None:
    schema = replace(SCHEMA, columns=(*SCHEMA.columns, Column("matches", Kind.INT)))
    with pytest.raises(BindError, match="two columns named 'matches'"):
        bind(parse_query("RETURN COLLAPSED TRENDS PATTERN A+ WHERE [matches]"), schema)


class TestLive:
    def test_a_row_for_the_whole_stream_is_refused(self) -> None:
        physical = physical_of("SEQ(A a?, B+ b[]) WITHIN 5")
        with pytest.raises(PlanError, match="one row for the whole of a live stream") as caught:
            live_kernel(physical)
        assert caught.value.hint == "add SLIDE: windows end"
        assert list(describe_live(physical)) == ["not at all: without SLIDE nothing would ever be done"]

    @pytest.mark.parametrize(
        ("pattern", "certain"),
        [("SEQ(A a, B+ b[]) WITHIN 5", Certain.FIRST), ("B+ b[] WITHIN 5 SLIDE 5", Certain.WINDOW)],
    )
    def test_rows_are_given_out_when_nothing_can_be_added(self, pattern: str, certain: Certain) -> None:
        assert live_kernel(physical_of(pattern)).emission.certain is certain


class TestExplain:
    def lines(self, pattern: str) -> str:
        return "\n".join(draw(describe_physical(physical_of(pattern).plan, lambda physical: ())))

    def test_spines(self) -> None:
        shown = self.lines("SEQ(A a, B+ b[]) WHERE b[i].x > b[i-1].x")
        assert "algorithm  spines: events outside Kleene variables first" in shown
        assert "however many matches they stand for; adjacent events are compared inside each gap" in shown

    def test_the_general_way_says_why(self) -> None:
        shown = self.lines("SEQ(A a, NOT X, B+ b[])")
        assert "not by spines  a NOT" in shown
