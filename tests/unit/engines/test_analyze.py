"""EXPLAIN with events: the graph, its graphlets and estimates; with `analyze` what a run took."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.engines.test_trend_limits import COMPLETE, chain_of_choices
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.engines.analyze import arranged
from trendloom.engines.workload import Options
from trendloom.errors import OptionError
from trendloom.kernels.complete.kernel import TrendGraphKernel
from trendloom.kernels.complete.spec import Plan
from trendloom.kernels.complete.trends import trends_of


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
    assert "rows    81 with 324 events" in shown
    assert re.search(
        r"time    [\d.]+ s, [\d.]+ s of them on the processor, [\d.,]+ M events of trends per second", shown
    )
    assert re.search(r"memory  [\d.]+ [KM]iB more than before", shown)


def test_analyze_serves_every_query() -> None:
    events = pa.table({"type": ["A", "A", "B"], "time": [1, 2, 3]})
    assert "rows    1\n" in tl.explain("RETURN COUNT(*) PATTERN SEQ(A+, B)", events, analyze=True)
    assert "rows    3 with 7 events" in tl.explain("PATTERN SEQ(A+, B)", events, analyze=True)


def test_analyze_needs_events() -> None:
    with pytest.raises(OptionError, match="it needs events"):
        tl.explain(COMPLETE, analyze=True)


def test_other_kernels_build_nothing_that_is_shown() -> None:
    assert "Trend graph" not in tl.explain("RETURN COUNT(*) PATTERN Check c+", chain_of_choices(1))
    assert "Trend graph" not in tl.explain("RETURN COMPLETE TRENDS PATTERN SEQ(Check c+, Check d)", chain_of_choices(1))


@pytest.mark.parametrize("plan", list(Plan))
def test_a_graph_can_be_walked_in_any_way(plan: Plan) -> None:
    physical, block = arranged(COMPLETE, chain_of_choices(6, 2, 3), Options())
    assert isinstance(physical.kernel, TrendGraphKernel)
    graph = trends_of(replace(physical.kernel.graph, plan=plan), block, physical.limits.memory)
    assert sum(len(found) for found in graph.matches()) == graph.count() == 64
    stored = [size for chosen, size in graph.measured if chosen.bounds is not None]
    assert bool(stored) == (plan in (Plan.ALL_STORED, Plan.BEST_CUTS, Plan.GREEDY_CUTS))


def test_on_the_command_line(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "kites.tql").write_text(COMPLETE)
    pq.write_table(chain_of_choices(5), tmp_path / "checks.parquet")
    words = ["explain", str(tmp_path / "kites.tql"), "--events", str(tmp_path / "checks.parquet"), "--engine", "local"]
    result = CliRunner().invoke(app, [*words, "--analyze", "--memory-limit", "1M"])
    assert result.exit_code == 0, result.output
    assert "Trend graph" in result.output
    assert "rows    243 with 1,215 events" in result.output
    assert CliRunner().invoke(app, [*words, "--memory-limit", "lots"]).exit_code == 2
