"""Which component of a rank join is read next, and how far.

A join has to reach a boundary (see `boundaries`) behind which nothing is good enough. Round robin reaches the one where
all components were read equally far. Where a threshold decides, others are cheaper. Take the greatest of two scores,
and a k-th result of 7: nothing unseen is better as soon as *one* of the components has come to 7, so the other one is
read in vain; take the sum, and a component whose accesses cost ten times as much: the cheap one is read until its
scores hardly rise any more.

`WasteAvoiding` looks for the cheapest boundary (WABS: X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k
Pattern Queries over Event Streams", figures 3.11 to 3.13). As there, nothing is assumed about scores: what it took to
come to earlier boundaries says which component comes to the next one at the least cost, by costs as they were measured.
The thesis looks at the boundary of the result before and reads on in its ratio, after round robin for two results. Here
the look back begins with the first batch, and what has been read already is not paid for again:

- greatest of the scores: up to the highest score that all components have passed, their depths compare what they cost
  from score to score; the one that has least left to pay is read, on and on;
- sums and means: the one whose score has risen most for what it cost, over the last quarter of what it gave;
- least of the scores, and all corner bounds: every component has to come to its own depth, and only the one that holds
  the bound down can raise it: it is read. No boundary is cheaper than this one, whatever accesses cost.

A twentieth of the cost goes to components that are not read, so that a wrong choice is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.ranking.joins.boundaries import Frontier
from trendloom.kernels.ranking.joins.merging import MAX, MIN

PROBES = 0.05
"""The share of the cost that is spent on components which seem to be too expensive."""
FIRST = 1 << 8
LEAST = 3
"""Which part of a batch is read at the least: what a target is expected to be away is an estimate."""
RECENT = 4
"""Which part of its entries says how a component rises."""


class JoinProgress:
    """What a schedule may know: how far each component was read, what it gave, and what accesses cost."""

    def __init__(self, frontier: Frontier, components: int) -> None:
        self.frontier = frontier
        self.lookups = [0] * components
        self.spent = 0.0
        self.read = 0
        """Entries that were pulled of all components, also before a restart."""
        self.batch = 1
        self.costs = [1.0] * components
        """Of a sorted access, with the lookups that follow from it."""
        self.target: Any = None
        """The score of the k-th result so far; None if there are fewer."""
        self.found = np.zeros(0)
        """The scores of the results so far, in any order."""
        self.depths = [0] * components
        self.before = self.depths
        """How far components were read before the last restart."""
        self.restart()

    def restart(self) -> None:
        """Components give their entries from the first one on."""
        components = len(self.lookups)
        self.before = self.depths
        self.depths = [0] * components
        self._scores: list[Array] = [np.empty(FIRST)] * components
        self._new = [0] * components

    def note_pulled(self, component: int, scores: Array, cost: float) -> None:
        before, depth = self.depths[component], self.depths[component] + len(scores)
        kept = self._scores[component]
        if before == 0 or depth > len(kept):
            kept = np.empty(max(FIRST, 2 * depth), scores.dtype)
            kept[:before] = self._scores[component][:before]
            self._scores[component] = kept
        kept[before:depth] = scores
        self.depths[component] = depth
        self.read += len(scores)
        self.spent += cost * len(scores)

    def note_new(self, component: int, keys: int) -> None:
        self._new[component] += keys

    def note_lookups(self, component: int, keys: int, cost: float) -> None:
        self.lookups[component] += keys
        self.spent += cost * keys

    def new_share(self, component: int) -> float:
        """Which share of the entries of a component had keys that were not known."""
        return (self._new[component] + 1) / (self.depths[component] + 1)

    def scores(self, component: int) -> Array:
        """All scores that a component has given, in order."""
        return self._scores[component][: self.depths[component]]

    def open(self) -> list[int]:
        """The components that have more to give."""
        return [number for number, done in enumerate(self.frontier.exhausted) if not done]

    def back(self, component: int) -> int:
        """How many entries back a look at the recent rise of a component goes."""
        depth = self.depths[component]
        return min(depth - 1, max(self.batch, depth // RECENT))

    def slope(self, component: int) -> float:
        """By how much the score of a component has lately risen per entry."""
        back = self.back(component)
        return (self.frontier.lasts[component] - self.earlier(component, back)) / back if back > 0 else 0.0

    def earlier(self, component: int, back: int) -> Any:
        """The score that a component gave so many entries before its last one."""
        return self._scores[component].item(self.depths[component] - 1 - back)


class Schedule(Protocol):
    """How accesses are distributed."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        """How many entries to pull of each component before it is asked again: at least one of one that has more."""


class RoundRobin:
    """Every component as far as every other one: what TA and NRA do."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        return [progress.batch] * len(progress.depths)


