"""An algorithm is added by an `Algorithm` and a kernel, from outside the package: chosen, explained, run everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.property.compare import rows_of
from tests.unit.engines.toy_kernel import Toy

import trendloom as tl
from trendloom.pattern.algebra import Atom
from trendloom.planner import plan
from trendloom.planner.aggregation import measures_of
from trendloom.planner.algorithms import ALGORITHMS
from trendloom.planner.request import Algorithm, Choice, PlanningRequest, Refusal, RefusalCode
from trendloom.spark import detect

QUERY = "RETURN k, COUNT(*) AS total PATTERN A a WHERE [k] GROUP BY k WITHIN 10 SLIDE 4"
DDL = "type string, time long, k long"


def consider(wanted: PlanningRequest) -> Choice | Refusal:
    if not wanted.aggregates or not isinstance(wanted.plan.pattern, Atom) or not wanted.plan.window.sliding:
        return Refusal(RefusalCode.OUTPUT, "it counts single events in windows")
    (measure,) = measures_of(wanted.plan)
    return Choice(Toy(wanted.plan.window, measure.name), "toy: add ones", "a match is one event", "O(events)", "sums")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "ALGORITHMS", (Algorithm("toy", consider), *ALGORITHMS))


def events(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {"type": ["AAB"[n % 3] for n in numbers], "time": [n // 2 for n in numbers], "k": [n % 4 for n in numbers]}
    )


EVENTS = events(0, 200)


def expected() -> list[Any]:
    return rows_of(tl.run(QUERY, EVENTS, engine="reference"))


def test_it_is_chosen_and_explained() -> None:
    told = tl.explain(QUERY, EVENTS, engine="local")
    assert "toy: add ones" in told
    assert "a match is one event" in told
    assert "toy" not in tl.explain(QUERY.replace("A a", "SEQ(A a, B b)"), EVENTS, engine="local")


def test_it_runs_in_one_process() -> None:
    assert rows_of(tl.run(QUERY, EVENTS)) == expected()


def test_it_runs_on_spark(spark: Any) -> None:
    assert rows_of(detect(spark.createDataFrame(EVENTS), QUERY).toArrow()) == expected()
    assert rows_of(tl.run(QUERY, EVENTS, engine="spark")) == expected()


def test_it_runs_on_a_live_stream_over_a_restart(spark: Any, tmp_path: Path) -> None:
    source, found = tmp_path / "source", dict[int, pa.Table]()
    source.mkdir()
    ends = pa.table({"type": ["Z"], "time": [10_000], "k": [0]})
    for number, part in enumerate([events(0, 90), pa.concat_tables([events(90, 200), ends])]):
        pq.write_table(part, source / f"{number}.parquet")
        df = spark.readStream.schema(DDL).parquet(str(source))
        rows = detect(df, QUERY, watermark="2 seconds", buckets=2, checkpoint=str(tmp_path / "state"))
        running = (
            rows.writeStream.option("checkpointLocation", str(tmp_path / "state"))
            .foreachBatch(lambda batch, epoch: found.update({epoch: batch.toArrow()}))
            .trigger(availableNow=True)
            .start()
        )
        running.awaitTermination()
    assert len(found) > 1
    told = [row for table in found.values() for row in table.to_pylist()]
    assert rows_of(told) == expected()
