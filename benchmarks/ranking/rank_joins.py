"""Rank joins: the schedule of queries beside round robin, and sequences by parts beside listing them.

The experiments are those of X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event
Streams", 4.4 and 4.5, as far as queries meet them: sorted access alone. Smaller scores are better here, so its merge
function `min` is the greatest of the scores.

k = 50, queues of 10,000 entries with unique ids, joined by them; at a relative join selectivity of 0.1 one of ten pairs
with the same id passes. Access costs are units: a queue of cost 10 spends ten times as much processor time for an entry
as one of cost 1. Cost is counted over five data sets; time is measured for two of them, accesses included. `at best` is
what the cheapest boundary of all would have cost, known only afterwards.

Queries with MERGE, from events to rows: `benchmarks/ranking/merged_queries.py`.

`python -m benchmarks.run --only joins` runs all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.baselines.rank_joins import ArrayComponent, round_robin
from benchmarks.harness.compiled import njit
from benchmarks.harness.report import Report, race
from benchmarks.ranking.merged_queries import measure_merged_queries
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.kernels.ranking.join_entries import MERGES, Component, Entries, MergeName, merged
from trendloom.kernels.ranking.parts import Parts, best_of_parts
from trendloom.kernels.ranking.rank_join import JoinConditions, RankJoin, Schedule, waste_avoiding

Array = np.ndarray[Any, Any]

K, ENTRIES, SETS, TIMED = 50, 10_000, 5, 2
STEPS = 4_000
"""Of a loop that takes some microseconds: the time of one unit of cost."""
ROUND_ROBIN, OURS = "round robin", "waste-avoiding"
SCHEDULES: dict[str, Schedule] = {ROUND_ROBIN: round_robin, OURS: waste_avoiding}
SLOWER = 0.95
"""A goal: beside round robin at the least."""
EQUAL, DEAR_ACCESS = (1, 1, 1), (10, 1, 1)


def measure_rank_joins(report: Report, *, quick: bool = False) -> None:
    """All of it."""
    with compiled_first():
        for setting in settings(quick=quick):
            measure_schedules(report, setting, 1 if quick else 2)
        measure_parts(report, quick=quick)
        measure_merged_queries(report, quick=quick)


# ---------------------------------------------------------------------------------------------------- schedules


@dataclass(frozen=True)
class Setting:
    """Parameters of table 4.4."""

    queues: int
    merge: MergeName = "avg"
    distribution: str = "uniform"
    selectivity: float = 1.0
    costs: tuple[int, ...] = EQUAL
    k: int = K

    def __str__(self) -> str:
        costs = ":".join(map(str, self.costs[: self.queues]))
        return f"q={self.queues} {self.merge} {self.distribution} rjs={self.selectivity:g} k={self.k} [{costs}]"


def settings(*, quick: bool) -> list[Setting]:
    """Each parameter beside the others' defaults."""
    if quick:
        return [Setting(2), Setting(3)]
    merges: tuple[MergeName, ...] = ("avg", "max", "min")
    found = [Setting(queues, merge) for merge in merges for queues in (2, 3)]
    found += [Setting(2, distribution=name, costs=DEAR_ACCESS) for name in ("uniform", "normal", "zipf")]
    return [*found, Setting(2, selectivity=0.1, costs=DEAR_ACCESS)]


@njit
def _spend(steps: int) -> float:
    value = 1.0
    for _ in range(steps):
        value = value * 0.999999 + 1e-9
    return value


class CostlyComponent:
    """A queue whose accesses take their cost in processor time."""

    def __init__(self, component: ArrayComponent) -> None:
        self._component = component
        self.positions, self.cost = component.positions, component.cost

    @property
    def exhausted(self) -> bool:
        return self._component.exhausted

    def pull(self, count: int) -> Entries:
        found = self._component.pull(count)
        _spend(int(self.cost * len(found.scores)) * STEPS)
        return found


def drawn(random: np.random.Generator, distribution: str) -> Array:
    """Scores, smaller better: Zipf's are few good ones and many that hardly differ."""
    if distribution == "uniform":
        return random.random(ENTRIES)
    if distribution == "normal":
        return random.normal(size=ENTRIES)
    return 1 - 1 / np.sqrt(1.0 + random.permutation(ENTRIES))


