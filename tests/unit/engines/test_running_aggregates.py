"""Aggregates over the earlier events of a variable that binds a single event: there are none, so nothing is asked."""

import pyarrow as pa
import pytest

import trendloom as tl

EVENTS = pa.table(
    {
        "time": [1, 2, 3, 4, 5, 6],
        "type": ["A", "A", "C", "B", "A", "B"],
        "x": pa.array([3, 1, 2, None, 2, 3], pa.int64()),
    }
)


def rows(query: str, engine: str) -> list[dict[str, object]]:
    return tl.run(query, EVENTS, engine=engine, time_unit="s").to_pylist()


@pytest.mark.parametrize(
    "condition",
    [
        "a.x >= max(a[..i-1].x)",
        "a.x = sum(a[..i-1].x) + b.x",
        "NOT a.x >= min(a[..i-1].x)",
        "b.x + b[i-1].x > a.x",
        "b.x < a[i-1].x",
        "a.x > count(a[..i-1]) + 7",
    ],
)
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(A a, !(C c), B b)", "AND(A a, B b)"])
@pytest.mark.parametrize("window", ["", "WITHIN 3 s"])
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_condition_on_earlier_events_of_a_single_one_is_true(
    condition: str, pattern: str, window: str, engine: str
) -> None:
    query = f"RETURN TRENDS PATTERN {pattern} {{}} {window}"
    assert rows(query.format(f"WHERE {condition}"), engine) == rows(query.format(""), engine)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_the_same_inside_a_not(engine: str) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A a, !(C c), B b){}"
    assert rows(query.format(" WHERE c.x >= max(c[..i-1].x) + a.x"), engine) == rows(query.format(""), engine)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_single_variable(engine: str) -> None:
    assert [row["a.x"] for row in rows("PATTERN A a WHERE a.x >= max(a[..i-1].x) RETURN a.x", engine)] == [3, 1, 2]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_the_whole_of_a_single_event(engine: str) -> None:
    assert rows("PATTERN SEQ(A a, B b) WHERE a.x > avg(a[].x) RETURN a.x", engine) == []
