"""Exact numbers that are too long for Spark's decimals are refused before they are computed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import trendloom
from trendloom.engines.local import stream_of
from trendloom.errors import RunError
from trendloom.kernels.aggregate import widening as widen
from trendloom.kernels.columns.numbers import Limbs
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.runtime import task
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of


def partial(query: str, number: int) -> pa.Table | None:
    """The measures as a task on Spark finds them, of two groups with so many events in a window."""
    times = [time for time in range(number) for _ in "gh"]
    events = load(pa.table({"time": times, "type": ["A"] * len(times), "k": [*"gh"] * number}), Options())
    (parsed,) = queries_of(query)
    physical = plan_query(bind(parsed, events.schema))
    return task.partial(physical, stream_of(physical, events), decimals=True)


@pytest.fixture
def no_wide_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(system: type, *sizes: int) -> Any:
        assert system is not Limbs, "long numbers are computed"
        return made(system, *sizes)

    made = widen.zeros
    monkeypatch.setattr(widen, "zeros", zeros)


@pytest.mark.usefixtures("no_wide_words")
def test_the_refusal_names_the_group_and_the_window() -> None:
    where = r"COUNT\(\*\) does not fit DECIMAL\(38,0\) in k = '[gh]', the window that starts at 0"
    with pytest.raises(RunError, match=where) as refusal:
        partial("RETURN COUNT(*) PATTERN A+ GROUP BY k WITHIN 1000", 300)
    assert refusal.value.hint == 'use numeric="float" or numeric="log"'
    with pytest.raises(RunError, match="in the whole stream"):
        partial("RETURN COUNT(*) PATTERN A+", 300)


def test_numbers_beyond_reason_are_refused_with_the_option_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widen, "MOST_WORDS", 4)
    events = pa.table({"time": list(range(300)), "type": ["A"] * 300})
    for query in ("RETURN COUNT(*) PATTERN A+", "RETURN COUNT(*) PATTERN A+ a[] WHERE a[i].time > a[i-1].time"):
        with pytest.raises(RunError, match="exact numbers of more than 76 digits are not computed") as refusal:
            trendloom.run(query, events)
        assert refusal.value.hint == 'use numeric="log"'


def test_what_is_not_given_out_may_be_long() -> None:
    found = partial("RETURN COUNT(*) AS n PATTERN A+ WHERE [k] HAVING COUNT(*) < 10", 150)
    assert found is not None
    assert found.num_rows == 1
    assert partial("RETURN MAX(A.time) AS last PATTERN A+ WHERE [k]", 150) is not None


def test_sums_of_no_group_that_is_left() -> None:
    """HAVING leaves none of the numbers that were too long for a word."""
    events = pa.table({"type": ["A"] * 3, "time": [0, 1, 2], "x": [2**63 - 1] * 3})
    found = trendloom.run("RETURN SUM(A.x) HAVING COUNT(*) > 100 PATTERN A+", events)
    assert found.num_rows == 0
