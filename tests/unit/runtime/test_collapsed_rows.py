"""Rows of collapsed trends: how wide `matches` is, in which order events of one time stand, limits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.engines.answers import Watch, answers, table_of
from trendloom.errors import RunError
from trendloom.io.write import json_lines
from trendloom.options import Options
from trendloom.runtime.match_rows import integers_as
from trendloom.runtime.result_columns import EXACT_ON_SPARK

QUERY = "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[])"


def events(size: int) -> pa.Table:
    return pa.table({"type": ["A"] + ["B"] * size, "time": list(range(size + 1))})


@pytest.mark.parametrize(
    ("size", "wide"),
    [
        (63, pa.int64()),
        (64, pa.decimal128(38, 0)),
        (126, pa.decimal128(38, 0)),
        (127, pa.decimal256(76, 0)),
        (300, pa.string()),
    ],
)
def test_numbers_are_as_wide_as_they_need(size: int, wide: pa.DataType) -> None:
    found = tl.run(QUERY, events(size))
    assert found.schema.field("matches").type == wide
    assert int(found["matches"][0].as_py()) == 2**size - 1


def test_text_is_written_as_a_number() -> None:
    (line,) = json_lines(tl.run(QUERY, events(300)).to_batches()[-1])
    assert line.endswith(f"{2**300 - 1}}}")


def test_no_row_has_columns_all_the_same() -> None:
    assert tl.run(QUERY, events(0)).schema == tl.run(QUERY, events(0), engine="reference").schema


def test_a_number_that_does_not_fit_spark_is_refused() -> None:
    assert integers_as(np.array([10**38 - 1], object), EXACT_ON_SPARK)[0].as_py() == 10**38 - 1
    with pytest.raises(RunError, match=r"more matches than DECIMAL\(38,0\) can hold") as caught:
        integers_as(np.array([10**38], object), EXACT_ON_SPARK)
    assert "smaller window" in str(caught.value.hint)


def test_events_of_one_time_stand_in_the_order_of_their_values() -> None:
    table = pa.table(
        {
            "type": ["A", "B", "B", "B", "B", "B"],
            "time": [0, 1, 1, 1, 1, 2],
            "s": ["a", "z", None, "b", "b", "a"],
            "y": [0.0, 1.0, 2.0, 3.0, None, 1.0],
            "tags": [[1], [2], [3], [4], [5], [6]],
        }
    )
    found = tl.run(QUERY, table)
    assert [event["s"] for event in found["events"][0].as_py()] == ["a", None, "b", "b", "z", "a"]
    for order in ([5, 4, 3, 2, 1, 0], [2, 0, 4, 1, 5, 3]):
        assert tl.run(QUERY, table.take(pa.array(order))).equals(found)
    assert found.equals(tl.run(QUERY, table, engine="reference"))


def test_limit_and_progress() -> None:
    table = pa.table({"type": list("AAAABBB"), "time": list(range(7))})
    told: list[int] = []
    found = table_of(answers(QUERY, table, Options(limit=3), Watch(progress=told.append)))
    assert found.num_rows == 3
    assert told[-1] == 3


def test_columns_that_are_all_null() -> None:
    table = pa.table({"type": list("ABB"), "time": [0, 1, 2], "n": pa.nulls(3)})
    (row,) = tl.run(QUERY, table).to_pylist()
    assert row["matches"] == 3
    assert tl.run("PATTERN SEQ(A a, B+ b[])", table).num_rows == 3
