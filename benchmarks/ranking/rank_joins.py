"""Rank joins: schedules beside each other, joins that go on beside joins that begin again, and sequences by parts.

The experiments are those of X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event
Streams", 4.4 and 4.5. Smaller scores are better here, so its merge function `min` is the greatest of the scores.

Schedules (table 4.4): k = 50, queues of 10,000 entries with unique ids, joined by them; at a relative join selectivity
of 0.1 one of ten pairs with the same id passes. Access costs are units: a queue of cost 10 spends ten times as much
processor time for an entry as one of cost 1, and a lookup of cost 1 as much as an access of cost 1. Cost is counted
over five data sets; time is measured for two of them, accesses included. `at best` is what the cheapest boundary of all
would have cost, known only afterwards: a goal of twice round robin stands where that is possible at all.

Windows (4.5): two sequences of three events each, the second after the first, by sensors that are next to each other;
each window overlaps half of the one before, or nine tenths. Both recomputations are shown, with sequences kept (nTMM)
and started again; which of them is quicker depends on what it takes to enumerate a sequence.

Queries with MERGE, from events to rows: `benchmarks/ranking/merged_queries.py`.

`python -m benchmarks.run --only joins` runs all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.baselines.rank_joins import Gradient, JoinedAgain, Ratios, StartedAgain, Statistics
from benchmarks.harness.compiled import njit
from benchmarks.harness.report import Report, race
from benchmarks.ranking.merged_queries import measure_merged_queries
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.kernels.ranking.joins.components import ArrayComponent, Component, Entries
from trendloom.kernels.ranking.joins.merging import MERGES, MergeName, merged
from trendloom.kernels.ranking.joins.parts import Parts, PartsRanking
from trendloom.kernels.ranking.joins.parts_in_windows import best_of_parts
from trendloom.kernels.ranking.joins.rank_join import JoinConditions, RankJoin
from trendloom.kernels.ranking.joins.schedules import RoundRobin, Schedule, WasteAvoiding
from trendloom.kernels.ranking.joins.sliding import SlidingJoin

Array = np.ndarray[Any, Any]

K, ENTRIES, SETS, TIMED = 50, 10_000, 5, 2
STEPS = 4_000
"""Of a loop that takes some microseconds: the time of one unit of cost."""
ROUND_ROBIN, OURS = "round robin", "waste-avoiding"
SCHEDULES: dict[str, Callable[[], Schedule]] = {
    ROUND_ROBIN: RoundRobin, "gradient": Gradient, "statistics": Statistics, "WABS as printed": Ratios,
    OURS: WasteAvoiding,
}  # fmt: skip
SLOWER, FASTER, DYNAMIC = 0.95, 2.0, 1.5
"""Goals: beside round robin at the least, where another boundary is twice as cheap, and beside nTMM."""
EQUAL, DEAR_ACCESS, DEAR_LOOKUP = ((1, 1, 1), (1, 1, 1)), ((10, 1, 1), (1, 1, 1)), ((1, 1, 1), (10, 1, 1))


def measure_rank_joins(report: Report, *, quick: bool = False) -> None:
    """All of it."""
    with compiled_first():
        for setting in settings(quick=quick):
            measure_schedules(report, setting, 1 if quick else 2)
        measure_windows(report, quick=quick)
        measure_parts(report, quick=quick)
        measure_merged_queries(report, quick=quick)


# ---------------------------------------------------------------------------------------------------- schedules


@dataclass(frozen=True)
class Setting:
    """Parameters of table 4.4; `random_access` is TA, otherwise NRA."""

    queues: int
    merge: MergeName = "max"
    distribution: str = "uniform"
    selectivity: float = 1.0
    costs: tuple[tuple[int, ...], tuple[int, ...]] = EQUAL
    random_access: bool = True
    k: int = K

    def __str__(self) -> str:
        accesses, lookups = (":".join(map(str, each[: self.queues])) for each in self.costs)
        name = f"{'TA' if self.random_access else 'NRA'} q={self.queues} {self.merge} {self.distribution}"
        return f"{name} rjs={self.selectivity:g} k={self.k} [{accesses}, {lookups}]"


def settings(*, quick: bool) -> list[Setting]:
    """Each parameter beside the others' defaults, and the cost ratios for two and three queues."""
    found = [Setting(queues, costs=costs) for queues in (2, 3) for costs in (EQUAL, DEAR_ACCESS, DEAR_LOOKUP)]
    if quick:
        return [*found[:2], Setting(3), Setting(3, "avg", random_access=False)]
    found += [Setting(3, costs=((10, 3, 1), (1, 1, 1)))]
    found += [Setting(2, costs=DEAR_ACCESS, selectivity=share) for share in (0.1, 0.01)]
    found += [Setting(2, costs=DEAR_ACCESS, distribution=name) for name in ("normal", "zipf")]
    found += [Setting(2, costs=DEAR_ACCESS, k=k) for k in (10, 200)]
    sums: tuple[MergeName, ...] = ("avg", "min")
    found += [
        Setting(queues, merge, costs=costs) for merge in sums for queues in (2, 3) for costs in (EQUAL, DEAR_ACCESS)
    ]
    found += [Setting(2, "avg", name, costs=DEAR_ACCESS) for name in ("normal", "zipf")]
    every: tuple[MergeName, ...] = ("avg", "max")
    found += [Setting(queues, merge, random_access=False) for merge in every for queues in (2, 3)]
    return [*found, Setting(2, "avg", selectivity=0.1, costs=DEAR_ACCESS, random_access=False)]


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
        self.positions, self.unique = component.positions, component.unique
        self.cost, self.lookup_cost = component.cost, component.lookup_cost

    @property
    def exhausted(self) -> bool:
        return self._component.exhausted

    def pull(self, count: int) -> Entries:
        found = self._component.pull(count)
        _spend(int(self.cost * len(found.scores)) * STEPS)
        return found

    def lookup(self, keys: Array) -> Entries:
        _spend(int(self.lookup_cost * len(keys)) * STEPS)
        return self._component.lookup(keys)


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
        for scores, cost, lookup_cost in zip(self.scores, *setting.costs, strict=False):
            queue = ArrayComponent(scores, ids, ids, cost=cost, lookup_cost=lookup_cost)
            components.append(CostlyComponent(queue) if takes_time else queue)
        residual = None if self.joins.all() else lambda events: self.joins[events[0][:, 0]]
        conditions = JoinConditions([lambda events: events] * setting.queues, residual=residual)
        return RankJoin(components, setting.merge, conditions, schedule=schedule, random_access=setting.random_access)

    def least_cost(self, setting: Setting, last_score: float) -> float:
        """Of all boundaries, of 60 depths of each queue, that bound what is unseen by the score of the last result."""
        some = np.unique(np.geomspace(1, ENTRIES, 60).astype(np.int64))
        ranked = [np.sort(scores) for scores in self.scores]
        merge = MERGES.index(setting.merge)
        depths = np.meshgrid(*[some] * setting.queues, indexing="ij")
        lasts = [scores[depth - 1] for scores, depth in zip(ranked, depths, strict=True)]
        accesses, lookups = (each[: setting.queues] for each in setting.costs)
        if setting.random_access:
            bounds = merged(merge, lasts)
            costs = [cost + sum(lookups) - own for cost, own in zip(accesses, lookups, strict=True)]
        else:
            tops = [np.full_like(last, scores[0]) for last, scores in zip(lasts, ranked, strict=True)]
            corners = [merged(merge, [*tops[:q], last, *tops[q + 1 :]]) for q, last in enumerate(lasts)]
            bounds, costs = np.minimum.reduce(corners), list(accesses)
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
        joins = [each.join(setting, schedule(), takes_time=False) for each in sets]
        answers.append([join.best(setting.k).scores for join in joins])
        spent[name] = sum(join.progress.spent for join in joins)
    assert all(np.array_equal(one, other) for some in answers for one, other in zip(some, answers[0], strict=True))
    last = [scores[-1] for scores in answers[0]]
    least = sum(each.least_cost(setting, score) for each, score in zip(sets, last, strict=True))
    possible = spent[ROUND_ROBIN] / least

    def run(schedule: Callable[[], Schedule]) -> Any:
        return [each.join(setting, schedule(), takes_time=True).best(setting.k).scores for each in sets[:TIMED]]

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
            goal = FASTER if possible >= 1.1 * FASTER and (setting.queues > 2 or setting.costs != EQUAL) else SLOWER
            result = result.with_goal(f"≥ {goal} in cost and time", min(ratio, result.ratio or 0.0) >= goal)
        report.add(result)


