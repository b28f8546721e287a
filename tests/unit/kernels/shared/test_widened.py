"""Numbers beyond 62 bits in a sweep: exact as far as two sweeps tell, and left to the query itself beyond that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import Measure, Totals
from trendloom.kernels.shared import CountedQuery, CountedStep, StepMeasure
from trendloom.kernels.shared.kernel import SharedKernel
from trendloom.model.schema import Kind
from trendloom.model.time import Window

SUM = StepMeasure(Measure("s", "sum", (0,), "x", Kind.INT), (0,))
LEAST = StepMeasure(Measure("l", "min", (0,), "x", Kind.INT), (0,))


def found_in(values: list[int], *measures: StepMeasure) -> Totals | None:
    """Of as many events as there are values, counted by A+."""
    count = len(values)
    column = Vector(Kind.INT, np.array(values, np.int64), None, None)
    times = np.arange(count)
    block = Block(np.array([0, count]), times, times, {"x": column}, (np.ones(count, np.uint8),), (0,))
    query = CountedQuery(Window(), (CountedStep(0, repeats=True),), (("m", 1), ("twice", 2)), measures)
    (totals,) = SharedKernel((query,), ("A",)).totals(block)
    return totals


def numbers(totals: Totals | None, name: str) -> list[Any]:
    assert totals is not None
    values: list[Any] = totals.values[name].values.tolist()
    return values


@pytest.mark.parametrize("count", [1, 61, 62, 63, 64, 65, 66, 80, 90])
def test_every_set_of_events_is_counted(count: int) -> None:
    values = [7 * at % 11 for at in range(count)]
    totals = found_in(values, SUM, LEAST)
    assert numbers(totals, "m") == [2**count - 1]
    assert numbers(totals, "twice") == [2 * (2**count - 1)]
    assert numbers(totals, "s") == [sum(values) * 2 ** (count - 1)]
    assert numbers(totals, "l") == [min(values)]


def test_what_is_zero_when_wrapped_around_is_there() -> None:
    """Of sixty-five events, one after two others: 2^64 sets of the rest, for each of which it is one match more."""
    events = pa.table({"time": range(67), "type": [*"A" * 65, "B", "C"]})
    text = "QUERY p: RETURN COUNT(*) AS n PATTERN SEQ(A+, B) QUERY q: RETURN COUNT(*) AS n PATTERN SEQ(A+, B, C)"
    assert [int(row["n"]) for row in tl.run(text, events).to_pylist()] == [2**65 - 1] * 2
    doubled = found_in([2] * 64, SUM)
    assert numbers(doubled, "s") == [2**70]


def test_what_two_sweeps_cannot_tell_is_left_to_the_query() -> None:
    assert found_in([1] * 120) is None
    assert found_in([1, -1] * 35, SUM) is None
    assert found_in([2**60] * 70, SUM) is None


@pytest.mark.parametrize("numeric", ["exact", "float", "log"])
def test_values_that_are_never_missing_are_counted(numeric: str) -> None:
    events = pa.table({"time": range(70), "type": [*"A" * 69, "B"], "x": range(70)})
    text = "QUERY p: RETURN COUNT(A.x) AS n PATTERN SEQ(A+, B)\nQUERY q: RETURN COUNT(*) AS n PATTERN SEQ(A, B)"
    together = tl.run(text, events, numeric=numeric)["n"].to_pylist()
    alone = [tl.run(one, events, numeric=numeric)["n"].to_pylist()[0] for one in text.splitlines()]
    assert [float(one) for one in together] == pytest.approx([float(one) for one in alone])
