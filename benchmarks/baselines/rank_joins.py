"""How others distribute the accesses of a rank join, and how they join again when a window moves on.

- Gradient: U. Güntzer, W.-T. Balke, W. Kießling, "Optimizing Multi-Feature Queries for Image Databases": the component
  whose score has risen most over its last entries is read next. Costs are not looked at.
- Statistics: S. Hwang, K. Chang, "Optimizing Top-k Queries for Middleware Access: A Unified Cost-Based Approach": the
  depths are planned beforehand, such that the threshold is reached at the least cost on a sample. As in the thesis that
  is named below, the sample is what has been read; scores are taken to go on as they did so far, and plans are renewed.
- Ratios: waste-avoiding boundary selection as it is printed, in figure 3.12 of X. Wang, "CPR: Complex Pattern Ranking
  for Evaluating Top-k Pattern Queries over Event Streams": round robin for two results; then the cheapest boundary of
  the result before the last one, among all entries read, gives the ratio in which components are read on.
- nTMM (4.5 in the same thesis): when a window has moved on, sequences that were enumerated are not enumerated again,
  but the join begins again. `JoinedAgain` does that; `StartedAgain` enumerates again, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trendloom.kernels.ranking.joins.boundaries import Frontier
from trendloom.kernels.ranking.joins.components import ArrayComponent, Component, Entries, MergedComponent
from trendloom.kernels.ranking.joins.merging import merged
from trendloom.kernels.ranking.joins.rank_join import RankedRows, RankJoin
from trendloom.kernels.ranking.joins.schedules import JoinProgress, RoundRobin
from trendloom.kernels.ranking.joins.sliding import SlidingComponent, valid

Array = np.ndarray[Any, Any]

POINTS = 24
"""Depths of a component among which a boundary is looked for."""


class Gradient:
    """The steepest component next."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        if any(depth == 0 for depth in progress.depths):
            return RoundRobin().choose(progress)
        rises = [_last_rise(progress, number) if number in progress.open() else -1.0 for number in _numbers(progress)]
        steepest = int(np.argmax(rises))
        return [progress.batch * len(rises) if number == steepest else 0 for number in _numbers(progress)]


