"""Memory, number and limit of trends: what a run may hold, what it refuses before it starts, and when it stops."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.engines.answers import Watch, answers
from trendloom.errors import OptionError, RunError
from trendloom.kernels.aggregate.block import Count
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.kernels.trends import walk
from trendloom.model.amounts import bytes_of, free_memory
from trendloom.options import Options

COMPLETE = "RETURN COMPLETE TRENDS PATTERN Check c+ WHERE c.destination = NEXT(c).source"


def chain_of_choices(choices: int, ways: int = 3, steps: int = 1) -> pa.Table:
    """Money that goes from hub to hub by one of some ways of some steps each: ways^choices complete trends."""
    rows = []
    for choice in range(choices):
        for way in range(ways):
            stops = [f"hub {choice}", *(f"{choice}/{way}/{s}" for s in range(1, steps)), f"hub {choice + 1}"]
            rows += [(choice * steps + s, stops[s], stops[s + 1]) for s in range(steps)]
    time, source, destination = zip(*sorted(rows), strict=True)
    return pa.table({"type": ["Check"] * len(rows), "time": time, "source": source, "destination": destination})


class TestRefusal:
    def test_names_the_number_and_the_ways_out(self) -> None:
        with pytest.raises(RunError) as caught:
            tl.run(COMPLETE, chain_of_choices(19))
        assert f"{3**19:,} matches, more than 1,000,000,000" in caught.value.message
        for way in ("COLLAPSED", "COUNT(*)", "RANK BY", "WITHIN", "limit=", "max_trends="):
            assert way in (caught.value.hint or "")

    def test_numbers_beyond_doubles_are_about(self) -> None:
        with pytest.raises(RunError, match=r"there are about 2\.66e\+95 matches"):
            tl.run(COMPLETE, chain_of_choices(200))

    def test_the_limit_is_an_option(self) -> None:
        events = chain_of_choices(4)
        assert tl.run(COMPLETE, events, max_trends=81).num_rows == 81
        with pytest.raises(RunError, match="there are 81 matches, more than 80"):
            tl.run(COMPLETE, events, max_trends=80)

    def test_matches_of_any_pattern_are_counted_first(self) -> None:
        events = pa.table({"type": ["A"] * 60 + ["B"], "time": range(61)})
        with pytest.raises(RunError, match=f"there are about {2.0**60 - 1:.3g} matches".replace("+", r"\+")):
            tl.run("RETURN TRENDS PATTERN SEQ(A+, B)", events)

    def test_what_cannot_be_counted_stops_when_there_are_too_many(self) -> None:
        events = pa.table({"type": ["A"] * 14, "time": range(14), "x": [1] * 14})
        query = "RETURN TRENDS PATTERN A+ a[] WHERE count(a[]) >= 2"
        assert tl.run(query, events).num_rows == 2**14 - 1 - 14
        with pytest.raises(RunError, match="more than 1,000 matches"):
            tl.run(query, events, max_trends=1000)

    def test_long_trends_are_picked_from_the_complete_ones(self) -> None:
        """Listing all matches first would take years: there are more than 2^70 of them."""
        events = chain_of_choices(4, 3, 20)
        assert tl.run(f"{COMPLETE} AND count(c[]) > 70", events).num_rows == 81
        assert tl.run(f"{COMPLETE} AND count(c[]) > 80", events).num_rows == 0
        shown = tl.explain(f"{COMPLETE} AND count(c[]) > 70", events)
        assert "a condition on the whole is tested last" in shown
        assert "trends  at most 81" in shown

    def test_complete_trends_that_are_picked_from_too_many_are_refused(self) -> None:
        with pytest.raises(RunError, match=f"there are {3**19:,} complete trends without the conditions"):
            tl.run(f"{COMPLETE} AND count(c[]) > 5", chain_of_choices(19))

    def test_complete_trends_of_too_many_matches_are_refused_before_they_are_found(self) -> None:
        events = pa.table({"type": ["A"] * 60, "time": range(60), "x": [1] * 60})
        with pytest.raises(RunError, match=r"about 1\.15e\+18 would be tried"):
            tl.run("RETURN COMPLETE TRENDS PATTERN A+ a[] WHERE count(a[]) < 3", events)
        with pytest.raises(RunError, match="too many to compare"):
            tl.run("RETURN COMPLETE TRENDS PATTERN SEQ(A+ a[], A b)", events)

    def test_complete_trends_stop_as_soon_as_there_are_too_many_to_compare(self) -> None:
        events = pa.table({"type": ["A"] * 24, "time": range(24), "x": [1] * 24})
        with pytest.raises(RunError, match="more than 50,000 matches in one window and partition"):
            tl.run("RETURN COMPLETE TRENDS PATTERN A+ a[] WHERE sum(a[].x) > 3", events)

    def test_a_number_of_trends_must_be_positive(self) -> None:
        with pytest.raises(OptionError, match="max_trends= must be at least 1"):
            tl.run(COMPLETE, chain_of_choices(1), max_trends=0)


class TestForecast:
    @pytest.fixture(autouse=True)
    def _few_are_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Matches are counted once there are a thousand events in them, however few they can be."""
        monkeypatch.setattr("trendloom.runtime.task.FIRST_ENTRIES", 1000)
        monkeypatch.setattr("trendloom.kernels.aggregate.block.WORTH_COUNTING", 1000)

    def said(self, query: str, events: pa.Table) -> list[str]:
        told: list[str] = []
        for answer in answers(query, events, Options(), Watch(foreseen=told.append)):
            next(answer.batches)
            next(answer.batches)
        return told

    def test_is_the_number_where_there_is_an_online_count(self) -> None:
        assert self.said(COMPLETE, chain_of_choices(9)) == [f"{3**9:,}"]
        ticks = pa.table({"type": ["A"] * 14, "time": range(14)})
        assert self.said("RETURN TRENDS PATTERN A+", ticks) == [f"{2**14 - 1:,}"]

    def test_is_marked_where_it_is_a_bound(self) -> None:
        ticks = pa.table({"type": ["A"] * 14, "time": range(14)})
        (bound,) = self.said("RETURN TRENDS PATTERN A+ a[] WHERE count(a[].type) < 6", ticks)
        assert bound == f"at most {2**14 - 1:,}"
        (bound,) = self.said("RETURN TRENDS PATTERN A+ WITHIN 13", ticks)
        assert bound.startswith("at most ")

    def test_is_not_made_where_it_takes_longer_than_the_matches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Conditions between distant events are counted around each of one kind: 60 of them here, 120 events each."""
        events = pa.table({"type": ["A", "B"] * 60, "time": range(120), "id": [row // 2 for row in range(120)]})
        query = "RETURN TRENDS PATTERN SEQ(A a, A, B b) WHERE a.id < b.id"
        counted: list[int] = []
        steps = Count.steps

        def noted(count: Count, block: Block) -> int:
            counted.append(steps(count, block))
            return counted[-1]

        monkeypatch.setattr(Count, "steps", noted)
        monkeypatch.setattr("trendloom.kernels.aggregate.block.MOST_STEPS", 60 * 120)
        (told,) = self.said(query, events)
        assert set(counted) == {60 * 120}
        assert int(told.replace(",", "")) == tl.run(query, events).num_rows
        monkeypatch.setattr("trendloom.kernels.aggregate.block.MOST_STEPS", 60 * 120 - 1)
        assert self.said(query, events) == []

    def test_does_not_delay_ranks_of_few_matches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A hundred pairs are ranked sooner than the 20,000 events around a hundred pivots are counted."""

        def counted(aggregation: AggregationSpec, block: Block) -> None:
            raise AssertionError("counted")

        monkeypatch.setattr("trendloom.kernels.aggregate.block._by_window", counted)
        monkeypatch.setattr("trendloom.kernels.ranking.kernel.MANY", 10)
        events = pa.table({"type": ["A", "B"] * 100, "time": range(200), "id": [row // 2 for row in range(200)]})
        query = "RETURN a.id PATTERN AND(A a, B b) WHERE a.id = b.id AND a.time < b.time RANK BY a.id + b.id LIMIT 3"
        assert tl.run(query, events)["a.id"].to_pylist() == [0, 1, 2]


class TestLimit:
    def test_bypasses_the_refusal_and_stops_the_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        chunks = 0
        true_walk = walk._walk

        def counted(*arguments: object) -> int:
            nonlocal chunks
            chunks += 1
            return int(true_walk(*arguments))

        monkeypatch.setattr(walk, "_walk", counted)
        found = tl.run(COMPLETE, chain_of_choices(60), limit=7, memory_limit=0)
        assert found.num_rows == 7
        assert all(len(row["events"]) == 60 for row in found.to_pylist())
        assert chunks == 1

    def test_of_other_matches(self) -> None:
        ticks = pa.table({"type": ["A"] * 200, "time": range(200)})
        assert tl.run("RETURN TRENDS PATTERN A+", ticks, limit=5).num_rows == 5


class TestMemory:
    @pytest.mark.parametrize(
        ("text", "number"),
        [("512M", 512 << 20), ("2 GiB", 2 << 30), ("1.5g", 3 << 29), ("100", 100), (7, 7), ("64kb", 64 << 10)],
    )
    def test_amounts(self, text: str | int, number: int) -> None:
        assert bytes_of(text) == number

    @pytest.mark.parametrize("text", ["much", "-1", "1X", "", "G"])
    def test_no_amounts(self, text: str) -> None:
        with pytest.raises(OptionError, match="not an amount of memory"):
            tl.run(COMPLETE, chain_of_choices(1), memory_limit=text)

    def test_something_is_free(self) -> None:
        assert free_memory() > 1 << 20

    def test_a_hundred_million_trend_events_within_the_limit(self) -> None:
        """Peak memory of a run, in a process of its own, beside what it held before (after a small run)."""
        done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        assert found["rows"] == 3**13
        assert found["events"] == 3**13 * 13 * 5 >= 1e8
        assert found["memory"] < found["limit"]


PEAK = f"""
import json, sys
sys.path.insert(0, {json.dumps(str(__file__.rsplit("/", 1)[0]))})
from test_trend_limits import COMPLETE, chain_of_choices
from trendloom.engines.measured_run import measure
from trendloom.options import Options
from trendloom.runtime.reading import load, queries_of
from trendloom.model.amounts import Limits
from trendloom.runtime.planning import plan_query
from trendloom.logical.bind import bind

LIMIT = 128 << 20

def run(choices):
    events = load(chain_of_choices(choices, 3, 5), Options())
    plan = bind(queries_of(COMPLETE)[0], events.schema)
    return measure(plan_query(plan, Limits(LIMIT)), events)

run(7)
found = run(13)
print(json.dumps({{"rows": found.rows, "events": found.events, "memory": found.memory, "limit": LIMIT}}))
"""


def test_aggregates_that_enumerate_heed_the_limit() -> None:
    table = pa.table({"type": ["A"] * 12, "time": range(12), "x": range(12)})
    query = "RETURN COUNT(*) PATTERN A+ a[] WHERE avg(a[].x) >= 0"
    assert tl.run(query, table).to_pylist() == [{"COUNT(*)": 2**12 - 1}]
    with pytest.raises(RunError, match="more than 1,000 matches to enumerate for an aggregate") as caught:
        tl.run(query, table, max_trends=1_000)
    assert "max_trends=" in str(caught.value.hint)
