"""What a run should come to, in figures, as far as the statistics of its stream tell.

- rows of a search: the matches, by `expected_matches`; at most so many where not only neighbours decide about them;
- rows of ranked matches: as many as are wanted of each window and partition, if there are so many matches;
- rows of aggregates: a group and window each, so at most groups · windows;
- edges of a trend graph: with D events of a key in a window and a share s of neighbours that pass, an edge leads from
  an event to the d-th after it if they pass and no event between them passes with both. As if pairs were independent,
  that is s·(1-s²)^(d-1), in all (1-(1-s²)^D)/s for each event. Equal values are a chain: 1-(1-s)^D. Where values of
  one column are put in order, s is about a half, and the d-th after an event is above it with none between them with
  probability 1/(d+1), so that each has 2s·(1/2 + ... + 1/(D+1)) edges;
- bytes: the numbers of a block, which holds the events that fit a position.
"""

from __future__ import annotations

from dataclasses import replace
from math import log1p

from trendloom.expr.nodes import columns
from trendloom.kernels.ranking.kernel import IN_ALL
from trendloom.kernels.trends.complete.spec import Complete
from trendloom.logical.plan import Projection, Ranking
from trendloom.model.selection import Trends
from trendloom.planner.expected_matches import expected_matches
from trendloom.planner.neighbours import neighbours_of
from trendloom.planner.request import Estimate, Wanted

EDGES = "edges"
NUMBER = 8
"""Bytes of a number."""
TIME_AND_ROW = 2


def estimate_search(wanted: Wanted) -> Estimate | None:
    """Rows of matches that are found one by one, or what is made of them."""
    if wanted.statistics.events is None:
        return None
    if wanted.aggregates:
        return estimate_totals(wanted)
    statistics, output = wanted.statistics, wanted.plan.output
    number = expected_matches(wanted.detection, statistics, statistics.spread(wanted.plan.keys))
    if wanted.plan.ranking is not None:
        return _ranked(wanted, wanted.plan.ranking, number)
    a_row_each = (output is Trends.ALL or isinstance(output, Projection)) and not wanted.plan.hidden
    return replace(
        _of_events(wanted), results=number, at_most=not (a_row_each and neighbours_of(wanted.detection).whole)
    )


def _ranked(wanted: Wanted, ranking: Ranking, matches: float | None) -> Estimate:
    """Rows of ranked matches: the wanted ones of each board, of which some may have fewer."""
    known = [number for number in (matches, _rows_of_boards(wanted, ranking)) if number is not None]
    further = {} if matches is None else {IN_ALL: matches}
    return replace(_of_events(wanted), results=min(known) if known else None, at_most=True, further=further)


def _rows_of_boards(wanted: Wanted, ranking: Ranking) -> float | None:
    """How many rows there are if every window and partition has as many as wanted."""
    partitions = wanted.statistics.spread(() if ranking.overall else wanted.plan.partition)
    windows = wanted.statistics.windows(wanted.plan.window)
    return None if partitions is None or windows is None else ranking.limit * partitions.distinct * windows


def estimate_totals(wanted: Wanted) -> Estimate | None:
    """Rows of groups and windows, of which some may have no match."""
    statistics = wanted.statistics
    if statistics.events is None:
        return None
    groups, windows = statistics.spread(wanted.plan.group_by), statistics.windows(wanted.plan.window)
    number = None if groups is None or windows is None else groups.distinct * windows
    return replace(_of_events(wanted), results=number, at_most=True)


def estimate_graph(wanted: Wanted, graph: Complete) -> Estimate | None:
    """Edges of a trend graph; how many trends it has, only the graph tells."""
    if wanted.statistics.events is None:
        return None
    edges = _edges(wanted, graph)
    return replace(_of_events(wanted), further={} if edges is None else {EDGES: edges})


def _of_events(wanted: Wanted) -> Estimate:
    statistics, events = wanted.statistics, wanted.statistics.relevant
    read = set().union(*(columns(rule.expr) for scope in wanted.detection.scopes for rule in scope.rules))
    held = None if events is None else events * NUMBER * (TIME_AND_ROW + len(read))
    return Estimate(statistics.origin, statistics.events, events, bytes=held)


def _edges(wanted: Wanted, graph: Complete) -> float | None:
    statistics = wanted.statistics
    events, spread = statistics.fitting.get(0), statistics.spread(wanted.plan.keys)
    time = statistics.share_of_time(wanted.plan.window)
    compared = bool(graph.pairs or graph.tests)
    passing = statistics.passing.get((0, 0)) if compared else 1.0
    if events is None or spread is None or time is None or passing is None:
        return None
    if not events or not passing:
        return 0.0
    found = 0.0
    for count, share in spread.classes():
        after = events * share * time
        found += count * events * share * min(_edges_each(graph, passing, after, whole=time == 1), after)
    return found


def _edges_each(graph: Complete, passing: float, after: float, *, whole: bool) -> float:
    """Edges from an event with so many after it."""
    operator = graph.pairs[0].operator if len(graph.pairs) == 1 and not graph.tests else None
    if operator == "=":
        return float(1 - (1 - passing) ** after)
    if operator in ("<", "<=", ">", ">="):
        return 2 * passing * _ordered(after, whole=whole)
    return float(1 - (1 - passing**2) ** after) / passing


def _ordered(after: float, *, whole: bool) -> float:
    """1/2 + ... + 1/(n+1); `whole`: its mean over the events of a key, which have ever fewer after them."""
    steps = log1p(after / 1.5)
    return max(steps - 1 + (steps + 1) / after, 0.0) if whole else steps