class WasteAvoiding:
    """The cheapest way to the next boundary, by what it took to come to those before."""

    def choose(self, progress: JoinProgress) -> Sequence[int]:
        frontier = progress.frontier
        if any(progress.depths[each] == 0 for each in progress.open()):
            return [0 if depth else max(progress.batch, before // 2) for depth, before in _depths(progress)]
        if not frontier.completed or frontier.merge == MIN:
            return _raise_lowest(progress)
        if frontier.merge == MAX:
            rising = _nearest(progress)
        else:
            rising = max(progress.open(), key=lambda each: progress.slope(each) / progress.costs[each])
        wanted = _probes(progress, rising)
        wanted[rising] = _distance(progress, rising)
        return wanted


def _depths(progress: JoinProgress) -> Iterator[tuple[int, int]]:
    """How far each component was read, and how far before a restart: half of that will do no harm."""
    return zip(progress.depths, progress.before, strict=True)


def _distance(progress: JoinProgress, component: int) -> int:
    """As many entries as a round of round robin has, or fewer if the target should be nearer than that."""
    most = progress.batch * len(progress.depths)
    slope, bound = progress.slope(component), progress.frontier.bound()
    if progress.target is None or slope <= 0:
        return most
    return max(progress.batch // LEAST, min(most, 1 + int(min((progress.target - bound) / slope, most))))


def _probes(progress: JoinProgress, rising: int) -> list[int]:
    """What the other components are owed of their share of the cost."""
    share = PROBES * progress.spent / max(1, len(progress.depths) - 1)
    owed = [int(share / cost) - depth for cost, depth in zip(progress.costs, progress.depths, strict=True)]
    return [
        min(more, progress.batch) if more >= progress.batch / 2 and number != rising else 0
        for number, more in enumerate(owed)
    ]


def _raise_lowest(progress: JoinProgress) -> list[int]:
    """A batch of the component that holds the bound down, and of others what brings them as far as that one will be."""
    frontier, candidates = progress.frontier, progress.open()

    def height(component: int, score: Any) -> Any:
        return score if frontier.completed else frontier.corner(component, score)

    heights, rises = {}, {}
    for each in candidates:
        back = progress.back(each)
        heights[each] = height(each, frontier.lasts[each])
        rises[each] = (heights[each] - height(each, progress.earlier(each, back))) / max(1, back)
    lowest = min(candidates, key=lambda each: (heights[each], progress.costs[each]))
    batch = progress.batch + progress.batch // 2
    level = heights[lowest] + rises[lowest] * batch
    if progress.target is not None:
        level = min(level, progress.target)
    wanted = [0] * len(progress.depths)
    for each in candidates:
        if heights[each] <= level:
            missing = (level - heights[each]) / rises[each] if rises[each] > 0 else batch
            wanted[each] = max(progress.batch // LEAST, min(batch, 1 + int(min(missing, batch))))
    return wanted


def _nearest(progress: JoinProgress) -> int:
    """The component that comes to the target at the least cost.

    The one that is ahead is taken to rise as it did lately, for as many entries as it has given. Others, which were
    hardly read, are compared with it: at the highest score that all have passed, their depths tell how they compare,
    and the one ahead tells how depth has grown since. If that one has ceased to rise, any other is nearer.
    """
    lasts, numbers = progress.frontier.lasts, range(len(progress.depths))
    common, ahead = min(lasts), max(numbers, key=lambda each: lasts[each])
    passed = [max(1, int(np.searchsorted(progress.scores(each), common, side="right"))) for each in numbers]
    slope, depth = progress.slope(ahead), progress.depths[ahead]
    missing = float(depth)
    if slope <= 0:
        missing = math.inf
    elif progress.target is not None:
        missing = min(missing, (progress.target - lasts[ahead]) / slope + 1)
    growth = (depth + min(missing, depth)) / passed[ahead]

    def distance(component: int) -> float:
        far = missing if component == ahead else max(1.0, growth * passed[component] - progress.depths[component])
        return progress.costs[component] * far

    return min(progress.open(), key=distance)