@dataclass(frozen=True)
class DataSet:
    """The scores of each queue by id, and which ids join."""

    scores: tuple[Array, ...]
    joins: Array

    def join(self, setting: Setting, schedule: Schedule, *, takes_time: bool) -> RankJoin:
        ids = np.arange(ENTRIES).reshape(-1, 1)
        components: list[Component] = []
        for scores, cost in zip(self.scores, setting.costs, strict=False):
            queue = ArrayComponent(scores, ids, cost=cost)
            components.append(CostlyComponent(queue) if takes_time else queue)
        residual = None if self.joins.all() else lambda events: self.joins[events[0][:, 0]]
        conditions = JoinConditions([lambda events: events] * setting.queues, residual=residual)
        return RankJoin(components, setting.merge, conditions, schedule=schedule)

    def least_cost(self, setting: Setting, last_score: float) -> float:
        """Of all boundaries, of 60 depths of each queue, that bound what is unseen by the score of the last result."""
        some = np.unique(np.geomspace(1, ENTRIES, 60).astype(np.int64))
        ranked = [np.sort(scores) for scores in self.scores]
        merge = MERGES.index(setting.merge)
        depths = np.meshgrid(*[some] * setting.queues, indexing="ij")
        lasts = [scores[depth - 1] for scores, depth in zip(ranked, depths, strict=True)]
        tops = [np.full_like(last, scores[0]) for last, scores in zip(lasts, ranked, strict=True)]
        corners = [merged(merge, [*tops[:q], last, *tops[q + 1 :]]) for q, last in enumerate(lasts)]
        bounds, costs = np.minimum.reduce(corners), list(setting.costs[: setting.queues])
        whole = sum(depth * cost for depth, cost in zip(depths, costs, strict=True))
        return float(np.where(bounds >= last_score, whole, sum(costs) * ENTRIES).min())


def data_set(setting: Setting, seed: int) -> DataSet:
    random = np.random.default_rng(seed)
    scores = tuple(drawn(random, setting.distribution) for _ in range(setting.queues))
    return DataSet(scores, random.random(ENTRIES) < setting.selectivity)


def measure_schedules(report: Report, setting: Setting, tries: int) -> None:
    """All schedules: the cost of their accesses, and the time they take."""
    sets = [data_set(setting, seed) for seed in range(SETS)]
    spent: dict[str, float] = {}
    answers = []
    for name, schedule in SCHEDULES.items():
        joins = [each.join(setting, schedule, takes_time=False) for each in sets]
        answers.append([join.best(setting.k, 0).scores for join in joins])
        spent[name] = sum(
            depth * cost for join in joins for depth, cost in zip(join.frontier.depths, setting.costs, strict=False)
        )
    assert all(np.array_equal(one, other) for some in answers for one, other in zip(some, answers[0], strict=True))
    last = [scores[-1] for scores in answers[0]]
    least = sum(each.least_cost(setting, score) for each, score in zip(sets, last, strict=True))
    possible = spent[ROUND_ROBIN] / least

    def run(schedule: Schedule) -> Any:
        return [each.join(setting, schedule, takes_time=True).best(setting.k, 0).scores for each in sets[:TIMED]]

    timings = race(tries, {name: partial(run, schedule) for name, schedule in SCHEDULES.items()}, on_processor=True)
    entries = TIMED * setting.queues * ENTRIES
    rate = entries / timings[ROUND_ROBIN].best
    for name, timing in timings.items():
        ratio = spent[ROUND_ROBIN] / spent[name]
        note = f"cost {spent[name] / SETS:,.0f}, {ratio:.2f} of {ROUND_ROBIN}; at best {possible:.2f}"
        result = timing.result(f"{setting}: {name}", entries, rows=TIMED * setting.k, checked=True).noting(note)
        if name != ROUND_ROBIN:
            result = result.against(ROUND_ROBIN, rate)
        if name == OURS:
            result = result.with_goal(f"≥ {SLOWER} in cost and time", min(ratio, result.ratio or 0.0) >= SLOWER)
        report.add(result)


# ---------------------------------------------------------------------------------------------------- parts


def sequence(classes: Array, weights: Array, score: Callable[[list[Array]], Array]) -> Parts:
    """Three events of three classes in order."""
    events = [np.flatnonzero(classes == position) for position in range(3)]
    return Parts(events, [weights[each] for each in events], np.arange(len(classes)) + 1, score, [True] * 3)


def norm(parts: list[Array]) -> Array:
    """A nonlinear preference: the root of the sum of squares."""
    return np.sqrt(parts[0] ** 2 + parts[1] ** 2 + parts[2] ** 2)


def measure_parts(report: Report, *, quick: bool) -> None:
    """A nonlinear preference by rank join beside listing all sequences."""
    for size in (300, 1_000) if quick else (300, 1_000, 1_000_000):
        random = np.random.default_rng(45)
        parts = sequence(random.integers(0, 6, size), random.random(size), norm)
        low, high = np.array([0]), np.array([size])
        contenders = {"rank join": partial(best_of_parts, parts, low, high, 10, most=0, listed=0)}
        if size <= 1_000:
            contenders["all listed"] = partial(best_of_parts, parts, low, high, 10, most=0, listed=2**62)
        timings = race(3, contenders, on_processor=True)
        listed = timings.get("all listed")
        checked = listed is not None and np.array_equal(listed.answer.scores, timings["rank join"].answer.scores)
        for name, timing in timings.items():
            result = timing.result(f"root of squares, {size:,} events: {name}", size, rows=10, checked=checked)
            report.add(result if listed is None else result.against("all listed", size / listed.best))
