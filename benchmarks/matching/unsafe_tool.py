"""Tools that are used in surgery after washing without being sharpened, disinfected and then checked.

The query has no `[id]`: its conditions say that all events of a match are of one tool, those inside NOT as well. The
optimizer finds out (`optimizer/split_by_equality.py`), so events are cut by tool and take the flat kernels. Beside it
stands the same query without that rule, over the beginning of the same stream. Histories are made of rounds of six
steps, of which one in a hundred lacks a step between washing and use.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.cases.events import same_rows
from benchmarks.engines.on_spark import drop_batches, run_all
from benchmarks.harness.report import Report, race
from trendloom.engines import local
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.optimizer import optimize
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.planner.plan import choose

Array = np.ndarray[Any, Any]

UNSAFE = """
PATTERN SEQ(Recycle r, (Washing w: w.id = r.id),
            !SEQ((Sharpening s: s.id = o.id), (Disinfection d: d.id = s.id), (Checking c: c.id = s.id)),
            (Operating o: o.id = w.id AND o.ins_type = 'surgery'))
WITHIN 1 hour
"""
STEPS = ("Recycle", "Washing", "Sharpening", "Disinfection", "Checking", "Operating")
HOUR = 3600
ROUND = 2700
"""Seconds from one round of a tool to the next."""
MOST_IN_AN_HOUR = 60
"""Events of one tool: they are more than a minute apart."""
FEW = 20_000
"""Events that are looked at without the rule: its time grows faster than they do."""
GOAL = 3e6
GOAL_ON_SPARK = 0.7


def measure_unsafe_tool(report: Report, *, quick: bool = False) -> None:
    """The local engine from Arrow and from Parquet, without the rule, and Spark beside the bare pipeline."""
    events, tools, tries = (1_000_000, 1_000, 3) if quick else (5_000_000, 10_000, 5)
    table = tool_histories(events, tools)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.parquet"
        pq.write_table(table, file, row_group_size=max(events // 10, 1))
        _measure_local(report, table, file, tools, tries)
        _measure_spark(report, table, file, tools, tries)


def _measure_local(report: Report, table: pa.Table, file: Path, tools: int, tries: int) -> None:
    expected = unsafe_uses(table)
    some = table.slice(0, FEW)
    contenders = {
        "from Arrow": partial(tl.run, UNSAFE, table, engine="local"),
        "from Parquet": partial(tl.run, UNSAFE, str(file), engine="local"),
    }
    timings = race(tries, contenders)
    (before,) = race(1, {"": partial(_without_the_rule, some)}).values()
    slow = before.result(f"local, unsafe tool, {tools:,} tools, not split", len(some), rows=len(before.answer),
                         checked=same_rows(ends_of(before.answer), unsafe_uses(some)))  # fmt: skip
    for name, timing in timings.items():
        good = same_rows(ends_of(timing.answer), expected)
        one = timing.result(
            f"local, unsafe tool, {tools:,} tools, {name}", len(table), rows=len(expected), checked=good
        )
        one = one.against(f"not split, {FEW:,} events", slow.rate)
        one = one.with_goal("3 M events/s", one.rate >= GOAL)
        report.add(one.noting(f"processor time {timing.processor:.3g} s"))
    report.add(slow)


def _without_the_rule(table: pa.Table) -> pa.Table:
    events = prepare(table)
    plan = optimize(bind(parse_query(UNSAFE), events.schema), without=(split_by_equality,))
    return pa.Table.from_batches(list(local.run(choose(plan), events)))


def _measure_spark(report: Report, table: pa.Table, file: Path, tools: int, tries: int) -> None:
    from trendloom.spark import detect, session

    spark = session("local[2]")
    df = spark.read.parquet(str(file))
    found = detect(df, UNSAFE)
    piped = df.repartition("id").mapInArrow(drop_batches, "id long")
    timings = race(tries, {"repartition and drop": partial(run_all, piped), "unsafe tool": partial(run_all, found)})
    expected, answer = unsafe_uses(table), found.toArrow()
    spark.stop()
    bare, split = timings["repartition and drop"], timings["unsafe tool"]
    report.add(bare.result("spark local[2], repartition and drop, by tool", len(table), rows=0, checked=None))
    good = same_rows(ends_of(answer), expected)
    one = split.result(f"spark local[2], unsafe tool, {tools:,} tools", len(table), rows=len(expected), checked=good)
    one = one.against("repartition and drop", len(table) / bare.best)
    report.add(one.with_goal(f"{GOAL_ON_SPARK} of it", (one.ratio or 0) >= GOAL_ON_SPARK))


# ------------------------------------------------------------------------------------ histories and answer


def tool_histories(events: int, tools: int, seed: int = 14, unsafe: float = 0.01) -> pa.Table:
    """About so many events in order of time; the steps of a round are one to seven minutes apart."""
    random = np.random.default_rng(seed)
    rounds = -(-events // (len(STEPS) * tools))
    count = rounds * tools
    begins = np.tile(np.arange(rounds) * ROUND, tools) + np.repeat(random.integers(0, ROUND, tools), rounds)
    waits = random.integers(60, 420, (count, len(STEPS)))
    time = begins[:, None] + np.cumsum(waits, axis=1)
    done = np.ones(time.shape, np.bool_)
    lacking = np.flatnonzero(random.random(count) < unsafe)
    done[lacking, random.integers(2, 5, len(lacking))] = False
    step = np.broadcast_to(np.arange(len(STEPS)), time.shape)[done]
    tool = np.broadcast_to(np.repeat(np.arange(tools), rounds)[:, None], time.shape)[done]
    surgery = np.broadcast_to((random.random(count) < 0.6)[:, None], time.shape)[done]
    order = np.argsort(time[done], kind="stable")
    uses = pa.array(["examination", "surgery"])
    return pa.table(
        {
            "type": pa.array(STEPS).take(pa.array(step[order])),
            "id": tool[order],
            "time": time[done][order],
            "ins_type": uses.take(pa.array(surgery[order].astype(np.int64))),
        }
    )


def unsafe_uses(table: pa.Table) -> pa.Table:
    """The tool, and the times of recycling, washing and use of every match, by NumPy.

    The latest sharpening that a disinfection and then a checking followed tells which washings are too early. A tool
    has few events in an hour, so pairs are found by how many events they are apart.
    """
    tool, time = table["id"].to_numpy(), table["time"].to_numpy()
    order = np.lexsort([time, tool])
    tool, time = tool[order], time[order]
    step = np.asarray(pc.index_in(table["type"], pa.array(STEPS)))[order]
    surgery = np.asarray(pc.equal(table["ins_type"], "surgery"))[order]
    sharpened = np.maximum.accumulate(np.where(step == 2, np.arange(len(step)), -1))
    disinfected = np.maximum.accumulate(np.where(step == 3, sharpened, -1))
    safe = np.maximum.accumulate(np.where(step == 4, disinfected, -1))
    uses = np.flatnonzero((step == 5) & surgery)
    number, washed = _within_an_hour(uses, uses, tool, time, step == 1)
    used = uses[number]
    used, washed = used[washed > safe[used]], washed[washed > safe[used]]
    number, recycled = _within_an_hour(washed, used, tool, time, step == 0)
    used, washed = used[number], washed[number]
    return pa.table({"id": tool[used], "r": time[recycled], "w": time[washed], "o": time[used]})


def _within_an_hour(later: Array, used: Array, tool: Array, time: Array, fits: Array) -> tuple[Array, Array]:
    """Earlier events that fit, of the same tool and within an hour of the use; and which later ones they precede."""
    numbers, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for distance in range(1, MOST_IN_AN_HOUR):
        earlier = np.maximum(later - distance, 0)
        good = (later >= distance) & (tool[earlier] == tool[used]) & (time[used] - time[earlier] < HOUR) & fits[earlier]
        numbers.append(np.flatnonzero(good))
        found.append(earlier[good])
    return np.concatenate(numbers), np.concatenate(found)


def ends_of(rows: pa.Table) -> pa.Table:
    """The rows of the query as `unsafe_uses` writes them."""
    events = rows["events"].combine_chunks().flatten()
    time, tool = (np.asarray(events.field(name)).reshape(-1, 3) for name in ("time", "id"))
    return pa.table({"id": tool[:, 0], "r": time[:, 0], "w": time[:, 1], "o": time[:, 2]})
