"""Figures of a run, estimated by the statistics of its stream.

- rows of a search: the matches, by `expected_matches`; at most so many where not only neighbours decide about them;
- rows of ranked matches: the k best of each window and partition, if there are so many matches;
- rows of aggregates: a group and window each, so at most groups · windows;
- edges of a trend graph: with D events of a key in a window and a share s of neighbours that pass, an edge leads from
  an event to the d-th after it if they pass and no event between them passes with both. As if pairs were independent,
  that is s·(1-s²)^(d-1), in all (1-(1-s²)^D)/s for each event. Equal values are a chain: 1-(1-s)^D. Where values of
  one column are put in order, s is about a half, and the d-th after an event is above it with none between them with
  probability 1/(d+1), so that each has 2s·(1/2 + ... + 1/(D+1)) edges;
- bytes: the numbers of a block, which holds the events that fit a position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log1p
from typing import TYPE_CHECKING

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import columns
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.logical.plan import Projection, Ranking
from trendloom.logical.statistics import KeySpread, Statistics
from trendloom.model.selection import Trends
from trendloom.model.time import Window
from trendloom.planner.adjacency import neighbours_of
from trendloom.planner.request import Estimate, PlanningRequest

if TYPE_CHECKING:
    from trendloom.kernels.trends.graph import Complete


MOST_STATES = 64
POINTS = 16
"""Into how many stretches an interval is cut to take the mean over it."""
EDGES = "edges"
NUMBER = 8
"""Bytes of a number."""
TIME_AND_ROW = 2


def expected_matches(pattern_spec: PatternSpec, statistics: Statistics, spread: KeySpread | None) -> float | None:
    """The number of matches, in every window that has them; None: the statistics do not suffice.

    As if every event were drawn from all of them independently. Let N be the events of the stream, q(p) the share that
    fits position p, s(p, r) the share of neighbours that pass the conditions between positions p and r, and Q the
    matrix of the template with q(r) · s(p, r) for a step from a state at p to one at r. An event is of a key and in an
    interval with probability w: the key's share of the events times the interval's share of the time.

    - skip-till-any-match: every event is taken or not, so the partial matches in an interval are (I + w·Q)^N, and the
      matches there G(w) = start · (I + w·Q)^N · accept. With a bare WITHIN that is a part c of the time, a match begins
      at any of the N events and goes on for that long, or to the end of the stream:
      (1 - c) · N · begin · (I + w·Q)^(N-1) · accept + G(w). Sliding windows are intervals, shorter at both ends.
    - skip-till-next-match: a run takes what fits next: a Markov chain that moves with w·Q and stays otherwise, and
      whose matches are the visits to accepting states. contiguous: it moves with Q at every event of its key, or ends.

    Cost: O(states³ · log N), for some twenty matrices. Ties are left out, and so are NOTs and conditions on events that
    are not neighbours: then the number is rather an upper bound.
    """
    chain = _chain_of(pattern_spec, statistics)
    time = statistics.share_of_time(pattern_spec.window)
    if chain is None or time is None or spread is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        found = sum(count * chain.matches(share, time, statistics) for count, share in spread.classes())
    return float("inf") if np.isnan(found) else float(found)


@dataclass(frozen=True, eq=False)
class _LikelySteps:
    """The template in numbers: `begin` and `steps` are probabilities, `accepts` is 1 where a match can end."""

    pattern_spec: PatternSpec
    events: float
    begin: Array
    steps: Array
    accepts: Array

    def matches(self, share: float, time: float, statistics: Statistics) -> float:
        """Those of one key, which has this share of the events, in windows with this share of the time."""
        window = self.pattern_spec.window
        if window.slide is not None:
            assert statistics.span is not None
            return self._in_windows(share, window, statistics.span)
        if self.pattern_spec.earliest or self.pattern_spec.adjacent:
            begun = self.events * share
            return begun * (
                (1 - time) * self._followed(share, time) + _integral(lambda t: self._followed(share, t), time)
            )
        rest = (1 - time) * self.events * share * self._after_begin(share * time) if time < 1 else 0.0
        return rest + self._within(share, time)

    def _in_windows(self, share: float, window: Window, span: int) -> float:
        """Windows that lie in the stream (or the stream in them), and shorter ones at both ends."""
        assert window.within is not None
        assert window.slide is not None
        time = min(window.within / span, 1.0)
        inside = abs(window.within - span) / window.slide
        ends = 2 * span / window.slide
        return inside * self._within(share, time) + ends * _integral(lambda t: self._within(share, t), time)

    def _within(self, share: float, time: float) -> float:
        """Matches in an interval."""
        if self.pattern_spec.earliest or self.pattern_spec.adjacent:
            return self.events * share * _integral(lambda t: self._followed(share, t), time)
        size = len(self.begin)
        whole = np.zeros((size + 1, size + 1))
        whole[0, 1:], whole[1:, 1:] = self.begin, self.steps
        grown = np.linalg.matrix_power(np.eye(size + 1) + share * time * whole, round(self.events))
        return float(grown[0, 1:] @ self.accepts)

    def _after_begin(self, share: float) -> float:
        """Matches that begin with an event, which may be any, under skip-till-any-match."""
        grown = np.linalg.matrix_power(np.eye(len(self.begin)) + share * self.steps, max(round(self.events) - 1, 0))
        return float(self.begin @ grown @ self.accepts)

    def _followed(self, share: float, time: float) -> float:
        """Matches of the run that begins with an event, which may be any, in the time after it."""
        contiguous = self.pattern_spec.adjacent
        moves = self.steps if contiguous else share * time * self.steps
        moves = moves / np.maximum(moves.sum(axis=1, keepdims=True), 1.0)
        size = len(moves)
        chain = np.zeros((size + 1, size + 1))
        chain[:size, :size] = moves if contiguous else moves + np.diag(1 - moves.sum(axis=1))
        chain[:size, size], chain[size, size] = moves @ self.accepts, 1.0
        seen = self.events * share * time if contiguous else self.events - 1
        counted = np.linalg.matrix_power(chain, max(round(seen), 0))[:size, size]
        return float(self.begin @ (self.accepts + counted))


def _chain_of(pattern_spec: PatternSpec, statistics: Statistics) -> _LikelySteps | None:
    template, events = pattern_spec.scopes[0].template, statistics.events
    size = len(template.position_of)
    known = all(position in statistics.fitting for position in template.position_of)
    if events is None or not known or size > MOST_STATES:
        return None
    if events < 1:
        return _LikelySteps(pattern_spec, 0.0, np.zeros(size), np.zeros((size, size)), np.zeros(size))
    fits = {position: statistics.fitting[position] / events for position in template.position_of}
    begin, steps = np.zeros(size), np.zeros((size, size))
    for edge in template.starts:
        begin[edge.target] = fits[edge.position]
    conditions = neighbours_of(pattern_spec).conditions
    for state, edges in enumerate(template.edges):
        for edge in edges:
            pair = template.position_of[state], edge.position
            passing = statistics.passing.get(pair) if pair in conditions else 1.0
            if passing is None:
                return None
            steps[state, edge.target] = fits[edge.position] * passing
    return _LikelySteps(pattern_spec, events, begin, steps, np.array([float(bool(ways)) for ways in template.accepts]))


def _integral(function: Callable[[float], float], until: float) -> float:
    """From 0 on, by the values in the middle of equal stretches."""
    return sum(function(until * (point + 0.5) / POINTS) for point in range(POINTS)) * until / POINTS


def estimate_search(request: PlanningRequest) -> Estimate | None:
    """Rows of a search for matches, whatever the plan returns of them."""
    if request.statistics.events is None:
        return None
    if request.aggregates:
        return estimate_totals(request)
    statistics, output = request.statistics, request.plan.output
    number = expected_matches(request.pattern_spec, statistics, statistics.spread(request.plan.keys))
    if request.plan.ranking is not None:
        return _ranked(request, request.plan.ranking, number)
    a_row_each = (output is Trends.ALL or isinstance(output, Projection)) and not request.plan.hidden
    return replace(
        _of_events(request), results=number, at_most=not (a_row_each and neighbours_of(request.pattern_spec).whole)
    )


def _ranked(request: PlanningRequest, ranking: Ranking, matches: float | None) -> Estimate:
    """Rows of ranked matches: the k best of each window and partition, of which some may have fewer."""
    known = [number for number in (matches, _rows_of_boards(request, ranking)) if number is not None]
    from trendloom.kernels.ranking.kernel import IN_ALL

    further = {} if matches is None else {IN_ALL: matches}
    return replace(_of_events(request), results=min(known) if known else None, at_most=True, further=further)


def _rows_of_boards(request: PlanningRequest, ranking: Ranking) -> float | None:
    """How many rows there are if every window and partition has k matches."""
    partitions = request.statistics.spread(() if ranking.overall else request.plan.partition)
    windows = request.statistics.windows(request.plan.window)
    return None if partitions is None or windows is None else ranking.limit * partitions.distinct * windows


def estimate_totals(request: PlanningRequest) -> Estimate | None:
    """Rows of groups and windows, of which some may have no match."""
    statistics = request.statistics
    if statistics.events is None:
        return None
    groups, windows = statistics.spread(request.plan.group_by), statistics.windows(request.plan.window)
    number = None if groups is None or windows is None else groups.distinct * windows
    return replace(_of_events(request), results=number, at_most=True)


def estimate_graph(request: PlanningRequest, graph: Complete) -> Estimate | None:
    """Edges of a trend graph; the number of its trends is not estimated."""
    if request.statistics.events is None:
        return None
    edges = _edges(request, graph)
    return replace(_of_events(request), further={} if edges is None else {EDGES: edges})


def _of_events(request: PlanningRequest) -> Estimate:
    statistics, events = request.statistics, request.statistics.relevant
    read = set().union(*(columns(rule.expr) for scope in request.pattern_spec.scopes for rule in scope.rules))
    held = None if events is None else events * NUMBER * (TIME_AND_ROW + len(read))
    return Estimate(statistics.origin, statistics.events, events, bytes=held)


def _edges(request: PlanningRequest, graph: Complete) -> float | None:
    statistics = request.statistics
    events, spread = statistics.fitting.get(0), statistics.spread(request.plan.keys)
    time = statistics.share_of_time(request.plan.window)
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
