"""Trends on Spark: the rows of the local engine, limits inside tasks, and progress while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.unit.runtime.test_trend_limits import chain_of_choices

import trendloom as tl
from trendloom.engines.answers import Watch, answers
from trendloom.engines.spark import answers as counting
from trendloom.errors import RunError
from trendloom.options import Options
from trendloom.spark import detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KITES = "PATTERN Check c+ WHERE [region] AND c.destination = NEXT(c).source"
COMPLETE = f"RETURN COMPLETE TRENDS {KITES}"


def regions(count: int, choices: int) -> pa.Table:
    """The same chain of choices in several regions."""
    chain = chain_of_choices(choices)
    named = [chain.append_column("region", pa.array([f"r{n}"] * len(chain))) for n in range(count)]
    return pa.concat_tables(named)


def listed(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("query", [COMPLETE, f"{COMPLETE} WITHIN 3 SLIDE 1", f"{COMPLETE} WITHIN 3"])
def test_complete_trends_of_every_partition(spark: SparkSession, query: str) -> None:
    events = regions(5, 4)
    found = detect(spark.createDataFrame(events.to_pandas()), query, memory_limit="1M", partitions=3).toArrow()
    assert listed(found) == listed(tl.run(query, events, engine="local"))


def test_a_task_refuses_more_trends_than_allowed(spark: SparkSession) -> None:
    with pytest.raises(RunError, match=r"there are (81|162) matches, more than 80 to give out") as caught:
        tl.run(COMPLETE, regions(2, 4), engine="spark", max_trends=80)
    assert "limit=1000" in (caught.value.hint or "")


def test_the_limit_stops_every_task(spark: SparkSession) -> None:
    assert tl.run(COMPLETE, regions(3, 14), engine="spark", limit=5).num_rows == 5


def test_collapsed_trends(spark: SparkSession) -> None:
    query = f"RETURN COLLAPSED TRENDS {KITES}"
    events = regions(3, 3)
    found = tl.run(query, events, engine="spark")
    expected = tl.run(query, events, engine="local")
    assert [int(number) for number in found["matches"].to_pylist()] == expected["matches"].to_pylist()


def test_collapsed_trends_may_stand_for_more_matches_than_can_be_listed(spark: SparkSession) -> None:
    events = pa.table({"type": ["A", *["B"] * 100, "C"], "time": range(102)})
    (row,) = tl.run("RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], C c)", events, engine="spark").to_pylist()
    assert row["matches"] == 2**100 - 1
    assert len(row["events"]) == 102


def test_matches_are_counted_while_tasks_run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LOOK_EVERY", 0.01)
    seen: list[int] = []
    (answer,) = answers(COMPLETE, regions(4, 9), Options(engine="spark"), Watch(progress=seen.append))
    rows = sum(batch.num_rows for batch in answer.batches)
    assert rows == 4 * 3**9
    assert seen == sorted(seen)
    assert seen[-1] == rows
