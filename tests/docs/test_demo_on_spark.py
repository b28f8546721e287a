"""The demo's pipeline on a slice of its data: its events are right, and Spark finds what the local engine finds."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import QUICK_SPARK
from tests.docs.blocks import ROOT

import trendloom as tl
from trendloom.frontend.tql.parser import parse
from trendloom.spark import detect

SERIES = ("rds_cpu_utilization_e47b3b", "ec2_network_in_5abac7", "ec2_disk_write_bytes_1ef3de")
WORKLOAD = (ROOT / "examples" / "nab.tql").read_text()


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def measured(demo: ModuleType, spark: Any) -> Any:
    every = demo.clean(spark.read.parquet(str(demo.METRICS)))
    return every.filter(every.series.isin(*SERIES)).cache()


@pytest.fixture(scope="module")
def events(demo: ModuleType, measured: Any, spark: Any) -> Any:
    """Windows of a day over thousands of values are worth the Java code that other tests do without."""
    found = demo.derive_events(measured).cache()
    before = {name: spark.conf.get(name) for name in QUICK_SPARK}
    for name in QUICK_SPARK:
        spark.conf.unset(name)
    found.count()
    for name, value in before.items():
        spark.conf.set(name, value)
    return found


@pytest.fixture(scope="module")
def table(events: Any) -> pa.Table:
    found: pa.Table = events.toArrow()
    return found


def counted(rows: pa.Table) -> Counter[str]:
    return Counter(repr(sorted(row.items(), key=lambda item: item[0])) for row in rows.to_pylist())


def test_events_follow_from_the_values(demo: ModuleType, measured: Any, table: pa.Table) -> None:
    values = sorted((row.time, row.value) for row in measured.filter(measured.series == SERIES[0]).collect())
    named = Counter((event["time"], event["type"]) for event in table.to_pylist() if event["series"] == SERIES[0])
    out_before = False
    for number, (time, value) in enumerate(values):
        day = [each for _, each in values[max(0, number - demo.DAY - demo.HOUR) : max(0, number - demo.HOUR)]]
        out = len(day) >= demo.DAY // 2 and far(value, day, demo.FAR)
        before = values[number - 1][1] if number else value
        level = ("Out" if out_before else "Jump") if out else "Normal"
        move = "Rise" if value > before else "Fall" if value < before else "Steady"
        assert named[time, level] == 1, (time, level)
        assert named[time, move] == 1, (time, move)
        out_before = out
    assert sum(named.values()) == 2 * len(values)


def far(value: float, day: list[float], limit: float) -> bool:
    mean = sum(day) / len(day)
    spread = max((sum((each - mean) ** 2 for each in day) / len(day)) ** 0.5, 0.02 * abs(mean))
    return spread > 0 and round(abs(value - mean) / spread, 2) >= limit


@pytest.mark.parametrize("name", [query.name for query in parse(WORKLOAD)])
def test_spark_finds_what_the_local_engine_finds(name: str, events: Any, table: pa.Table) -> None:
    on_spark = detect(events, WORKLOAD, query=name).toArrow()
    local = tl.run(WORKLOAD, table, query=name).drop_columns(["query"])
    assert counted(on_spark.cast(local.schema)) == counted(local)
    assert local.num_rows > 0


def test_the_outages_are_those_of_the_readme(events: Any) -> None:
    rows = detect(events, WORKLOAD, query="outages").filter(f"series = '{SERIES[0]}'").orderBy("since").collect()
    minutes = "%Y-%m-%d %H:%M"
    lines = [
        f"| {SERIES[0]} | {row.since:{minutes}} | {row.until:{minutes}} | {row.values_out} | {row.mean_deviation:.2f} |"
        for row in rows
    ]
    assert len(lines) == 3
    assert "\n".join(lines) in (ROOT / "README.md").read_text()


def test_the_events_are_those_of_the_readme(table: pa.Table) -> None:
    readme = (ROOT / "README.md").read_text()
    lines = [
        f"| {e['time']:%Y-%m-%d %H:%M} | {e['type']} | {e['series']} | {e['value']:.3f} | {e['deviations']:.2f} |"
        for e in table.to_pylist()
    ]
    assert sum(line in readme for line in lines) == 5


def test_pictures_are_drawn(demo: ModuleType, events: Any, table: pa.Table, tmp_path: Path) -> None:
    demo.draw(table, detect(events, WORKLOAD, query="outage_events").toArrow(), WORKLOAD, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"pattern.svg", "pattern.png", "matches.svg", "matches.png"}
    assert "3 matches" in (tmp_path / "matches.svg").read_text()
    assert "NOT Normal" in (tmp_path / "pattern.svg").read_text()
