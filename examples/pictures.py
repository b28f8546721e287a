"""Draw the pictures of README and docs: `python examples/pictures.py`, after `make demo`.

The outages are those of the demo and need its events; the other pictures need nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import trendloom as tl
from card_purchases import card_purchases
from cluster_load import cluster_log
from taxi_trips import made_up_trips
from trendloom.engines.measured_run import arranged
from trendloom.kernels.trends.complete import TrendGraphKernel, TrendsOfGraph, trends_of
from trendloom.kernels.trends.graph import WalkPlan
from trendloom.options import Options
from trendloom.viz.aggregation import draw_panes, draw_running
from trendloom.viz.confidences import draw_likely, likely_of
from trendloom.viz.leaderboard import board_of, draw_board
from trendloom.viz.query import draw_query_pattern, plan_of
from trendloom.viz.timeline import draw_matches
from trendloom.viz.trends import Walked, draw_trade_off, draw_trend_graph

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
TAXI = ROOT / "examples" / "taxi_workload.tql"
RANKING = ROOT / "examples" / "ranking.tql"
IMPRECISE = ROOT / "examples" / "imprecise_time.tql"

VALUES = pa.table(
    {
        "time": [1, 2, 3, 4],
        "type": ["B"] * 4,
        "id": ["b1", "b2", "b3", "b4"],
        "val": [10.0, 20.0, 15.0, 25.0],
    }
)
RISING = "PATTERN B+ b[]  SEMANTICS {}  WHERE b[i].val >= b[i-1].val AND count(b[]) >= 2"

PATTERNS = {
    "sequence": "PATTERN SEQ(Shelf a, NOT CheckOut b, Exit c)  WHERE [tag_id]  WITHIN 12 hours",
    "nested": "PATTERN (SEQ(A+, B))+",
    "choice": "PATTERN SEQ(A, AND(B, C), (D | E)?)",
}
COLUMNS = pa.schema({"time": pa.timestamp("us"), "type": pa.string(), "tag_id": pa.int64(), "location": pa.string()})

COUNTED = {
    "running-numbers": ("SEQ(A+, B)", "a1 a2 b3 a4 b5"),
    "not-progress": ("SEQ(A+, NOT SEQ(C, D), B)", "a1 c2 a3 b4 d5 b6"),
}
SERIES = "realAWSCloudwatch/rds_cpu_utilization_e47b3b"
COMPLETE = "RETURN COMPLETE TRENDS  PATTERN Metric m+  WHERE m.value < NEXT(m).value"
IN_PANES = "a1 a2 b3 b4 a5 a6 a8 b9 a10 b13 a14 b15"


def draw_semantics() -> None:
    """The same rising values, found in three ways."""
    for semantics in ("skip-till-any-match", "skip-till-next-match", "contiguous"):
        rows = tl.run(RISING.format(semantics), VALUES).to_pylist()
        matches = [[(event["time"], event["val"], event["var"]) for event in row["events"]] for row in rows]
        draw_matches(VALUES, matches, PICTURES / f"{semantics}.svg", value="val", title=semantics)


def draw_patterns() -> None:
    for name, text in PATTERNS.items():
        title = text.split("  ")[0].removeprefix("PATTERN ")
        draw_query_pattern(plan_of(text, COLUMNS), PICTURES / f"{name}.svg", title=title)


def draw_counting() -> None:
    """The running numbers of docs/aggregation.md, event by event and by panes."""
    for name, (pattern, text) in COUNTED.items():
        events = stream(text)
        plan = plan_of(f"RETURN COUNT(*)  PATTERN {pattern}", events)
        draw_running(plan, events, PICTURES / f"{name}.svg", title=pattern)
    query, events = "SEQ(A+, B)  WITHIN 8 SLIDE 4", stream(IN_PANES)
    draw_panes(plan_of(f"RETURN COUNT(*)  PATTERN {query}", events), events, PICTURES / "panes.svg", title=query)


def draw_complete_trends() -> None:
    """Rising complete trends of real server load: the graph of two hours, and what cutting a day's graph costs."""
    metrics = pq.read_table(ROOT / "examples" / "data" / "nab_metrics.parquet")
    series = metrics.filter(pc.equal(metrics["series"], SERIES)).sort_by("time")
    few, day = series.slice(500, 24), series.slice(500, 288)
    graph = trend_graph(COMPLETE, few, Options()).graph
    edges = [
        (e, int(f))
        for e in range(len(graph))
        for f in graph.lists.target[graph.lists.begin[e] : graph.lists.begin[e + 1]]
    ]
    trends = [row["events"] for row in tl.run(COMPLETE, few).to_pylist()]
    times = few["time"].to_pylist()
    longest = [times.index(event["time"]) for event in max(trends, key=len)]
    draw_trend_graph(
        few["value"].to_pylist(), edges, PICTURES / "trend-graph.svg", bounds=[0, 8, 16, 24], trend=longest,
        title=f"{len(few)} values, {len(edges)} edges, {len(trends)} complete rising trends", ylabel="CPU load",
    )  # fmt: skip
    ways = list(walk_in_all_ways(day))
    draw_trade_off(ways, PICTURES / "trade-off.svg", title=f"{len(day)} values: a day of CPU load")


