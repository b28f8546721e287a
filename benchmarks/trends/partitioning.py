"""The search for a plan to cut the trend graph: branch and bound beside all plans and beside balanced plans only.

The costs are those of real graphs, with memory limits from tight to loose: what a plan needs at least, at most, and
between. Branch and bound must find the cost of the best of all plans; greedy may miss it, and says by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.baselines.trends import Array, exhaustive_partitioning
from benchmarks.cases.trends import KITES, check_kites
from benchmarks.harness.planned import planned
from benchmarks.harness.report import Curve, Report, race
from trendloom.kernels.trends.complete import TrendGraphKernel, trends_of
from trendloom.kernels.trends.partition import Costs, branch_and_bound, graphlet_costs, greedy, weigh

PICTURE = "plans by cuts"
LIMITS = {"tight": 0.02, "middle": 0.3, "loose": 0.8}
"""Where the limit stands between the least and the most memory, on a scale of logarithms."""

Search = Callable[[Array, Array, float], list[int] | None]
SEARCHES: dict[str, Search] = {
    "branch and bound": branch_and_bound,
    "greedy": greedy,
    "all plans": exhaustive_partitioning,
}


def measure_partitioning(report: Report, *, quick: bool = False) -> None:
    """More and more places to cut, under three memory limits."""
    seconds: dict[str, dict[int, float]] = {name: {} for name in SEARCHES}
    sizes = (12, 16, 20, 26) if quick else (12, 16, 20, 24, 28)
    for cuts in sizes:
        costs = costs_of(cuts)
        for name, share in LIMITS.items():
            best = search(report, costs, name, share, last=cuts == sizes[-1])
            for contender, spent in best.items():
                seconds[contender][cuts] = max(spent, seconds[contender].get(cuts, 0.0))
    for name, some in seconds.items():
        curve = Curve(PICTURE, name, tuple(some), tuple(some.values()), power=name != "all plans")
        report.curves.append(curve)


def costs_of(cuts: int) -> Costs:
    """Costs of all graphlets of a graph of so many seconds, not all alike, cut between seconds."""
    case = planned(KITES, check_kites(cuts, 6, 2, lag=2))
    assert isinstance(case.physical.kernel, TrendGraphKernel)
    trends = trends_of(case.physical.kernel.graph, case.block)
    weights = weigh(trends.graph, trends.starts, len(trends.graph))
    return graphlet_costs(trends.graph, weights, cuts)


def search(report: Report, costs: Costs, name: str, share: float, *, last: bool) -> dict[str, float]:
    """One limit: the time of each contender, and whether what it found is the best."""
    cuts = len(costs.bounds) - 1
    least = total(costs.mem, list(range(1, cuts)))
    limit = float(np.exp(np.log(least) + share * (np.log(max(costs.mem[0, cuts], 2 * least)) - np.log(least))))
    timings = race(3, {one: partial(way, costs.cpu, costs.mem, limit) for one, way in SEARCHES.items()})
    right = total(costs.cpu, timings["all plans"].answer)
    for contender, timing in timings.items():
        found = timing.answer
        good = found is not None and total(costs.mem, found) <= limit
        found_cpu = total(costs.cpu, found) if found is not None else np.inf
        if contender != "greedy":
            good = good and bool(np.isclose(found_cpu, right))
        plans = 2 ** (cuts - 1)
        one = timing.result(f"partitioning, {cuts} cuts, {name} limit, {contender}", plans, rows=1, checked=good)
        one = one.noting(f"{found_cpu / right:.3g} of the best plan's time")
        if contender != "all plans":
            one = one.against("all plans", plans / timings["all plans"].best)
        if contender == "branch and bound" and last:
            one = one.with_goal("100× all plans", bool((one.ratio or 0.0) >= 100.0))
        report.add(one)
    return {contender: timing.best for contender, timing in timings.items()}


def total(costs: Array, plan: list[int]) -> float:
    return float(sum(costs[a, b] for a, b in pairwise([0, *plan, len(costs) - 1])))
