"""Every query in examples/ runs over its events and finds what its comment promises."""

from __future__ import annotations

import bisect
import importlib.util
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.docs.blocks import ROOT
from tests.property.amounts import MORE

import trendloom as tl

EXAMPLES = ROOT / "examples"
# their events are elsewhere, or have no precise time
SPECIAL = (
    "nab", "demo_stream", "quickstart", "clock_drift", "trend_counts", "long_rises", "taxi_workload", "nesting",
    "loans", "ranking", "imprecise_time", "nab_monitors",
)  # fmt: skip
A_FEW = ("realAWSCloudwatch/iio_us-east-1_i-a2eb1cd9_NetworkIn", "realAWSCloudwatch/ec2_network_in_257a54")
WITH_EVENTS = sorted(path for path in EXAMPLES.glob("*.tql") if path.stem not in SPECIAL)


def found(name: str, engine: str = "local") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tl.run(
        (EXAMPLES / f"{name}.tql").read_text(), EXAMPLES / "events" / f"{name}.csv", engine=engine
    ).to_pylist()
    return rows


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real metrics: of a few servers, of all in a deep run."""
    path = EXAMPLES / "data" / "nab_metrics.parquet"
    if MORE:
        return path
    table = pq.read_table(path)
    some = tmp_path_factory.mktemp("metrics") / "metrics.parquet"
    pq.write_table(table.filter(pc.is_in(table["series"], pa.array(A_FEW))), some)
    return some


@pytest.fixture(scope="module")
def trend_counts(metrics: Path) -> ModuleType:
    found = program("trend_counts")
    found.METRICS = metrics  # type: ignore[attr-defined]
    return found


@pytest.fixture(scope="module")
def long_rises() -> ModuleType:
    return program("long_rises")


def ids(row: dict[str, Any]) -> list[str]:
    return [event["id"] for event in row["events"]]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.tql")), ids=lambda path: path.name)
def test_queries_are_sound_without_events(path: Path) -> None:
    assert tl.check(path.read_text()) == []


@pytest.mark.parametrize("path", WITH_EVENTS, ids=lambda path: path.name)
def test_queries_fit_their_events(path: Path) -> None:
    assert tl.check(path.read_text(), EXAMPLES / "events" / f"{path.stem}.csv") == []


def test_quickstart() -> None:
    rows = tl.run((EXAMPLES / "quickstart.tql").read_text(), EXAMPLES / "events.csv").to_pylist()
    assert [(row["tag_id"], row["shelf"], row["exit"]) for row in rows] == [(18, "A3", "south")]


def test_check_kites_gives_the_longest_chains_of_uncovered_checks() -> None:
    longest = max((ids(row) for row in found("check_kites")), key=len)
    assert longest == ["c1", "c2", "c4", "c6"]
    assert not any("c3" in ids(row) for row in found("check_kites"))  # covered


def test_heart_rate_equals_the_reference() -> None:
    rows = found("heart_rate")
    assert rows == found("heart_rate", "reference")
    assert {row["patient"] for row in rows} == {"ida", "otto"}


def test_trips_gives_windows_with_more_than_a_hundred() -> None:
    rows = found("trips")
    assert rows
    assert all(row["COUNT(*)"] > 100 for row in rows)


def test_load_imbalance_counts_ever_growing_loads() -> None:
    rows = found("load_imbalance")
    assert {row["task_id"] for row in rows} == {7}  # reducer 8 took more than ten minutes
    assert max(row["count(b[])"] for row in rows) == 3  # 0.10 0.20 0.25, or 0.10 0.15 0.25
    assert sum(row["count(b[])"] == 3 for row in rows) == 2


def test_shoplifting_forgives_what_was_paid_for_and_what_took_too_long() -> None:
    assert [(row["c.tag_id"], row["c.location"]) for row in found("shoplifting")] == [(41, "north"), (43, "south")]


def test_unsafe_tool_is_the_one_checked_before_it_was_disinfected() -> None:
    assert [ids(row) for row in found("unsafe_tool")] == [["scalpel-2"] * 3]


def test_big_spenders_are_ranked() -> None:
    rows = found("big_spenders")
    assert rows == found("big_spenders", "reference")
    for window in {row["window_start"] for row in rows}:
        scores = [row["score"] for row in rows if row["window_start"] == window]
        assert scores == sorted(scores, reverse=True)
    assert rows[0]["score"] == 120 + 20 + 200


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_clock_drift_keeps_what_is_likely(engine: str) -> None:
    text, events = (EXAMPLES / "clock_drift.tql").read_text(), EXAMPLES / "events" / "clock_drift.csv"
    rows = tl.run(text, events, engine=engine, time_low="low", time_high="high").to_pylist()
    assert [ids(row) for row in rows] == [["a1", "r1"], ["a1", "r2"]]
    assert rows[0]["confidence"] == pytest.approx(2 / 3)  # 6 of 9 pairs of times have the alarm first


def test_trend_counts_are_those_of_a_plain_program(trend_counts: ModuleType) -> None:
    rows = trend_counts.count("rising", "exact")
    assert len(rows) > (900 if MORE else 15)
    for row in rows[:: 97 if MORE else 5]:
        values = trend_counts.values_of(row["series"], row["window_start"])
        assert int(row["trends"]) == trend_counts.rising_pairs_or_longer(values)


def test_trend_counts_climb_without_a_gap(trend_counts: ModuleType) -> None:
    """A rising run of n values holds n (n - 1) / 2 climbs."""
    row = max(trend_counts.count("climbing", "exact"), key=lambda each: each["climbs"])
    values = [value for _, value in trend_counts.values_of(row["series"], row["window_start"])]
    climbs = length = 0
    for before, after in pairwise(values):
        length = length + 1 if before < after else 0
        climbs += length
    assert row["climbs"] == climbs


def test_the_longest_rise_is_the_longest_increasing_subsequence(long_rises: ModuleType, metrics: Path) -> None:
    (best, *_) = long_rises.longest(tl.run(long_rises.QUERIES, metrics, query="rises"))
    values = [
        row["value"]
        for row in pq.read_table(metrics).sort_by("time").to_pylist()
        if row["series"] == best["series"] and best["window_start"] <= row["time"] < best["window_end"]
    ]
    ends: list[float] = []  # the least value at which a rise of each length can end
    for value in values:
        at = bisect.bisect_left(ends, value)
        ends[at : at + 1] = [value]
    assert len(best["events"]) == len(ends) == (27 if MORE else 18)


def test_ways_to_twice_the_value_unfold(long_rises: ModuleType, metrics: Path) -> None:
    (best, *_) = long_rises.most_ways(tl.run(long_rises.QUERIES, metrics, query="doubled"))
    matches = tl.expand(long_rises.QUERIES, best, query="doubled")
    assert sum(batch.num_rows for batch in matches) == best["matches"] == (2**10 - 1 if MORE else 767)


TAXI = (EXAMPLES / "taxi_workload.tql").read_text()
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taxi") / "trips.parquet"
    program("taxi_trips").main(str(path))
    return path


@pytest.fixture(scope="module")
def taxi(trips: Path) -> Rows:
    """The rows of each query, without columns of others."""
    rows: Rows = {}
    for row in tl.run(TAXI, trips).to_pylist():
        rows.setdefault(row.pop("query"), []).append(known(row))
    return rows


def known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def taxi_events(trips: Path, type: str, zone: int | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(trips).to_pylist()
    return [row for row in rows if row["type"] == type and zone in (None, row["zone"])]


def test_made_up_trips_are_always_the_same_and_have_rough_edges(trips: Path) -> None:
    events = pq.read_table(trips)
    assert program("taxi_trips").made_up_trips().equals(events)
    assert pc.count_distinct(events["trip"]).as_py() * 2 == len(events)
    assert events["passengers"].null_count > 0
    assert events["fare"].null_count == len(events) // 2
    begins = {row["trip"]: row["time"] for row in taxi_events(trips, "Pickup")}
    lasts = [row["time"] - begins[row["trip"]] for row in taxi_events(trips, "Dropoff")]
    assert min(lasts) == timedelta(0)
    assert max(lasts) > timedelta(hours=20)


def test_thirty_queries_on_taxi_trips_find_something(taxi: Rows, trips: Path) -> None:
    assert tl.check(TAXI, trips) == []
    assert len(taxi) == 30


def test_together_taxi_queries_find_what_each_finds_alone(taxi: Rows, trips: Path) -> None:
    for name in list(taxi) if MORE else ("jfk_to_the_north", "times_square_uptown_north", "fares_around_uptown"):
        alone = tl.run(TAXI, trips, query=name).drop_columns("query").to_pylist()
        assert list(map(known, alone)) == taxi[name]


def test_chains_of_trips_are_those_of_a_plain_program(taxi: Rows, trips: Path) -> None:
    """A pickup at JFK and a later dropoff in Midtown, of one vendor, in one window of two hours."""
    wanted: dict[tuple[int, datetime], int] = {}
    in_midtown = taxi_events(trips, "Dropoff", 161)
    for a in taxi_events(trips, "Pickup", 132):
        window = a["time"].replace(hour=a["time"].hour // 2 * 2, minute=0, second=0)
        end = window + timedelta(hours=2)
        later = [b for b in in_midtown if b["vendor"] == a["vendor"] and a["time"] < b["time"] < end]
        if later:
            wanted[a["vendor"], window] = wanted.get((a["vendor"], window), 0) + len(later)
    found = {(row["vendor"], row["window_start"]): row["chains"] for row in taxi["jfk_midtown"]}
    assert found == wanted


def test_trips_from_jfk_begin_and_end_on_one_day(taxi: Rows, trips: Path) -> None:
    ends = {row["trip"]: row["time"] for row in taxi_events(trips, "Dropoff")}
    begins = [(row["time"], ends[row["trip"]]) for row in taxi_events(trips, "Pickup", 132)]
    whole = [begin for begin, end in begins if begin < end and begin.date() == end.date()]
    assert sum(row["trips"] for row in taxi["from_jfk"]) == len(whole) > 250
