"""EXPLAIN with events: the graph, its graphlets and estimates; with `analyze` what a run took."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.runtime.test_trend_limits import COMPLETE, chain_of_choices
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.engines.measured_run import arranged, windows_with_events
from trendloom.errors import OptionError
from trendloom.kernels.trends.complete import TrendGraphKernel, trends_of
from trendloom.kernels.trends.graph import WalkPlan
from trendloom.model.time import Window
from trendloom.options import Options


def test_the_graph_and_its_graphlets_are_shown() -> None:
    shown = tl.explain(COMPLETE, chain_of_choices(12, 3, 6), memory_limit="10M")
    assert "events  216, of which 3 can begin a complete trend" in shown
    assert f"trends  {3**12:,}" in shown
    assert "memory  10.0 MiB at most" in shown
    (graphlets, sizes) = re.findall(r"graphlets  (\d+), of ([\d, ]+) events", shown)[0]
    assert int(graphlets) == len(sizes.split(", ")) > 1
    assert sum(map(int, sizes.split(", "))) == 216
    assert re.search(r"estimated  [\d.,]+ ms besides copying, [\d.,]+ KiB stored", shown)
    assert "Measured" not in shown


def test_few_trends_are_walked_one_by_one() -> None:
    assert "one trend at a time (few trends)" in tl.explain(COMPLETE, chain_of_choices(3))


def test_analyze_says_what_a_run_took() -> None:
    shown = tl.explain(COMPLETE, chain_of_choices(4), analyze=True)
    assert "actual 81 with 324 events" in shown
    assert re.search(
        r"actual [\d.]+ s on the processor, [\d.]+ s by the clock, [\d.,]+ M events of trends per second", shown
    )
    assert re.search(r"actual [\d.]+ ([KM]iB|bytes) more than before", shown)


def test_analyze_serves_every_query() -> None:
    events = pa.table({"type": ["A", "A", "B"], "time": [1, 2, 3]})
    assert "actual 1 · 1.0 ×\n" in tl.explain("RETURN COUNT(*) PATTERN SEQ(A+, B)", events, analyze=True)
    assert "actual 3 with 7 events" in tl.explain("PATTERN SEQ(A+, B)", events, analyze=True)


def figures(query: str, events: pa.Table, **options: str) -> dict[str, str]:
    """The lines of what was measured, without guides and runs of spaces, by their names."""
    text = tl.explain(query, events, analyze=True, **options)  # type: ignore[arg-type]
    lines = [" ".join(line.strip("│├└─ ").split()) for line in text[text.index("Measured") :].split("\n")]
    names = [re.split(r" (?=estimated|not estimated|one run)", line, maxsplit=1) for line in lines]
    return {name: rest[0] if rest else "" for name, *rest in names}


def test_every_figure_has_an_estimate_beside_it() -> None:
    number = np.random.default_rng(3)
    events = pa.table(
        {
            "time": np.arange(3000),
            "type": number.choice(["A", "B"], 3000),
            "k": number.integers(0, 7, 3000),
            "x": number.random(3000),
        }
    )
    found = figures("PATTERN SEQ(A a, B b) WHERE [k] AND a.x < 0.5 WITHIN 200 SLIDE 100", events)
    assert list(found) == ["Measured", "events", "0 A a", "1 B b", "keys", "windows", "rows", "time", "memory"]
    assert found["Measured"].endswith("after reading the events; estimated from all events")
    assert found["events"] == "estimated 3,000 · actual 3,000 · 1.0 ×"
    few = sum(kind == "A" and x < 0.5 for kind, x in zip(*(events[n].to_pylist() for n in ("type", "x")), strict=True))
    assert found["0 A a"] == f"estimated {few:,} · actual {few:,} · 1.0 ×"
    assert found["keys"] == "estimated 7 · actual 7 · 1.0 ×"
    assert found["windows"] == "estimated 31 · actual 31 · 1.0 ×"
    assert re.fullmatch(r"estimated [\d,]+ · actual [\d,]+ with [\d,]+ events · (0\.9|1\.0|1\.1) ×", found["rows"])
    assert found["time"].startswith("not estimated · actual")
    found = figures("RETURN COUNT(*) PATTERN SEQ(A a, NOT B b, A c) WITHIN 5 SLIDE 5", events)
    assert found["1 B b"].startswith("estimated")
    assert re.fullmatch(r"estimated at most 600 · actual [\d,]+ · [\d.]+ ×", found["rows"])


def test_a_graph_is_estimated_before_it_is_built_and_its_trends_before_they_are() -> None:
    found = figures(COMPLETE, chain_of_choices(10, 3, 4), memory_limit="1M")
    assert re.fullmatch(r"estimated [\d,]+ · actual [\d,]+ · [\d.]+ ×", found["edges"])
    assert found["rows"] == f"estimated {3**10:,} · actual {3**10:,} with {3**10 * 40:,} events · 1.0 ×"
    assert re.match(r"estimated [\d.]+ s · actual [\d.]+ s on the processor, before rows are made", found["search"])
    assert re.match(r"estimated [\d.]+ [KM]iB · actual", found["memory"])


def test_a_query_that_is_refused_says_so() -> None:
    shown = tl.explain(COMPLETE, chain_of_choices(40, 3, 2), analyze=True)
    assert "Measured  nothing: " in shown


def test_analyze_needs_events() -> None:
    with pytest.raises(OptionError, match="it needs events"):
        tl.explain(COMPLETE, analyze=True)


def test_other_kernels_build_nothing_that_is_shown() -> None:
    assert "Trend graph" not in tl.explain("RETURN COUNT(*) PATTERN Check c+", chain_of_choices(1))
    assert "Trend graph" not in tl.explain("RETURN COMPLETE TRENDS PATTERN SEQ(Check c+, Check d)", chain_of_choices(1))


@pytest.mark.parametrize("plan", list(WalkPlan))
def test_a_graph_can_be_walked_in_any_way(plan: WalkPlan) -> None:
    physical, block = arranged(COMPLETE, chain_of_choices(6, 2, 3), Options())
    assert isinstance(physical.kernel, TrendGraphKernel)
    graph = trends_of(replace(physical.kernel.graph, plan=plan), block, physical.limits.memory)
    assert sum(len(found) for found in graph.matches()) == graph.count() == 64
    stored = [size for chosen, size in graph.measured if chosen.bounds is not None]
    assert bool(stored) == (plan in (WalkPlan.ALL_STORED, WalkPlan.BEST_CUTS, WalkPlan.GREEDY_CUTS))


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "kites.tql").write_text(COMPLETE)
    pq.write_table(chain_of_choices(5), tmp_path / "checks.parquet")
    words = ["explain", str(tmp_path / "kites.tql"), "--events", str(tmp_path / "checks.parquet"), "--engine", "local"]
    result = CliRunner().invoke(app, [*words, "--analyze", "--memory-limit", "1M"])
    assert result.exit_code == 0, result.output
    assert "Trend graph" in result.output
    assert "actual 243 with 1,215 events" in result.output
    assert CliRunner().invoke(app, [*words, "--memory-limit", "lots"]).exit_code == 2


@pytest.mark.parametrize(("within", "slide"), [(10, 5), (7, 7), (3, 5), (9, 2)])
def test_windows_with_an_event_are_counted(within: int, slide: int) -> None:
    ticks = np.array([40, 3, 3, 12, -8, 41, 90])
    windows = {start for start in range(-200, 200, 1) if start % slide == 0}
    holding = {start for start in windows if any(start <= tick < start + within for tick in ticks.tolist())}
    assert windows_with_events(ticks, Window(within, slide)) == len(holding)


def test_estimates_are_shown_with_the_plan(tmp_path: Path) -> None:
    events = pa.table({"type": list("AAB"), "time": [1, 2, 3]})
    lines = tl.explain("PATTERN SEQ(A a, B b)", events, engine="local").split("\n")
    told = "3 of 3 events, about 1 row, 48 bytes of columns, by all events"
    assert f"├─ estimate   {told}" in lines
    pq.write_table(events, tmp_path / "events.parquet")
    lines = tl.explain("PATTERN SEQ(A a, B b)", tmp_path / "events.parquet", engine="local").split("\n")
    assert "├─ estimate   3 events, by the footers of Parquet files" in lines
    assert "estimate" not in tl.explain("PATTERN SEQ(A a, B b)", events.schema)
    assert "estimate" not in tl.explain("PATTERN SEQ(A a, B b)", events, engine="reference")


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B b) WHERE [k] AND a.time < b.time",
        "RETURN k, COUNT(*) PATTERN SEQ(A a, B b) GROUP BY k WITHIN 10 SLIDE 5",
        "RETURN COMPLETE TRENDS PATTERN A a+ WHERE [k] AND a.k < NEXT(a).k",
        "PATTERN A a{2,90}",
    ],
)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_few_events_and_no_keys_are_explained(query: str, rows: int) -> None:
    events = pa.table({"type": list("AAB"), "time": [1, 2, 3], "k": pa.array([None] * 3, pa.int64())}).slice(0, rows)
    with warnings.catch_warnings(action="ignore"):
        assert "Measured" in tl.explain(query, events, analyze=True)


def pairs_in_order(count: int) -> pa.Table:
    """So many A before as many B."""
    return pa.table({"type": ["A"] * count + ["B"] * count, "time": range(2 * count), "x": range(2 * count)})


def test_analyze_says_how_many_matches_ranks_spared() -> None:
    query = "PATTERN SEQ(A a, B b) RANK BY a.x + b.x DESC LIMIT 5"
    shown = tl.explain(query, pairs_in_order(40), analyze=True)
    assert "matches in all  1,600, counted without listing them" in shown
    assert "matches made    5" in shown
    assert "spared          1,595 matches were never made" in shown
    assert "estimated at most 5" in shown


def test_analyze_says_how_many_matches_were_listed() -> None:
    query = "PATTERN SEQ(A a, B b) RANK BY abs(a.x - b.x) LIMIT 5"
    shown = tl.explain(query, pairs_in_order(40), analyze=True)
    assert "matches made    1,600" in shown
    assert "spared" not in shown


def test_a_plain_explain_ranks_nothing() -> None:
    assert "matches made" not in tl.explain("PATTERN A a RANK BY a.x LIMIT 5", pairs_in_order(3))