class Statistics:
    """The cheapest depths for the target, by a sample of what was read."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        if progress.target is None or any(depth == 0 for depth in progress.depths):
            return RoundRobin().choose(progress)
        curves = [_extended(progress, number) for number in _numbers(progress)]
        planned = cheapest_boundary(progress, curves, float(progress.target))
        missing = np.maximum(np.array(planned) - progress.depths, 0)
        return _in_ratio(progress, missing)


class Ratios:
    """Components are read on in the ratio of the cheapest boundary of a result before."""

    def __init__(self) -> None:
        self._found = 0
        self._ratio: Array | None = None

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        bound = None if any(depth == 0 for depth in progress.depths) else progress.frontier.bound()
        certain = np.sort(progress.found[progress.found <= bound]) if bound is not None else np.zeros(0)
        if len(certain) > max(1, self._found):
            self._found = len(certain)
            curves = [(scores := progress.scores(number), _some(len(scores))) for number in _numbers(progress)]
            read = [(scores[depths - 1], depths) for scores, depths in curves]
            self._ratio = np.array(cheapest_boundary(progress, read, float(certain[-2])))
        if self._ratio is None:
            return RoundRobin().choose(progress)
        return _in_ratio(progress, self._ratio)


def cheapest_boundary(progress: JoinProgress, curves: Sequence[tuple[Array, Array]], target: float) -> list[int]:
    """Of all combinations of depths, with their scores, the cheapest one that bounds what is unseen by the target."""
    scores = np.meshgrid(*(scores for scores, _ in curves), indexing="ij")
    depths = np.meshgrid(*(depths for _, depths in curves), indexing="ij")
    cost = sum(each * cost for each, cost in zip(depths, progress.costs, strict=True))
    reached = _bounds(progress.frontier, scores) >= target
    if not reached.any():
        return [int(each[-1]) for _, each in curves]
    at = np.unravel_index(int(np.argmin(np.where(reached, cost, np.inf))), cost.shape)
    return [int(each[place]) for (_, each), place in zip(curves, at, strict=True)]


def _bounds(frontier: Frontier, lasts: Sequence[Array]) -> Array:
    if frontier.completed:
        return merged(frontier.merge, lasts)
    tops = [np.full_like(last, top) for last, top in zip(lasts, frontier.tops, strict=True)]
    corners = [merged(frontier.merge, [*tops[:each], last, *tops[each + 1 :]]) for each, last in enumerate(lasts)]
    return np.minimum.reduce(corners)


def _numbers(progress: JoinProgress) -> range:
    return range(len(progress.depths))


def _last_rise(progress: JoinProgress, number: int) -> float:
    scores = progress.scores(number)
    return float(scores[-1] - scores[-1 - min(len(scores) - 1, progress.batch)])


def _some(count: int) -> Array:
    """Depths from none to all."""
    return np.unique(np.linspace(1, count, min(count, POINTS)).astype(np.int64))


def _extended(progress: JoinProgress, number: int) -> tuple[Array, Array]:
    """Scores as read, and then as far again as all components together, at the mean rise so far."""
    scores, depth = progress.scores(number).astype(np.float64), progress.depths[number]
    further = np.linspace(0, max(depth, sum(progress.depths)), POINTS).astype(np.int64)
    rise = (scores[-1] - scores[0]) / depth
    return scores[-1] + rise * further, depth + further


def _in_ratio(progress: JoinProgress, ratio: Array) -> Sequence[int]:
    """A round of accesses in some ratio, among components that have more."""
    ratio = np.where([number in progress.open() for number in _numbers(progress)], ratio, 0).astype(np.float64)
    if ratio.sum() <= 0:
        return RoundRobin().choose(progress)
    counts = np.rint(ratio / ratio.sum() * progress.batch * len(ratio)).astype(np.int64)
    counts[int(np.argmax(ratio))] += int(counts.sum() == 0)
    return [int(count) for count in counts]


# ------------------------------------------------------------------------------------------------ moving windows


class _Recorded:
    """A component that remembers what it gave."""

    def __init__(self, component: SlidingComponent) -> None:
        self.component = component
        self.positions, self.cost = component.positions, 1.0
        self._given = [component.pull(0)]

    @property
    def exhausted(self) -> bool:
        return self.component.exhausted

    @property
    def given(self) -> Entries:
        scores, events = zip(*self._given, strict=True)
        return Entries(np.concatenate(scores), np.concatenate(events))

    def pull(self, count: int) -> Entries:
        more = self.component.pull(count)
        self._given.append(more)
        return more

    def slide(self, low: int, high: int) -> None:
        self.component.slide(low, high)
        self._given = [valid(self.given, low)]


class JoinedAgain:
    """A join that begins again in every window, of sequences that are enumerated once."""

    def __init__(self, components: Sequence[SlidingComponent], join: Callable[[Sequence[Component]], RankJoin]) -> None:
        self._components, self._join = [_Recorded(component) for component in components], join

    def best(self, k: int) -> RankedRows:
        return self._join([MergedComponent([ArrayComponent(*each.given), each]) for each in self._components]).best(k)

    def slide(self, low: int, high: int) -> None:
        for component in self._components:
            component.slide(low, high)


class StartedAgain:
    """A join of sequences that are enumerated again in every window."""

    def __init__(
        self, components: Callable[[int, int], Sequence[Component]], join: Callable[[Sequence[Component]], RankJoin],
        low: int, high: int,
    ) -> None:  # fmt: skip
        self._components, self._join = components, join
        self._window = low, high

    def best(self, k: int) -> RankedRows:
        return self._join(self._components(*self._window)).best(k)

    def slide(self, low: int, high: int) -> None:
        self._window = low, high