# ---------------------------------------------------------------------------------------------------- windows


def sensor_events(count: int, seed: int = 45) -> tuple[Array, Array, Array]:
    """Class (of six), weight and sensor (of fifty) of events, one after the other."""
    random = np.random.default_rng(seed)
    return random.integers(0, 6, count), random.random(count), random.integers(0, 50, count)


def sequence(classes: Array, weights: Array, first: int, score: Callable[[list[Array]], Array]) -> Parts:
    """Three events of three classes in order."""
    events = [np.flatnonzero(classes == first + position) for position in range(3)]
    tie_end = np.arange(len(classes)) + 1
    return Parts(events, [weights[each] for each in events], tie_end, score, [True] * 3)


def added(parts: list[Array]) -> Array:
    """A linear preference."""
    return parts[0] + parts[1] + parts[2]


def norm(parts: list[Array]) -> Array:
    """A nonlinear one: the root of the sum of squares."""
    return np.sqrt(parts[0] ** 2 + parts[1] ** 2 + parts[2] ** 2)


def measure_windows(report: Report, *, quick: bool) -> None:
    """dTMM beside nTMM and beside starting again, at windows that overlap half."""
    windows = 6 if quick else 20
    for name, second, k, size, step in (
        ("linear", added, 20, 1000, 500), ("linear", added, 20, 4000, 2000), ("linear", added, 100, 1000, 500),
        ("nonlinear", norm, 20, 1000, 500), ("linear", added, 20, 1000, 100),
    ):  # fmt: skip
        classes, weights, sensors = sensor_events(size + step * windows)
        sequences = [sequence(classes, weights, 0, added), sequence(classes, weights, 3, second)]
        tie_end = np.arange(len(classes)) + 1

        def near(events: Sequence[Array], sensors: Array = sensors) -> Array:
            return np.abs(sensors[events[0][:, 0]] - sensors[events[1][:, 0]]) <= 1

        conditions = JoinConditions(before=[(0, 1)], tie_end=tie_end, residual=near)
        title = f"[S7;S8] {name} k={k} window={size} step={step}"
        measure_moving(report, title, sequences, conditions, (size, step, windows, k))


