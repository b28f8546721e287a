"""A cluster of 30 nodes whose jobs somebody else disturbs: four kinds of interference, eight workloads.

Three queues run programs again and again. During one run of the first queue, and at about the same place of another run
of the same program, a program of somebody else takes memory, processor, disk or network; the data that the run moves
(the query) slows down. The reason is in the system metrics: what interference moves at its root is the truth, and all
that follows from the slowdown (fewer tasks, longer pulls, load, heat) is not.
After H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", section 5.7.1. Cost: 400,000
events in about a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.simulate.cluster_jobs import (
    PAUSE,
    PROGRAMS,
    Interference,
    JobProgram,
    JobRun,
    activity,
    job_events,
    start_run,
)
from trendloom.simulate.cluster_metrics import metric_events, pressure
from trendloom.simulate.simulation import (
    SECOND,
    Attribute,
    Cause,
    SimulatedStretch,
    Simulation,
    check_choice,
    check_least,
    event_table,
)

Stretches = tuple[SimulatedStretch, ...]

MONDAY = 1_709_510_400
"""2024-03-04, the day of seed 0; each seed is the next day."""
QUERY = """\
RETURN  job, SUM(d.size) AS moved
PATTERN DataIO d
WHERE   [job]
GROUP BY job
WITHIN  30 seconds
"""


def _cause(*names: str) -> Cause:
    pairs: list[Attribute] = []
    for name in names:
        kind, attribute = name.split(".")
        pairs.append((kind, attribute))
    return frozenset(pairs)


INTERFERENCE: dict[str, tuple[Cause, ...]] = {
    "memory": (
        _cause("Memory.free", "Memory.cached", "Memory.buffers"),
        _cause("Swap.free", "Swap.paged_in", "Swap.paged_out"),
    ),
    "cpu": (_cause("CPUUsage.user", "CPUUsage.idle", "Load.one", "Processes.running"),),
    "disk": (_cause("Disk.write", "Disk.busy", "CPUUsage.iowait"),),
    "network": (
        _cause("Network.bytes_in", "Network.bytes_out", "Network.packets_in", "Network.packets_out"),
        _cause("Connections.sent_again"),
    ),
}
"""What each kind of interference moves at its root."""

WORKLOADS: tuple[tuple[str, str], ...] = (
    ("memory", "frequent-users"),
    ("memory", "sessions"),
    ("disk", "frequent-users"),
    ("cpu", "frequent-users"),
    ("cpu", "sessions"),
    ("cpu", "twitter-trigram"),
    ("network", "sessions"),
    ("network", "twitter-trigram"),
)
"""Kind of interference and disturbed program, as in figure 5.15."""

SHOWN = 15
"""Seconds at the edges of an anomaly that a user does not mark; after it, the double."""


@dataclass(frozen=True)
class AnomalyPlace:
    """Where the anomaly lies: which runs are disturbed, from which share of the usual length to which."""

    annotated: int
    disturbed: int
    low: float
    high: float


def simulate_cluster(
    kind: str, program: str, seed: int, *, nodes: int = 30, runs: int = 8, every: float = 15.0
) -> Simulation:
    """Interference of `kind` (memory, cpu, disk, network) with one of `runs` runs of `program`.

    Metrics are reported `every` so many seconds: 15 gives about 400,000 events, 5 about a million.
    """
    check_choice("kind of interference", kind, INTERFERENCE)
    check_choice("program", program, PROGRAMS)
    check_least("runs", runs, 2)
    check_least("nodes", nodes, 1)
    random = np.random.default_rng([seed, *map(ord, kind + program)])
    names = [f"node-{number:02d}" for number in range(nodes)]
    origin = (MONDAY + 86_400 * seed + int(random.integers(0, 43_200))) * SECOND
    place = _place(random, runs)
    mine, hogs = _first_queue(random, kind, PROGRAMS[program], place, runs)
    others = [_other_queue(random, queue, PROGRAMS[program], mine[-1].high, hogs) for queue in (2, 3)]
    all_runs = mine + others[0] + others[1]
    seconds = max(run.high for run in all_runs) + 60
    under = pressure(random, activity(random, all_runs, seconds), _taken(hogs, seconds), nodes, every)
    parts = job_events(random, all_runs, names, origin) + metric_events(random, under, names, origin)
    spans = tuple(_stretch(run.job, run.low, run.high, origin) for run in all_runs)
    same = [run.job for run in mine if run.program.name == program]
    annotated = [run for run in mine if run.program.name == program][place.annotated]
    abnormal, reference = _marked(annotated, hogs[0], origin)
    return Simulation(
        name=f"{kind}, {program}",
        events=event_table(parts),
        query=QUERY,
        key="job",
        dimensions=("program", "dataset"),
        abnormal=abnormal,
        reference=reference,
        truth=INTERFERENCE[kind],
        related=tuple(job for job in same if job != annotated.job),
        spans=tuple(sorted(spans, key=lambda span: (span.low, span.partition))),
    )


def _place(random: np.random.Generator, runs: int) -> AnomalyPlace:
    """The anomaly is at the begin, in the middle or at the end of its run."""
    annotated, disturbed = (int(one) for one in random.choice(runs, 2, replace=False))
    low = (0.0, float(random.uniform(0.2, 0.4)), float(random.uniform(0.6, 0.7)))[random.integers(3)]
    return AnomalyPlace(annotated, disturbed, low, low + float(random.uniform(0.45, 0.6)))


def _first_queue(
    random: np.random.Generator, kind: str, program: JobProgram, place: AnomalyPlace, runs: int
) -> tuple[list[JobRun], list[Interference]]:
    """Runs of the program with now and then another one, and the interference: first that of the annotated run."""
    found: list[JobRun] = []
    hogs: dict[int, Interference] = {}
    low = int(random.integers(30, 90))
    for number in range(runs):
        if random.random() < 0.25:
            found.append(start_run(random, f"job-{len(found) + 101}", _another(random, program), low, [*hogs.values()]))
            low = found[-1].high + int(random.integers(*PAUSE))
        if number in (place.annotated, place.disturbed):
            shift = 0.0 if number == place.annotated else random.uniform(0.0, 0.04)
            begin, end = (low + (share + shift) * program.seconds for share in (place.low, place.high))
            hogs[number] = Interference(kind, begin, end, float(random.uniform(0.85, 1.15)))
        found.append(start_run(random, f"job-{len(found) + 101}", program, low, [*hogs.values()]))
        low = found[-1].high + int(random.integers(*PAUSE))
    return found, [hogs[place.annotated], hogs[place.disturbed]]


def _other_queue(
    random: np.random.Generator, queue: int, program: JobProgram, until: int, hogs: list[Interference]
) -> list[JobRun]:
    """Other programs, until the first queue is done."""
    found: list[JobRun] = []
    low = int(random.integers(0, 600))
    while low < until:
        found.append(start_run(random, f"job-{100 * queue + len(found) + 1}", _another(random, program), low, hogs))
        low = found[-1].high + int(random.integers(*PAUSE))
    return found


def _another(random: np.random.Generator, program: JobProgram) -> JobProgram:
    others = [one for one in PROGRAMS.values() if one.name != program.name]
    return others[random.integers(len(others))]


def _taken(hogs: list[Interference], seconds: int) -> dict[str, Array]:
    """What interference takes of each resource at each second."""
    second = np.arange(seconds, dtype=np.float64)
    found = {kind: np.zeros(seconds) for kind in INTERFERENCE}
    for hog in hogs:
        found[hog.kind] += hog.at(second)
    return found


def _marked(
    run: JobRun, hog: Interference, origin: int
) -> tuple[tuple[SimulatedStretch, ...], tuple[SimulatedStretch, ...]]:
    """What a user marks on the chart of the run: the slow stretch, and what lies clearly before and after it."""
    end = min(hog.high, run.high)
    abnormal = (_stretch(run.job, hog.low + SHOWN, end, origin),)
    around = ((run.low, hog.low - SHOWN), (end + 2 * SHOWN, run.high))
    return abnormal, tuple(_stretch(run.job, low, high, origin) for low, high in around if high - low >= 90)


def _stretch(job: str, low: float, high: float, origin: int) -> SimulatedStretch:
    return SimulatedStretch(job, origin + int(low * SECOND), origin + int(high * SECOND))
