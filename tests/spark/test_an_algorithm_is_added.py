"""An algorithm is added by an `Algorithm` and a kernel, from outside the package: chosen, explained, run everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.property.compare import rows_of
from tests.unit.engines.toy_kernel import Loud, Toy

import trendloom as tl
from trendloom.pattern.algebra import Atom
from trendloom.planner import plan
from trendloom.planner.algorithms import ALGORITHMS
from trendloom.planner.measures import measures_of
from trendloom.planner.request import Algorithm, Choice, PlanningRequest, Refusal, RefusalCode
from trendloom.spark import detect

QUERY = "RETURN k, COUNT(*) AS total PATTERN A a WHERE [k] GROUP BY k WITHIN 10 SLIDE 4"
DDL = "type string, time long, k long"


def consider(wanted: PlanningRequest) -> Choice | Refusal:
    if not wanted.aggregates or not isinstance(wanted.plan.pattern, Atom) or not wanted.plan.window.sliding:
        return Refusal(RefusalCode.OUTPUT, "it counts single events in windows")
    (measure,) = measures_of(wanted.plan)
    return Choice(Toy(wanted.plan.window, measure.name), "toy: add ones", "a match is one event", "O(events)", "sums")


def consider_loud(wanted: PlanningRequest) -> Choice | Refusal:
    if wanted.aggregates or wanted.plan.ranking or not isinstance(wanted.plan.pattern, Atom):
        return Refusal(RefusalCode.OUTPUT, "it finds single events")
    return Choice(Loud(wanted.pattern_spec), "loud: say how loud", "a match is one event", "O(events)", "rows")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    added = Algorithm("toy", consider), Algorithm("loud", consider_loud)
    monkeypatch.setattr(plan, "ALGORITHMS", (*added, *ALGORITHMS))


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


ROWS = "RETURN a.k AS who PATTERN A a WITHIN 10"
LOUD = {"who": [n % 4 for n in range(8) if n % 3 < 2], "time": [n // 2 for n in range(8) if n % 3 < 2]}


def loud_rows() -> list[Any]:
    """What the kernel gives of the first eight events: the last is heard first."""
    rows = [(who, time / 2, -time) for who, time in zip(*LOUD.values(), strict=True)]
    return sorted(rows, key=lambda row: row[2])


def told(table: pa.Table) -> list[Any]:
    assert table.column_names[-3:] == ["who", "loudness", "heard"]
    return list(zip(*(table[name].to_pylist() for name in ("who", "loudness", "heard")), strict=True))


def test_columns_that_it_adds_are_in_its_rows_and_sort_them() -> None:
    assert told(tl.run(ROWS, events(0, 8))) == loud_rows()


def test_columns_that_it_adds_are_in_its_rows_on_spark(spark: Any) -> None:
    frame = spark.createDataFrame(events(0, 8))
    assert sorted(told(detect(frame, ROWS).toArrow())) == sorted(loud_rows())
    assert sorted(told(tl.run(ROWS, events(0, 8), engine="spark"))) == sorted(loud_rows())
