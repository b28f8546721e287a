"""A trend graph in words and figures: its size, its trends counted and not built, how it is cut and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trendloom.kernels.contract import BYTES, RESULTS, SECONDS, Built, Expected, Figure
from trendloom.kernels.trends.complete.trends import ChosenWalk, TrendsOfGraph
from trendloom.model.amounts import show_bytes

EDGES = "edges"
MOST_SHOWN = 3
MOST_SIZES = 16


def describe_trends(trends: TrendsOfGraph, expected: Expected | None) -> Built:
    """The graph of some events and the plan for walking it; `expected`: how many trends there are, if counted."""
    plans = sorted(trends.plans(), key=lambda chosen: -chosen.cpu)
    foreseen = {BYTES: trends.graph.bytes + max((chosen.memory for chosen in plans), default=0.0)}
    seconds = sum(chosen.cpu for chosen in plans) / 1e9
    if seconds:
        foreseen[SECONDS] = seconds
    if expected is not None and expected.exact:
        foreseen[RESULTS] = expected.number
    figures = (*_graph(trends, expected), *_plans(trends, plans))
    return Built("Trend graph", figures, {EDGES: float(trends.graph.edges)}, foreseen)


def _graph(trends: TrendsOfGraph, expected: Expected | None) -> Iterator[Figure]:
    graph = trends.graph
    yield Figure("events", f"{len(graph):,}, of which {len(trends.starts):,} can begin a complete trend")
    yield Figure(EDGES, f"{graph.edges:,} that no longer path replaces, {show_bytes(graph.bytes)}")
    yield Figure("trends", f"{expected if expected is not None else 'not counted: that would take long'}")
    yield Figure("memory", f"{show_bytes(trends.memory)} at most")


def _plans(trends: TrendsOfGraph, plans: Sequence[ChosenWalk]) -> Iterator[Figure]:
    for chosen in plans[:MOST_SHOWN]:
        yield _plan(trends, chosen)
    if len(plans) > MOST_SHOWN:
        cut = sum(chosen.bounds is not None for chosen in plans)
        yield Figure("in all", f"{len(plans):,} stretches of the stream, {cut:,} of them cut into graphlets")


def _plan(trends: TrendsOfGraph, chosen: ChosenWalk) -> Figure:
    first = trends.starts[chosen.stretch.first]
    where = f"beginning at event {first:,}" if chosen.stretch.first else "from the first event on"
    if chosen.bounds is None:
        why = "few trends" if chosen.stretch.few else f"about {chosen.cpu / 1e6:,.1f} ms; storing parts would not pay"
        return Figure(chosen.plan.value, f"{where}: one trend at a time ({why})")
    sizes = np.diff(chosen.bounds).tolist()
    shown = ", ".join(f"{size:,}" for size in sizes[:MOST_SIZES]) + (", ..." if len(sizes) > MOST_SIZES else "")
    return Figure(
        chosen.plan.value,
        where,
        (
            Figure("graphlets", f"{len(sizes)}, of {shown} events"),
            Figure("estimated", f"{chosen.cpu / 1e6:,.1f} ms besides copying, {show_bytes(chosen.memory)} stored"),
        ),
    )
