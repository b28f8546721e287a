"""What it takes to decide what queries share: the best plan beside the greedy one and the exhaustive search.

Two kinds of workloads: pieces of long routes (each overlaps with many others, so that candidates are in conflict), and
queries of a family with a common part. Both expand candidates before they choose. For each it is said how many
candidates there are, how many of their options are certain, pruned or still in question after the reduction, and what
the plans weigh. At 1,000 queries the choice ends by its limit of steps. Here, an "event" of the report is a query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.baselines.sharing_plans import PerStartBenefit, valid_plans
from benchmarks.cases.sharing import routes, sharing_workload, taxi
from benchmarks.harness.report import Curve, Report, Timing, race
from trendloom.model.amounts import MOST_SHARING_STEPS
from trendloom.planner.sharing.choose_plan import SharingChoice, choose_plan, chosen, greedy
from trendloom.planner.sharing.conflict_graph import (
    ConflictGraph,
    PatternSteps,
    conflict_graph,
    expand_candidates,
    mine_segments,
)

LENGTH = 10
MOST_PLANS = 100_000
"""Valid plans up to which the exhaustive search goes."""
TIMES, SECONDS = 10.0, 10.0
"""Goals: of the time of the greedy optimizer up to 70 queries, and seconds at 1,000 queries."""
SHORT = 5
"""The length of routes of which every plan is looked at."""


def measure_sharing_optimizer(report: Report, *, quick: bool = False) -> None:
    """More and more queries, up to 1,000."""
    tries = 1 if quick else 3
    sizes = (20, 40) if quick else (20, 30, 40, 50, 60, 70)
    for kind, words_of in KINDS.items():
        found = {size: measure_choice(report, kind, words_of(size), tries) for size in sizes}
        for who in ("greedy", "best"):
            seconds = tuple(timings[who].best for timings in found.values())
            report.curves.append(Curve(f"optimizer of sharing for {kind}", f"{who}, by queries", sizes, seconds))
        for size in () if quick else (180, 1_000):
            measure_choice(report, kind, words_of(size), 1)
    measure_exhaustive(report, tries)


def families(queries: int) -> tuple[PatternSteps, ...]:
    """Half of each query is common to its family of ten, in the middle."""
    stream = taxi(10_000)
    return sharing_workload(stream, queries, LENGTH, overlap=0.5, place="middle", families=max(2, queries // 10)).words


KINDS: dict[str, Callable[[int], tuple[PatternSteps, ...]]] = {
    "routes": partial(routes, length=LENGTH),
    "families": families,
}


def benefit_of(words: Sequence[PatternSteps], seed: int = 53) -> PerStartBenefit:
    """As the paper has it, with rates between 1 and 10 events a second."""
    random = np.random.default_rng(seed)
    letters = sorted({str(letter) for word in words for letter in word})
    rates = dict(zip(letters, random.uniform(1.0, 10.0, len(letters)).tolist(), strict=True))
    return PerStartBenefit(words, lambda letter: rates[str(letter)])


def expanded(words: Sequence[PatternSteps]) -> ConflictGraph:
    """The options of all candidates."""
    benefit = benefit_of(words)
    return expand_candidates(conflict_graph(mine_segments(words), benefit), benefit)


def chosen_greedily(words: Sequence[PatternSteps]) -> float:
    """What the greedy plan of the expanded graph weighs."""
    graph = expanded(words)
    return graph.weight(greedy(graph))


def measure_choice(report: Report, kind: str, words: Sequence[PatternSteps], tries: int) -> dict[str, Timing]:
    """Greedy and best, both with expansion; the best plan must be valid and not worse."""
    best = partial(choose_plan, words, benefit_of(words), MOST_SHARING_STEPS)
    timings = race(tries, {"greedy": partial(chosen_greedily, words), "best": best}, warm=False)
    choice: SharingChoice = timings["best"].answer
    weight, size = timings["greedy"].answer, len(words)
    good = choice.graph.is_valid(choice.found.plan) and choice.found.weight >= weight * (1 - 1e-9)
    name = f"optimizer, {size} {kind}"
    simple = timings["greedy"].result(f"{name}, greedy", size, rows=choice.greedy.bit_count(), checked=good)
    report.add(simple.noting(f"score {weight:.4g}"))
    one = timings["best"].result(f"{name}, best", size, rows=len(choice.segments), checked=good)
    one = one.against("greedy", size / timings["greedy"].best).noting(_note(choice, weight))
    if size <= 70:
        one = one.with_goal(f"at most {TIMES:g} times greedy", (one.ratio or 0.0) >= 1 / TIMES)
    elif size >= 1_000:
        one = one.with_goal(f"{SECONDS:g} s", one.seconds <= SECONDS)
    report.add(one)
    return timings


def _note(choice: SharingChoice, weight: float, compared: str = "greedy") -> str:
    """What the reduction decided, and the score."""
    reduction, found = choice.reduction, choice.found
    options = len(choice.graph.segments)
    parts = [f"{number.bit_count()} {what}" for what, number in
             {"certain": reduction.certain, "pruned": reduction.pruned, "left": reduction.left}.items()]  # fmt: skip
    better = found.weight / weight - 1 if weight else 0.0
    end = "the best" if found.is_best else f"at most {found.bound / max(found.weight, 1e-300):.3g} times that"
    mined = f"{choice.mined} mined, " if choice.mined else ""
    score = f"score {found.weight:.4g} ({end}), {better:.2%} over {compared}"
    return f"{mined}{options} options: {', '.join(parts)}; {score}"


# ----------------------------------------------------------------------------------------------- exhaustive


def measure_exhaustive(report: Report, tries: int) -> None:
    """Workloads of more and more short routes, as long as every valid plan of their options can be looked at."""
    for size in range(6, 30, 3):
        graph = expanded(routes(size, SHORT, streets=4 * SHORT))
        contenders: dict[str, Callable[[], Any]] = {
            "exhaustive": partial(heaviest_of, graph),
            "best": partial(chosen, 0, graph),
        }
        timings = race(tries, contenders, warm=False)
        if timings["exhaustive"].answer is None:
            return
        (heaviest, plans), choice = timings["exhaustive"].answer, timings["best"].answer
        good = abs(choice.found.weight - heaviest) <= 1e-9 * max(heaviest, 1.0)
        name = f"optimizer, {size} routes of {SHORT}, from the graph on"
        one = timings["exhaustive"].result(f"{name}, exhaustive", size, rows=0, checked=good)
        report.add(one.noting(f"{plans:,} valid plans of {len(graph.segments)} options"))
        one = timings["best"].result(f"{name}, best", size, rows=len(choice.segments), checked=good)
        report.add(
            one.against("exhaustive", size / timings["exhaustive"].best).noting(_note(choice, heaviest, "exhaustive"))
        )


def heaviest_of(graph: ConflictGraph) -> tuple[float, int] | None:
    """What the best of all valid plans weighs, and how many there are; None: too many."""
    heaviest, count = 0.0, 0
    for plan in valid_plans(graph):
        heaviest, count = max(heaviest, graph.weight(plan)), count + 1
        if count > MOST_PLANS:
            return None
    return heaviest, count
