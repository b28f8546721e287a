"""Times in the index of a pandas frame are read like a column."""

from __future__ import annotations

import pandas as pd
import pytest

import trendloom as tl
from trendloom.errors import DataError
from trendloom.io.read import with_times_of_index

MOMENTS = pd.to_datetime(["2024-05-01 09:00", "2024-05-01 09:04", "2024-05-01 09:20"])
EVENTS = {"type": ["A", "B", "B"], "id": ["a1", "b2", "b3"]}
QUERY = "PATTERN SEQ(A a, B b) RETURN b.id, b.time - a.time AS took WITHIN 10 min"


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("name", [None, "time"])
def test_an_index_of_times_is_the_time(name: str | None, engine: str) -> None:
    frame = pd.DataFrame(EVENTS, index=pd.DatetimeIndex(MOMENTS, name=name))
    as_column = pd.DataFrame({**EVENTS, "time": MOMENTS})
    rows = tl.run(QUERY, frame, engine=engine)
    assert rows.num_rows == 1
    assert rows.to_pylist() == tl.run(QUERY, as_column, engine=engine).to_pylist()
    assert tl.check(QUERY, frame) == []
    assert "physical plan" in tl.explain(QUERY, frame).lower()
    assert list(frame.columns) == ["type", "id"]  # the caller's frame is left alone


def test_an_index_with_the_name_of_the_time_may_hold_anything() -> None:
    numbers = pd.DataFrame(EVENTS, index=pd.Index([1, 2, 9], name="at"))
    assert tl.run("PATTERN SEQ(A a, B b) RETURN b.id WITHIN 5", numbers, time="at").to_pylist() == [{"b.id": "b2"}]
    levels = pd.MultiIndex.from_arrays([["x"] * 3, MOMENTS], names=["place", "time"])
    assert tl.run("PATTERN B", pd.DataFrame(EVENTS, index=levels)).num_rows == 2


def test_a_column_of_that_name_comes_first() -> None:
    frame = pd.DataFrame({**EVENTS, "time": [1, 2, 3]}, index=MOMENTS)
    assert with_times_of_index(frame, "time") is frame


def test_an_index_of_another_name_is_named() -> None:
    frame = pd.DataFrame(EVENTS, index=pd.DatetimeIndex(MOMENTS, name="stamp"))
    with pytest.raises(DataError, match="the index 'stamp' holds times") as caught:
        tl.run(QUERY, frame)
    assert caught.value.hint == 'time="stamp" takes the index; frame.reset_index() makes a column of it'
    assert tl.run(QUERY, frame, time="stamp").num_rows == 1


def test_other_frames_are_as_they_are() -> None:
    plain = pd.DataFrame(EVENTS)
    assert with_times_of_index(plain, "time") is plain
    assert with_times_of_index("events.csv", "time") == "events.csv"
    stamped = pd.DataFrame(EVENTS, index=MOMENTS)
    assert with_times_of_index(stamped, "time", "low") is stamped
