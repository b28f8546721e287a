"""The queries over a simulated cluster find what a plain program finds that tries all points of time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.docs.test_examples import EXAMPLES, program

import trendloom as tl

QUERIES = (EXAMPLES / "imprecise_time.tql").read_text()
ERRORS = {"Load": 7.5, "TaskStart": 0.5, "TaskEnd": 0.5}
GRAIN = 0.5
IMPRECISE = {"time_error": "Load=7.5s,TaskStart=0.5s,TaskEnd=0.5s", "time_grain": "500ms"}
RISE = 4

Row = dict[str, Any]
Key = tuple[Any, ...]


@pytest.fixture(scope="module")
def log() -> pa.Table:
    events: pa.Table = program("cluster_load").cluster_log()
    return events


def found(name: str, log: pa.Table) -> list[Row]:
    rows: list[Row] = tl.run(QUERIES, log, query=name, **IMPRECISE).to_pylist()  # type: ignore[arg-type]
    return rows


def points(row: Row) -> range:
    """The half seconds at which an event may have happened."""
    seconds, error = (row["time"] - datetime(2024, 1, 1)).total_seconds(), ERRORS[row["type"]]
    return range(int((seconds - error) // GRAIN), int((seconds + error) // GRAIN) + 1)


def share(hold: Any, *events: Row) -> Fraction:
    """The share of all choices of points for which something holds."""
    choices = list(product(*map(points, events)))
    return Fraction(sum(map(hold, choices)), len(choices))


def by_node(log: pa.Table) -> dict[str, dict[str, list[Row]]]:
    nodes: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in log.to_pylist():
        nodes[row["node"]][row["type"]].append(row)
    return nodes


def runs_at_rises(log: pa.Table) -> dict[Key, Fraction]:
    """By node, task and time of the sample: how likely the task was running at a rise."""
    likely: dict[Key, Fraction] = {}
    for node, events in by_node(log).items():
        ends = {row["task"]: row for row in events["TaskEnd"]}
        rises = [row for row in events["Load"] if row["rise"] >= RISE]
        for start, load in product(events["TaskStart"], rises):
            if start["task"] in ends:  # a task takes two minutes at most, which WITHIN allows
                end = ends[start["task"]]
                likely[node, start["task"], load["time"]] = share(lambda t: t[0] < t[1] < t[2], start, load, end)
    return likely


def test_a_log_is_always_the_same_and_has_heavy_tasks(log: pa.Table) -> None:
    assert program("cluster_load").cluster_log().equals(log)
    assert sum(row["rise"] >= RISE for row in log.to_pylist() if row["type"] == "Load") > 10


def test_tasks_that_were_running_when_load_rose(log: pa.Table) -> None:
    expected = {key: chance for key, chance in runs_at_rises(log).items() if chance >= Fraction(1, 10)}
    rows = found("running_when_load_rose", log)
    shown = {(row["node"], row["events"][0]["task"], row["events"][1]["time"]): row["confidence"] for row in rows}
    assert shown == pytest.approx({key: float(chance) for key, chance in expected.items()}, rel=1e-12)
    assert len(shown) == len(rows) > 20
    assert 0 < sum(confidence < 1 for confidence in shown.values()) < len(shown)


def test_expected_counts_are_sums_of_confidences(log: pa.Table) -> None:
    total = sum(row["tasks"] for row in found("expected_at_rises", log))
    everything = float(sum(runs_at_rises(log).values()))
    assert 0 < total < everything  # tasks across a quarter of an hour are in no window
    assert total > 0.8 * everything


def test_the_last_start_before_a_rise_is_mostly_a_heavy_task(log: pa.Table) -> None:
    rows = found("started_last_before_rise", log)
    likely = [row for row in rows if row["confidence"] >= 0.5]
    assert len(likely) >= 8
    assert sum("-h" in row["s.task"] for row in likely) >= 0.8 * len(likely)


def test_a_start_and_a_rise_in_a_minute_with_one_of_each(log: pa.Table) -> None:
    """Where one start and one rise may lie in a minute, the chance of a match is that of the pair."""
    rows = {(row["node"], row["window_start"]): row["likely"] for row in found("start_and_rise", log)}
    tested = 0
    for (node, begin), likely in rows.items():
        low = int((begin - datetime(2024, 1, 1)).total_seconds() / GRAIN)
        window = range(low, low + 120)
        events = by_node(log)[node]
        starts = [row for row in events["TaskStart"] if set(points(row)) & set(window)]
        rises = [row for row in events["Load"] if row["rise"] >= RISE and set(points(row)) & set(window)]
        if len(starts) == len(rises) == 1:
            pair = share(lambda t, low=low: low <= t[0] < t[1] < low + 120, starts[0], rises[0])
            assert likely == pytest.approx(float(pair), rel=1e-12)
            tested += 1
    assert tested
