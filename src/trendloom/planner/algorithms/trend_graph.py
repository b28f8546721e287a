"""Complete trends of one variable with +: paths through a graph (CET).

See Poppe, "Event Stream Analytics", part on complete event trends.
"""

from __future__ import annotations

from trendloom.kernels.trends.complete.kernel import TrendGraphKernel
from trendloom.model.selection import Trends
from trendloom.planner.algorithms.complete import complete_of
from trendloom.planner.estimates import estimate_graph
from trendloom.planner.exists import HIDING
from trendloom.planner.request import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    if wanted.plan.output is not Trends.COMPLETE:
        return "it finds complete trends only"
    if wanted.plan.hidden:
        return HIDING
    graph, reason = complete_of(wanted.detection)
    if graph is None:
        return reason
    return Choice(
        TrendGraphKernel(wanted.detection, graph, wanted.limits.memory),
        "trend graph (CET): an edge where no longer path leads from one event to the other",
        reason,
        "O(edges · log events + events of trends), trends stored as far as the memory allows",
        "walk the graph: one trend at a time (M-CET), or by graphlets whose trends are stored (H-CET)",
        builds=True,
        estimate=estimate_graph(wanted, graph),
    )


CANDIDATE = Candidate("trend graph", consider)
