"""How Spark runs a query: little is read, one shuffle by key, one columnar Python call per task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.engines.spark import paths
from trendloom.spark import detect


@pytest.fixture
def parquet(spark: Any, tmp_path: Path) -> Any:
    table = pa.table(
        {
            "id": ["a1", "b2"],
            "type": ["A", "B"],
            "time": [1, 2],
            "x": [1, 2],
            "y": [0.5, None],
            "k": [1, 1],
            "g": ["u", "u"],
            "unused": ["-", "-"],
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")
    return spark.read.parquet(str(tmp_path / "events.parquet"))


def plan_of(df: Any, session_settings: Any) -> str:
    session_settings(maxMetadataStringLength="10000")
    return str(df._jdf.queryExecution().executedPlan().toString())


def scanned(plan: str) -> set[str]:
    found = re.search(r"ReadSchema: struct<([^>]*)>", plan)
    assert found is not None
    return {column.split(":")[0] for column in found.group(1).split(",")}


def pushed(plan: str) -> str:
    found = re.search(r"PushedFilters: \[(.*?)\], ReadSchema", plan)
    assert found is not None
    return found.group(1)


def test_only_needed_columns_are_read(parquet: Any, session_settings: Any) -> None:
    df = detect(parquet, "RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x")
    assert scanned(plan_of(df, session_settings)) == {"type", "time", "k", "x"}


def test_whole_events_need_every_column(parquet: Any, session_settings: Any) -> None:
    plan = plan_of(detect(parquet, "PATTERN SEQ(A a, B b)"), session_settings)
    assert "unused" in scanned(plan)


def test_filters_reach_the_file(parquet: Any, session_settings: Any) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > 0 AND (b.g = 'u' OR b.x IS NULL) AND b.x < 2 * a.x"
    filters = pushed(plan_of(detect(parquet, query), session_settings))
    assert "IsNotNull(k)" in filters
    assert "And(EqualTo(type,A),GreaterThan(x,0))" in filters
    assert "And(EqualTo(type,B),Or(EqualTo(g,u),IsNull(x)))" in filters
    assert "IsNull(time)" in filters  # so that the task sees missing times and refuses them


def test_contiguous_reads_every_type(parquet: Any, session_settings: Any) -> None:
    query = "PATTERN SEQ(A a, B b) SEMANTICS contiguous WHERE a.x > 0"
    plan = plan_of(detect(parquet, query), session_settings)
    assert pushed(plan) == ""


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("PATTERN SEQ(A a, B b) WHERE [k]", 1),
        ("PATTERN SEQ(A a, B b)", 1),
        ("RETURN k, COUNT(*) PATTERN SEQ(A a, B b) GROUP BY k WITHIN 10", 1),
        ("RETURN g, COUNT(*) PATTERN SEQ(A a, B b) WHERE [k] GROUP BY g", 2),
    ],
    ids=["by key", "one key", "group is the key", "group is coarser"],
)
def test_one_shuffle_and_one_call_per_stage(parquet: Any, session_settings: Any, query: str, stages: int) -> None:
    plan = plan_of(detect(parquet, query), session_settings)
    assert plan.count("Exchange ") == stages
    assert plan.count("MapInArrow ") == stages
    assert not re.search(r"FlatMapGroups|PythonUDF|BatchEvalPython|ArrowEvalPython|Sort ", plan)


def test_the_number_of_tasks_can_be_chosen(parquet: Any, session_settings: Any) -> None:
    df = detect(parquet, "PATTERN SEQ(A a, B b) WHERE [k]", partitions=7)
    assert re.search(r"Exchange hashpartitioning\(k#\d+L, 7\)", plan_of(df, session_settings))


class TestArrowBatches:
    KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"

    def test_larger_than_sparks_default(self, spark: Any, parquet: Any, session_settings: Any) -> None:
        session_settings(execution__arrow__maxRecordsPerBatch="10000")
        detect(parquet, "PATTERN A")
        assert spark.conf.get(self.KEY) == "100000"

    def test_a_chosen_size_stands(self, spark: Any, parquet: Any, session_settings: Any) -> None:
        session_settings(execution__arrow__maxRecordsPerBatch="5")
        assert detect(parquet, "PATTERN A").count() == 1
        assert spark.conf.get(self.KEY) == "5"


@pytest.mark.parametrize(
    "query",
    [
        "RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE [k] WITHIN 20 SLIDE 10",
        "RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 SLIDE 10",
        "PATTERN SEQ(A a, B b) WHERE [k]",
    ],
)
def test_detect_and_run_take_the_same_path_by_default(
    query: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [{"time": t, "type": "AB"[t % 2], "k": t % 3, "x": t} for t in range(200)]
    pq.write_table(pa.Table.from_pylist(events), tmp_path / "events.parquet", row_group_size=50)
    taken: list[str] = []
    attempt = paths._PathAttempt.on

    def noted(attempted: Any, path: Any) -> Any:
        found = attempt(attempted, path)
        taken.append(f"{path.value}: {'refused' if isinstance(found, str) else 'taken'}")
        return found

    monkeypatch.setattr(paths._PathAttempt, "on", noted)
    for source in (spark.read.parquet(str(tmp_path / "events.parquet")), str(tmp_path / "events.parquet")):
        ran = sorted(map(str, tl.run(query, source, engine="spark").to_pylist()))
        by_run, taken[:] = list(taken), []
        assert sorted(map(str, detect(source, query).toArrow().to_pylist())) == ran
        by_detect, taken[:] = list(taken), []
        assert by_run == by_detect