def measure_moving(
    report: Report, name: str, sequences: list[Parts], conditions: JoinConditions, shape: tuple[int, int, int, int]
) -> None:
    size, step, windows, k = shape

    def again(components: Sequence[Component]) -> RankJoin:
        return RankJoin(components, "avg", conditions)

    def components(low: int, high: int) -> list[PartsRanking]:
        return [PartsRanking(parts, low, high) for parts in sequences]

    def run(start: Callable[[], Any]) -> Any:
        join = start()
        found = [join.best(k).scores]
        for low in range(step, step * windows, step):
            join.slide(low, low + size)
            found.append(join.best(k).scores)
        return np.concatenate(found)

    contenders: dict[str, Callable[[], Any]] = {
        "started again": lambda: StartedAgain(components, again, 0, size),
        "nTMM": lambda: JoinedAgain(components(0, size), again),
        "dTMM": lambda: SlidingJoin(components(0, size), "avg", conditions),
    }
    timings = race(3, {each: partial(run, start) for each, start in contenders.items()}, on_processor=True)
    events = size + step * windows
    checked = all(np.array_equal(each.answer, timings["nTMM"].answer) for each in timings.values())
    for each, timing in timings.items():
        result = timing.result(f"{name}: {each}", events, rows=windows * k, checked=checked)
        if each != "nTMM":
            result = result.against("nTMM", events / timings["nTMM"].best)
        if each == "dTMM":
            result = result.with_goal(f"≥ {DYNAMIC}", (result.ratio or 0.0) >= DYNAMIC)
        report.add(result)


# ---------------------------------------------------------------------------------------------------- parts


def measure_parts(report: Report, *, quick: bool) -> None:
    """A nonlinear preference by rank join beside listing all sequences, and with windows that move."""
    for size in (300, 1_000) if quick else (300, 1_000, 1_000_000):
        classes, weights, _ = sensor_events(size)
        parts = sequence(classes, weights, 0, norm)
        low, high = np.array([0]), np.array([size])
        contenders = {"rank join": partial(best_of_parts, parts, low, high, 10, listed=0)}
        if size <= 1_000:
            contenders["all listed"] = partial(best_of_parts, parts, low, high, 10, listed=2**62)
        timings = race(3, contenders, on_processor=True)
        listed = timings.get("all listed")
        checked = listed is not None and np.array_equal(listed.answer.scores, timings["rank join"].answer.scores)
        for name, timing in timings.items():
            result = timing.result(f"root of squares, {size:,} events: {name}", size, rows=10, checked=checked)
            report.add(result if listed is None else result.against("all listed", size / listed.best))
