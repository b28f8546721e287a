"""When the events of a stream are no longer what its plan was made with; and that a plan decides about no state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest
from tests.unit.streaming.live_streams import ARROW, SCHEMA

from trendloom.engines.spark.streaming.workload_changes import (
    LEAST_BATCHES,
    LEAST_EVENTS,
    DriftWatch,
    has_drifted,
    stretch_of,
)
from trendloom.frontend.tql.parser import parse
from trendloom.runtime.planning import planned
from trendloom.streaming.statistics import Figures, statistics_of_batches
from trendloom.streaming.streaming_query import streaming_query_of

EVEN = {"A": 500, "B": 500}


def figures(types: Mapping[str, int], batch: int = 0) -> Figures:
    return Figures(batch, sum(types.values()), 0, 1_000_000 * (batch + 1), dict(types))


@pytest.mark.parametrize(
    ("types", "drifted"),
    [
        ({"A": 5000, "B": 5000}, False),  # more of all is no drift
        ({"A": 510, "B": 490}, False),
        ({"A": 700, "B": 300}, False),
        ({"A": 800, "B": 200}, True),
        ({"A": 1000, "B": 0}, True),
        ({"A": 500, "B": 500, "new": 900}, False),  # nothing is known of it to compare with
        ({"A": 0, "B": 0}, False),
    ],
)
def test_shares_of_types_tell(types: Mapping[str, int], drifted: bool) -> None:
    assert has_drifted(figures(EVEN), figures(types)) is drifted


def test_rare_types_do_not_count() -> None:
    assert not has_drifted(figures({"A": 990, "B": 10}), figures({"A": 970, "B": 30}))


def test_a_plan_made_of_nothing_is_behind_any_figures() -> None:
    assert has_drifted(Figures(), figures(EVEN))
    assert not has_drifted(Figures(), Figures())


def test_a_stretch_is_what_came_after() -> None:
    early, late = Figures(3, 100, 5, 90, {"A": 60}, {("k",): 7}, {("q", 1): 4}), figures({"A": 80, "B": 70}, 5)
    found = stretch_of(early, late)
    assert (found.batch, found.events, found.first, found.types) == (5, 50, 90, {"A": 20, "B": 70})


def test_a_stream_is_compared_in_long_stretches() -> None:
    many = LEAST_EVENTS
    start = figures({"A": many, "B": many}, 10)
    watch = DriftWatch(start, start)
    assert watch.drifted_to(figures({"A": 9 * many, "B": many}, 11)) is None  # one batch tells nothing
    few = figures({"A": many + 50, "B": many}, 10 + LEAST_BATCHES)
    assert watch.drifted_to(few) is None
    later = figures({"A": 9 * many, "B": 2 * many}, 10 + LEAST_BATCHES)
    stretch = watch.drifted_to(later)
    assert stretch is not None
    assert stretch.types == {"A": 8 * many, "B": many}
    going_on = figures({"A": 17 * many, "B": 3 * many}, 10 + 2 * LEAST_BATCHES)
    assert watch.drifted_to(going_on) is None  # as the last stretch was
    back = figures({"A": 18 * many, "B": 4 * many}, 10 + 3 * LEAST_BATCHES)
    assert watch.drifted_to(back) is not None


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 10",
        "PATTERN SEQ(A a, B+ b[]) SEMANTICS skip-till-next-match WHERE [k] AND a.x < 5 WITHIN 10",
        "RETURN COMPLETE TRENDS PATTERN A+ a[] WHERE a[i].x > a[i-1].x WITHIN 10",
        "RETURN COLLAPSED TRENDS PATTERN SEQ(A+ a[], B b) WITHIN 10",
        "RETURN k, COUNT(*) PATTERN SEQ(A, NOT C, B) WHERE [k] GROUP BY k WITHIN 10 SLIDE 5",
        "RETURN COUNT(*) PATTERN A+ a[] WHERE a[i].x > a[i-1].x WITHIN 10 SLIDE 5",
        "RETURN COUNT(*) PATTERN A+ a[] WHERE sum(a[].x) > 3 WITHIN 10 SLIDE 5",
    ],
)
def test_state_does_not_depend_on_figures(query: str) -> None:
    """A stream that is planned again by other figures goes on with the state that it has."""
    found = set()
    for types in ({}, {"A": 1, "B": 10**9}, {"A": 10**9, "B": 1, "C": 10**6}):
        known = partial(statistics_of_batches, figures=figures(types))
        (physical,) = planned(parse(query), SCHEMA, statistics=known).queries
        streaming_query = streaming_query_of(physical, ARROW, "exact")
        found.add((streaming_query.fingerprint, streaming_query.kernel.version))
    assert len(found) == 1
