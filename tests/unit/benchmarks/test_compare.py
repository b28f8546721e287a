"""The comparison of checkouts sees rows that differ, and what compared nothing does not pass."""

from __future__ import annotations

import pyarrow as pa
from benchmarks.cases.compared import LOCAL, SPARK, compared_events
from benchmarks.compare import Comparison, same_rows_in_any_order


def test_rows_are_compared_in_any_order() -> None:
    first = pa.table({"a": [1, 2, 2], "b": [[0.5], [], []]})
    assert same_rows_in_any_order(first, first.take([2, 0, 1]))
    assert not same_rows_in_any_order(first, first.take([0, 0, 1]))
    assert not same_rows_in_any_order(first, first.slice(1))
    assert not same_rows_in_any_order(first, first.rename_columns(["a", "c"]))


def test_a_ratio_is_that_of_medians_and_has_a_limit() -> None:
    found = Comparison("case", 3, same=True, before=(1.0, 1.0, 9.0), after=(1.1, 0.1, 1.1))
    assert found.ratio == 1.1
    assert found.passes(1.2)
    assert not found.passes(1.05)


def test_what_compared_nothing_does_not_pass() -> None:
    assert not Comparison("case", 0, same=True, before=(1.0,), after=(1.0,)).passes(None)


def test_cases_and_events() -> None:
    assert set(SPARK) <= set(LOCAL)
    assert compared_events(100).equals(compared_events(100))
