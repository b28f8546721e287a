"""Which queries for complete trends the trend graph serves, and how it finds its edges."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trendloom.kernels.trends.complete import TrendGraphKernel
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.planner.algorithms.complete import complete_of
from trendloom.planner.plan import Physical
from trendloom.planner.request import Refusal
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of

EVENTS = pa.table({"type": ["A", "B"], "time": [1, 2], "x": [1, 2], "y": [1, 2], "k": [1, 1]})


def planned(query: str) -> Physical:
    (parsed,) = queries_of(f"RETURN COMPLETE TRENDS PATTERN {query}")
    return plan_query(bind(parsed, load(EVENTS, Options()).schema))


def reason(physical: Physical) -> str:
    found = complete_of(physical.pattern_spec)
    return found.text if isinstance(found, Refusal) else found[1]


@pytest.mark.parametrize(
    ("query", "pairs", "tests", "how"),
    [
        ("A a+", 0, 0, "in order of time"),
        ("(A a+)+", 0, 0, "in order of time"),
        ("A a+ WHERE a.x > 0 AND [k]", 0, 0, "in order of time"),
        ("A a+ WHERE a.x < NEXT(a).x", 1, 0, "in order of value and time"),
        ("A a+ WHERE a[i].x >= a[i-1].x WITHIN 5", 1, 0, "in order of value and time"),
        ("A a+ WHERE a[i].x >= max(a[..i-1].x)", 1, 0, "in order of value and time"),
        ("A a+ WHERE a.x < NEXT(a).y", 1, 0, "compared with those of its windows that do not precede it"),
        ("A a+ WHERE a.x != NEXT(a).x", 1, 0, "compared with those of its windows that do not precede it"),
        ("A a+ WHERE a.x = NEXT(a).y AND a.x < NEXT(a).x", 2, 0, "found by value"),
        ("A a+ WHERE abs(a.x - NEXT(a).y) < 2", 0, 1, "tested with those of its windows"),
    ],
)
def test_one_variable_with_conditions_on_neighbours(query: str, pairs: int, tests: int, how: str) -> None:
    physical = planned(query)
    assert isinstance(physical.kernel, TrendGraphKernel)
    assert (len(physical.kernel.graph.pairs), len(physical.kernel.graph.tests)) == (pairs, tests)
    assert how in reason(physical)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SEQ(A a+, B b)", "more than one variable"),
        ("A a{2,}", "more than one variable"),
        ("A a", "not one variable with +"),
        ("SEQ(A a+, NOT B b)", "more than one variable"),
        ("A+ a[] WHERE count(a[]) < 2", "may fail for the longer of two"),
        ("A+ a[] WHERE count(a[]) = 2", "may fail for the longer of two"),
        ("A+ a[] WHERE sum(a[].x) > 2", "may fail for the longer of two"),
        ("A+ a[] WHERE a[first].x > 2", "may fail for the longer of two"),
        ("A+ a[] WHERE a[i].x > avg(a[..i-1].x)", "more than two events"),
    ],
)
def test_other_patterns_go_the_general_way(query: str, why: str) -> None:
    physical = planned(query)
    assert not isinstance(physical.kernel, TrendGraphKernel)
    assert why in reason(physical)


@pytest.mark.parametrize(
    "condition",
    [
        "count(a[]) > 2",
        "3 <= count(a[])",
        "count(a[].x) >= 1",
        "max(a[].x) > 5 AND min(a[].x) < 3",
        "max(a[].x) - min(a[].x) > 4",
        "(duration(a) >= 5 s OR count(a[]) > 7)",
    ],
)
def test_what_longer_trends_pass_as_well_is_tested_last(condition: str) -> None:
    physical = planned(f"A+ a[] WHERE a[i].x > a[i-1].x AND {condition}")
    assert isinstance(physical.kernel, TrendGraphKernel)
    assert len(physical.kernel.graph.pairs) == 1
    assert len(physical.kernel.graph.whole) == 1 + condition.count(" AND ")
    assert "tested last: a trend around one that passes passes, too" in reason(physical)
