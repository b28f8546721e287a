"""What a better plan of sharing is worth: the greedy plan beside the best one, both executed by the same kernel.

Pieces of long routes over the taxi stream, where segments are in conflict. Both plans come from one run of the
optimizer, which weighs segments by what they save here; prefixes are shared in any case, and the plans differ in what
is counted per START event. *No segments* is the sweep with prefixes alone. Planning is not part of any figure.

    python -m benchmarks.sharing.plans QUERIES PER_WINDOW PLAN    # prints the peak memory of a run
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa

from benchmarks.cases.events import same_rows
from benchmarks.cases.sharing import routes, sharing_workload, taxi
from benchmarks.harness.memory import peak_while, run_apart
from benchmarks.harness.report import Report, race
from benchmarks.sharing.contenders import WARM_UP, Contest, quietly, with_kernels
from trendloom.kernels.shared import CountedStep, SharedSteps
from trendloom.kernels.shared.kernel import SharedKernel
from trendloom.planner.sharing.choose_plan import SharingChoice
from trendloom.planner.sharing.conflict_graph import SharedSegment, members
from trendloom.planner.sharing.groups import SharingQuestion
from trendloom.planner.sharing.queries import seconds_of_sweep
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.blocks import Shared
from trendloom.runtime.statistics import statistics_of_stream

QUERIES, LENGTH = 180, 10
FEW_QUERIES, FEW_EVENTS = 20, 10_000
PER_WINDOW, WINDOWS = 200_000, 2.0
SEARCH = 30_000_000
"""Steps for the optimizer: the best plan is to be the best."""
NO_SEGMENTS, GREEDY, BEST = "no segments", "greedy plan", "best plan"
PLANS: dict[str, Callable[[SharingChoice], int]] = {
    NO_SEGMENTS: lambda _: 0,
    GREEDY: lambda choice: choice.greedy,
    BEST: lambda choice: choice.found.plan,
}
"""By name the segments of a plan, as bits."""


@dataclass(frozen=True)
class PlansCase:
    """So many routes over a stream with so many events per window."""

    queries: int = QUERIES
    per_window: int = PER_WINDOW

    @cached_property
    def contest(self) -> Contest:
        stream = taxi(self.per_window, WINDOWS)
        words = routes(self.queries, LENGTH)
        streets = sorted({street for word in words for street in word})
        segment = dict(zip(streets, stream.types, strict=False))
        over = tuple(tuple(segment[street] for street in word) for word in words)
        return Contest(stream, replace(sharing_workload(stream, self.queries, LENGTH), words=over))

    @cached_property
    def planned(self) -> PhysicalWorkload:
        """The queries, with one kernel for all of them that has no segments."""
        known = statistics_of_stream(self.contest.events)
        return with_kernels(self.contest.plan(), lambda one: SharedKernel(one.queries, one.event_filters), known)

    @property
    def question(self) -> SharingQuestion:
        (group,) = self.planned.shared_groups
        return group.question

    @cached_property
    def choice(self) -> SharingChoice:
        return self.question.choice(SEARCH)

    def workload(self, plan: str) -> PhysicalWorkload:
        """The queries with the segments of a plan."""
        chosen = [self.choice.graph.segments[vertex] for vertex in members(PLANS[plan](self.choice))]
        segments = tuple(_shared_steps(one) for one in chosen if any(first for _, first in one.places))
        (group,) = self.planned.shared_groups
        group = replace(group, kernel=replace(group.kernel, segments=segments))
        return replace(self.planned, shared_groups=(group,))

    def answer(self, plan: str) -> Callable[[], pa.Table]:
        """The rows of all queries, when they are planned and read."""
        return quietly(partial(self.contest.answered, self.workload(plan), self.contest.events))


def _shared_steps(segment: SharedSegment) -> SharedSteps:
    return SharedSteps(tuple(one for one in segment.steps if isinstance(one, CountedStep)), segment.places)


def measure_sharing_plans(report: Report, *, quick: bool = False) -> None:
    """Latency and memory of every plan; its estimate beside what its kernel took."""
    case = PlansCase(FEW_QUERIES, FEW_EVENTS) if quick else PlansCase()
    contest, tries = case.contest, 2 if quick else 5
    expected = quietly(contest.unshared)()
    whole = race(tries, {plan: case.answer(plan) for plan in PLANS})
    work = {plan: contest.kernels_together(case.workload(plan), [], Shared()) for plan in PLANS}
    kernels = race(tries, work, on_processor=True)
    name = f"plans, taxi {case.per_window // 1000}k, {case.queries} routes"
    for plan, timing in whole.items():
        (group,) = case.workload(plan).shared_groups
        estimate = seconds_of_sweep(group.kernel.merged, group.question.rates)
        graph, chosen = case.choice.graph, PLANS[plan](case.choice)
        memory = "" if quick else f", peak {peak_of_plan(case, plan) / 1e6:.1f} MB"
        note = (
            f"{group.saved}; score {graph.weight(chosen):.6g}; "
            f"kernel {kernels[plan].best:.3g} s, estimated {estimate:.3g} s "
            f"({estimate / kernels[plan].best:.2g} of it){memory}"
        )
        right = graph.is_valid(chosen) and same_rows(timing.answer, expected)
        one = timing.result(f"{name}: {plan}", len(contest.stream), rows=len(timing.answer), checked=right)
        one = one.noting(note)
        if plan != NO_SEGMENTS:
            one = one.against(NO_SEGMENTS, len(contest.stream) / whole[NO_SEGMENTS].best)
        report.add(one)


# -------------------------------------------------------------------------------------------------- memory


def peak_of_plan(case: PlansCase, plan: str) -> int:
    """Bytes that a plan needs at most, over those of the process with its events, in a process of its own."""
    return int(run_apart("sharing.plans", str(case.queries), str(case.per_window), plan))


def watch_memory(case: PlansCase, plan: str) -> int:
    """The same in this process."""
    replace(case, per_window=WARM_UP).answer(plan)()  # load and compile
    return peak_while(case.answer(plan))


if __name__ == "__main__":
    print(watch_memory(PlansCase(int(sys.argv[1]), int(sys.argv[2])), sys.argv[3]))
