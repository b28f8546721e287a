"""Components exclude each other by their types, or by conditions that contradict each other, and by nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trendloom.errors import BindError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.uncertain.expected import ExpectedKernel
from trendloom.options import Options
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import planned_alone
from trendloom.runtime.reading import load

SCHEMA = pa.schema(
    [("type", pa.string()), ("low", pa.int64()), ("high", pa.int64()), ("x", pa.int64()), ("f", pa.float64()),
     ("s", pa.string()), ("b", pa.bool_())]
)  # fmt: skip


def planned(query: str) -> Physical:
    events = load(SCHEMA.empty_table(), Options(time_low="low", time_high="high"))
    return planned_alone(parse_query(query), events.schema)


@pytest.mark.parametrize(
    "where",
    [
        "a.x = 1 AND b.x = 2",
        "a.x < 3 AND b.x >= 3",
        "a.x <= 3 AND 3 < b.x",
        "a.f < 0.5 AND b.f > 0.5",
        "a.s = 'in' AND b.s = 'out'",
        "a.b = true AND b.b = false",
        "a.f > 0 AND a.x = 1 AND b.x = 2",
    ],
)
def test_conditions_that_contradict_each_other(where: str) -> None:
    assert isinstance(planned(f"PATTERN SEQ(A a, A b) WHERE {where} RETURN COUNT(*)").kernel, ExpectedKernel)


@pytest.mark.parametrize(
    "where",
    [
        "a.x = 1",
        "a.x = 1 AND b.x = 1",
        "a.x <= 3 AND b.x >= 3",
        "a.x < 3 AND b.f >= 3.0",
        "a.x < 3 AND b.x < 2",
        "a.x != 1 AND b.x = 1 AND b.f > 0",
        "a.s < 'm' AND b.s > 'n'",
        "(a.x = 1 OR a.f > 0) AND b.x = 2",
    ],
)
def test_an_event_may_fit_both(where: str) -> None:
    physical = planned(f"PATTERN SEQ(A a, A b) WHERE {where} RETURN COUNT(*)")
    assert not isinstance(physical.kernel, ExpectedKernel)
    assert physical.chosen.why == "two steps, because an event may fit 'a' and 'b'"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("PATTERN SEQ(A a, NOT C c, B b)", "the pattern has a NOT"),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x", "a condition relates events"),
        ("PATTERN SEQ(A+ a[], B b)", "a component is repeated"),
        ("PATTERN SEQ(A a, (C c)?, B b)", "a component may be left out"),
        ("PATTERN SEQ(A a, B b) SEMANTICS skip-till-next-match",
         "skip-till-next-match: what comes next is decided in each world"),
    ],
)  # fmt: skip
def test_why_matches_have_to_be_found(query: str, why: str) -> None:
    assert planned(f"{query} RETURN COUNT(*)").chosen.why == f"two steps, because {why}"


def test_a_threshold_leaves_matches_out() -> None:
    physical = planned("PATTERN SEQ(A a, B b) RETURN COUNT(*) CONFIDENCE >= 0.5")
    assert physical.chosen.why == "two steps, because CONFIDENCE leaves matches out"


def test_a_probability_over_one_type_is_refused() -> None:
    with pytest.raises(BindError, match="fits more than one place"):
        planned("PATTERN SEQ(A a, A b) RETURN PROBABILITY(*)")
