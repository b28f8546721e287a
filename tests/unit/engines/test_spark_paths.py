"""The logic of the paths through Spark, without Spark: what overlaps, what travels, who owns which window."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.engines.toy_kernel import Toy

import trendloom as tl
from trendloom.engines.spark.plan_steps import Path, obstacle, ways
from trendloom.engines.spark.reduce import InputPart, RowGroup, Zones, contested, multiplied, reduce_batches, shares
from trendloom.engines.spark.tasks import Job
from trendloom.engines.spark.time_cut import segments_of
from trendloom.errors import RunError
from trendloom.kernels.contract import PANE
from trendloom.logical.bind import bind
from trendloom.model.time import Window
from trendloom.options import Options
from trendloom.runtime.aggregates import finish_aggregates
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of

WINDOW = "WITHIN 20 seconds SLIDE 5 seconds"
MEASURES = "COUNT(*), COUNT(B), SUM(A.n), MIN(B.x), MAX(A.n), AVG(B.x)"
BY_KEY = f"RETURN key, {MEASURES} PATTERN SEQ(A+, B) WHERE [key] GROUP BY key {WINDOW}"
TOGETHER = f"RETURN {MEASURES} PATTERN SEQ(A+, NOT C, B) WHERE [key]"
NO_KEY = f"RETURN {MEASURES} PATTERN SEQ(A, B+) {WINDOW}"
CONTIGUOUS = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) SEMANTICS contiguous WHERE [key] GROUP BY key"
COMPARED = f"RETURN COUNT(*) PATTERN A+ WHERE A.x < NEXT(A).x {WINDOW}"


# ---------------------------------------------------------------------------------------------- overlaps


def test_parts_one_after_the_other_contest_nothing() -> None:
    assert contested([InputPart(5, 9, 1), InputPart(0, 4, 1)]) == Zones()


def test_parts_that_touch_contest_one_tick() -> None:
    assert contested([InputPart(0, 5, 1), InputPart(5, 9, 1)]) == Zones((5,), (5,))


@pytest.mark.parametrize("seed", range(30))
def test_contested_ticks_are_those_of_two_parts(seed: int) -> None:
    made = random.Random(seed)
    lows = [made.randrange(-20, 40) for _ in range(made.randrange(1, 7))]
    parts = [InputPart(low, low + made.choice([0, 1, 5, 30]), 1) for low in lows]
    zones = contested(parts)
    ticks = np.arange(-25, 80)
    covered = np.array([sum(part.first <= tick <= part.last for part in parts) for tick in ticks.tolist()])
    assert (zones.of(ticks) % 2 == 1).tolist() == (covered > 1).tolist()
    assert (np.diff(zones.of(ticks)) >= 0).all()
    assert zones.of(ticks).max() < len(zones)


def test_the_share_of_contested_events_counts_events_not_parts() -> None:
    parts = [InputPart(0, 9, 900), InputPart(5, 14, 100)]
    assert contested(parts).share(parts) == pytest.approx(0.5)
    assert contested(parts[:1]).share(parts[:1]) == 0


# ------------------------------------------------------------------------------------- reduce and multiply


def events(rows: int, seed: int) -> pa.Table:
    made = np.random.default_rng(seed)
    keys = [None if key == 3 else 0.0 if key == 2 else float(key) for key in made.integers(0, 4, rows).tolist()]
    return pa.table(
        {
            "time": np.sort(made.integers(-30, 30, rows)),
            "type": np.array(["A", "B", "C"])[made.integers(0, 3, rows)],
            "key": pa.array([-0.0 if key == 0 and at % 2 else key for at, key in enumerate(keys)], pa.float64()),
            "x": pa.array([None if x < 1 else x / 4 for x in made.integers(0, 9, rows).tolist()], pa.float64()),
            "n": made.integers(-9, 9, rows),
        }
    )


def job_of(query: str, table: pa.Table, numeric: str = "exact") -> Job:
    (parsed,) = queries_of(query)
    physical = plan_query(bind(parsed, load(table, Options()).schema))
    schema = pa.schema([table.schema.field(name) for name in physical.plan.scan.columns])
    return Job(physical, schema, numeric, None, False)


def by_paths(job: Job, parts: list[pa.Table], zones: Zones | None = None) -> tuple[Any, pa.Table]:
    """What tasks over these parts send, and the rows that one task makes of it."""
    known = [InputPart(min(times), max(times), len(part)) for part in parts if (times := part["time"].to_pylist())]
    found = contested(known) if zones is None else zones
    sent = [
        batch
        for part in parts
        for batch in reduce_batches(found, job, iter(part.select(job.schema.names).combine_chunks().to_batches()))
    ]
    partial = multiplied(job, iter(sent))
    assert partial is not None
    return sent, finish_aggregates(job.plan, job.schema, partial, job.numeric, spark=False)


def rows_of(table: pa.Table) -> list[str]:
    """Rows in any order; doubles are rounded, since products of matrices round in another order than sums."""
    return sorted(str([_rounded(value) for value in row.values()]) for row in table.to_pylist())


def _rounded(value: Any) -> str:
    return f"{value + 0.0:.10g}" if isinstance(value, float) else str(value)


def parts_of(table: pa.Table, count: int, *, shuffled: bool) -> list[pa.Table]:
    order = np.random.default_rng(1).permutation(len(table)) if shuffled else np.arange(len(table))
    return [table.take(pa.array(rows)) for rows in np.array_split(order, count)]


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("query", [BY_KEY, TOGETHER, NO_KEY, CONTIGUOUS])
def test_reduced_parts_give_what_the_whole_gives(query: str, count: int, shuffled: bool) -> None:
    table = events(300, seed=count)
    _, found = by_paths(job_of(query, table), parts_of(table, count, shuffled=shuffled))
    assert rows_of(found) == rows_of(tl.run(query, table))


def test_matrices_beyond_two_words_travel_exactly() -> None:
    table = pa.table({"time": range(600), "type": ["A"] * 600, "key": [1.0] * 600})
    sent, found = by_paths(job_of("RETURN COUNT(*) PATTERN A+", table), parts_of(table, 3, shuffled=False))
    assert [int(value) for value in found["COUNT(*)"].to_pylist()] == [2**600 - 1]
    assert sum(batch.num_rows for batch in sent) == 3


def test_few_events_per_matrix_travel_as_events() -> None:
    table = events(300, seed=1).set_column(0, "time", pa.array(range(0, 3000, 10)))
    sent, found = by_paths(job_of(BY_KEY, table), parts_of(table, 2, shuffled=False))
    assert all(batch.column(PANE).null_count == batch.num_rows for batch in sent)
    assert rows_of(found) == rows_of(tl.run(BY_KEY, table))


def test_parts_that_overlap_against_what_was_said_are_refused() -> None:
    table = events(300, seed=1)
    with pytest.raises(RunError, match="divided differently"):
        by_paths(job_of(NO_KEY, table), parts_of(table, 2, shuffled=True), Zones())


# ---------------------------------------------------------------------------------------------------- cuts


@pytest.mark.parametrize("slide", [1, 5, 20, 33])
@pytest.mark.parametrize("wanted", [1, 2, 7])
def test_every_window_has_one_owner_and_segments_are_as_long_as_windows(slide: int, wanted: int) -> None:
    window = Window(20, slide)
    segments = segments_of(window, -100, 312, wanted)
    numbers = np.arange((-100 - 20) // slide + 1, 312 // slide + 1)
    owners = segments.owner(numbers * slide, window)
    assert owners.min() == 0
    assert owners.max() == segments.count - 1 < wanted
    assert segments.width * slide >= 20


def test_row_groups_go_to_tasks_in_order_and_evenly() -> None:
    groups = [RowGroup("f", at, InputPart(at, at, 10)) for at in range(10)]
    divided = shares(groups, 4)
    assert [group for share in divided for group in share] == groups
    assert {len(share) for share in divided} == {2, 3}


# ------------------------------------------------------------------------------------------ what queries allow


def test_the_query_says_which_paths_are_possible() -> None:
    table = events(10, seed=1)

    def paths(query: str) -> list[Path]:
        return [way.path for way in ways(job_of(query, table).physical)]

    assert paths(BY_KEY) == [Path.DIRECT, Path.REDUCED, Path.GENERAL]
    assert paths(COMPARED) == [Path.CUT, Path.GENERAL]
    assert paths(COMPARED.replace(WINDOW, "")) == [Path.GENERAL]
    texts = "RETURN MIN(A.type) PATTERN A+"
    assert "not numbers" in str(obstacle(job_of(texts, table).physical, Path.REDUCED))
    assert "no windows" in str(obstacle(job_of(texts, table).physical, Path.CUT))


def test_a_kernel_that_says_only_that_it_adds_up_can_be_cut_in_time() -> None:
    physical = job_of(COMPARED, events(10, seed=1)).physical
    toy = replace(physical, chosen=replace(physical.chosen, kernel=Toy(physical.plan.window, "total")))
    assert [way.path for way in ways(toy)] == [Path.CUT, Path.GENERAL]
    assert obstacle(toy, Path.REDUCED) == "its algorithm adds up events in a way of its own"


def test_explain_names_the_paths() -> None:
    table = events(10, seed=1)
    assert "path reduced" in tl.explain(BY_KEY, table, engine="spark")
    assert "path cut" in tl.explain(COMPARED, table, engine="spark")
    assert "path general" in tl.explain(COMPARED, table, engine="spark")