def walk_in_all_ways(events: pa.Table) -> Iterator[Walked]:
    """The graph of some events walked one trend at a time, and cut for less and less memory; all trends copied out."""
    yield timed(trend_graph(COMPLETE, events, Options(), WalkPlan.ONE_BY_ONE), "one trend at a time (M-CET)")
    for plan, name in ((WalkPlan.BEST_CUTS, "best cuts (H-CET)"), (WalkPlan.GREEDY_CUTS, "balanced cuts (greedy)")):
        for memory in (1 << 31, 24 << 20, 6 << 20, 2 << 20, 1 << 20, 600 << 10, 380 << 10, 300 << 10):
            found = timed(trend_graph(COMPLETE, events, Options(memory_limit=memory), plan), name)
            if found.graphlets:
                yield found


def trend_graph(text: str, events: pa.Table, options: Options, plan: WalkPlan = WalkPlan.AUTO) -> TrendsOfGraph:
    """The trend graph of some events, to be looked at or walked in other ways than the engine would."""
    physical, block = arranged(text, events, options)
    assert isinstance(physical.kernel, TrendGraphKernel)
    return trends_of(replace(physical.kernel.graph, plan=plan), block, physical.limits.memory)


def timed(trends: TrendsOfGraph, name: str) -> Walked:
    began = time.process_time()
    for _ in trends.matches():
        pass
    seconds = time.process_time() - began
    graphlets, stored = 0, 0
    for chosen, size in trends.measured:
        graphlets, stored = len(chosen.bounds) - 1 if chosen.bounds is not None else 0, size
    return Walked(name, graphlets, seconds, stored)


def draw_shared_segments() -> None:
    """What the queries of the taxi workload have in common, as EXPLAIN draws it."""
    tl.explain(TAXI.read_text(), made_up_trips(), engine="local", picture=PICTURES / "sharing.svg")


def draw_best_matches() -> None:
    """The big spenders of docs/ranking.md: the ten best of one window."""
    text, events = RANKING.read_text(), card_purchases()
    rows = tl.run(text, events, query="big_spenders")
    board = board_of(plan_of(text, events, query="big_spenders"), rows)
    draw_board(board, PICTURES / "best-matches.svg", title="big spenders")


def draw_likely_matches() -> None:
    """Tasks of docs/imprecise-time.md that may have been running when the load of a node rose."""
    text, events, name = IMPRECISE.read_text(), cluster_log(), "running_when_load_rose"
    errors = {"time_error": "Load=7.5s,TaskStart=0.5s,TaskEnd=0.5s", "time_grain": "500ms"}
    rows = tl.run(text, events, query=name, **errors)
    likely = likely_of(plan_of(text, events, query=name, **errors), rows.filter(pc.equal(rows["node"], "node1")))
    draw_likely(likely, PICTURES / "imprecise-matches.svg", title="tasks that were running when the load rose")


def stream(text: str) -> pa.Table:
    """`a1 b2`: an event of type A at time 1, one of type B at time 2."""
    words = text.split()
    times, types = [int(word[1:]) for word in words], [word[0].upper() for word in words]
    return pa.table({"time": times, "type": types, "id": words})


def copy_outages(demo: Path) -> None:
    for made, kept in (("pattern", "outages"), ("matches", "outages-found")):
        shutil.copyfile(demo / f"{made}.png", PICTURES / f"{kept}.png")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    draw_semantics()
    draw_patterns()
    draw_counting()
    draw_complete_trends()
    draw_shared_segments()
    draw_best_matches()
    draw_likely_matches()
    demo = ROOT / "demo-output"
    if (demo / "pattern.png").exists():
        copy_outages(demo)
    else:
        print("the outages need the results of the demo: make demo")


if __name__ == "__main__":
    main()
