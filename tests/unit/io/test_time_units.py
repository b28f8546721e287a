"""Whole numbers of time without a unit: doubted where they hardly count seconds, and only there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.io.events import prepare

SECONDS = 1_522_627_200  # 2018-04-02


def stream(times: list[int]) -> pa.Table:
    return pa.table({"time": pa.array(times, pa.int64()), "type": ["A"] * len(times)})


def told(times: list[int], unit: str | None = None) -> list[str]:
    return [str(warning) for warning in prepare(stream(times), time_unit=unit).warnings]


@pytest.mark.parametrize(
    ("scale", "name", "way_out"),
    [
        (10**3, "milliseconds", 'time_unit="ms"'),
        (10**6, "microseconds", 'time_unit="us"'),
        (10**9, "nanoseconds", 'divide them by 1000 and write time_unit="us"'),
    ],
)
def test_times_of_the_size_of_an_epoch(scale: int, name: str, way_out: str) -> None:
    (warning,) = told([SECONDS * scale, SECONDS * scale + 5, 0])  # one that is missing, written as 0, changes nothing
    assert f"look like {name} since 1970" in warning
    assert "2018-04-02" in warning
    assert way_out in warning


@pytest.mark.parametrize("times", [[20240131, 20240201], [20240131120000, 20240131120001]])
def test_dates_written_as_numbers(times: list[int]) -> None:
    (warning,) = told(times)
    assert "look like dates written as numbers" in warning


@pytest.mark.parametrize(
    "times",
    [[], [1, 2, 3], [-5, 0], [SECONDS, SECONDS + 10], [20240131, 20241331], list(range(0, 4 * 10**11, 10**10))],
    ids=["none", "small", "negative", "seconds", "no month 13", "a clock that starts at 0"],
)
def test_times_that_may_well_count_seconds(times: list[int]) -> None:
    assert told(times) == []


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_unit_that_is_given_is_believed(unit: str) -> None:
    assert told([SECONDS * 1000], unit) == []


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint32(), pa.uint64()])
def test_integers_of_every_width(kind: pa.DataType) -> None:
    table = pa.table({"time": pa.array([20240131], kind), "type": ["A"]})
    assert len(prepare(table).warnings) == 1


def test_run_check_and_explain_say_it(tmp_path: Path) -> None:
    table = stream([SECONDS * 1000 + at for at in range(3)])
    pq.write_table(table, tmp_path / "events.parquet")
    query = "RETURN COUNT(*) PATTERN A WITHIN 10 min"
    for events in (table, tmp_path / "events.parquet"):
        (warning,) = tl.check(query, events)
        assert "look like milliseconds" in warning.message
        assert tl.check(query, events, time_unit="ms") == []
        assert "-- the times in column 'time' look like milliseconds" in tl.explain(query, events)
        for engine in ("local", "reference"):
            with pytest.warns(UserWarning, match="look like milliseconds"):
                tl.run(query, events, engine=engine)


def test_bounds_of_imprecise_times() -> None:
    times = pa.array(np.array([SECONDS]) * 1000)
    table = pa.table({"low": times, "high": times, "type": ["A"]})
    (warning,) = prepare(table, time_low="low", time_high="high").warnings
    assert "column 'low'" in warning.message
