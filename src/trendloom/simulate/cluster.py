"""A cluster of 30 nodes whose jobs somebody else disturbs: four kinds of interference, eight workloads.

Three queues run programs again and again. During one run of the first queue, and at about the same place of another run
of the same program, a program of somebody else takes memory, processor, disk or network; the data that the run moves
(the query) slows down. The reason is in the system metrics: what interference moves at its root is the truth, and all
that follows from the slowdown (fewer tasks, longer pulls, load, heat) is not.
After H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", section 5.7.1. Cost: 400,000
events in about a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
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
    wandering,
    words,
)

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

PAUSE = (60, 180)
"""Seconds between two runs of a queue."""


@dataclass(frozen=True)
class JobProgram:
    """A program, what it reads, its seconds when nothing disturbs it, its tasks, and how much it needs of what."""

    name: str
    dataset: str
    seconds: float
    tasks: int
    needs: Mapping[str, float]


PROGRAMS = {
    program.name: program
    for program in (
        JobProgram("twitter-trigram", "tweets", 1500, 700, {"memory": 1.0, "cpu": 1.0, "disk": 0.6, "network": 0.9}),
        JobProgram("frequent-users", "clicks", 1200, 500, {"memory": 0.9, "cpu": 0.9, "disk": 1.0, "network": 0.6}),
        JobProgram("sessions", "clicks", 1350, 600, {"memory": 1.0, "cpu": 0.8, "disk": 0.8, "network": 1.0}),
    )
}
STALL = 0.55
"""How much of its speed a program with need 1 loses to interference of strength 1."""


@dataclass(frozen=True)
class Interference:
    """A program of somebody else that takes one resource, from one second of the simulation to another."""

    kind: str
    low: float
    high: float
    strength: float

    def at(self, seconds: Array) -> Array:
        """How much it takes at each second: it needs some seconds to take hold and to let go."""
        rise = np.clip((seconds - self.low) / 10.0, 0.0, 1.0)
        fall = np.clip((self.high - seconds) / 5.0, 0.0, 1.0)
        found: Array = self.strength * np.minimum(rise, fall)
        return found


@dataclass(frozen=True, eq=False)
class JobRun:
    """One run: `progress` is the share of its work that is done at each whole second from `low` on."""

    job: str
    program: JobProgram
    low: int
    progress: Array
    speed: Array

    @property
    def high(self) -> int:
        return self.low + len(self.progress) - 1


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


# -------------------------------------------------------------------------------------------- runs of programs
#
# A run is an amount of work. Its speed at each second is what interference leaves, with some noise; events happen after
# shares of the work, and speed turns shares into times. So everything that a run does slows down together, its
# durations grow, and nothing is simulated step by step. Cost: O(seconds) per run, O(log seconds) per event.


def start_run(
    random: np.random.Generator, job: str, program: JobProgram, low: int, disturbing: list[Interference]
) -> JobRun:
    """The run from its first second to its last."""
    longest = int(8 * program.seconds)
    second = np.arange(low, low + longest, dtype=np.float64)
    speed = np.exp(0.15 * wandering(random, (longest,), 0.97))
    for one in disturbing:
        speed *= 1.0 - min(STALL * program.needs[one.kind], 0.9) * np.minimum(one.at(second), 1.2)
    work = program.seconds * random.uniform(0.95, 1.05)
    done = np.concatenate([[0.0], np.cumsum(speed)[:-1]]) / work
    last = int(np.searchsorted(done, 1.0)) + 1
    return JobRun(job, program, low, np.minimum(done[:last], 1.0), speed[:last])


# ------------------------------------------------------------------------------------------------ what runs need


def activity(random: np.random.Generator, runs: list[JobRun], seconds: int) -> dict[str, Array]:
    """What the runs of all queues take of each resource at each second, 1 for what one run usually takes at most.

    How much that is for the work at hand depends on the data, and so wanders for each resource by itself.
    """
    found = {name: np.zeros(seconds) for name in ("cpu", "memory", "read", "write", "network", "tasks")}
    for run in runs:
        at = slice(run.low, run.low + len(run.progress))
        done, needs = run.progress, run.program.needs
        maps = np.clip((0.7 - done) / 0.2, 0.0, 1.0)
        shuffle = np.clip(np.minimum((done - 0.05) / 0.1, (0.85 - done) / 0.15), 0.0, 1.0)
        reduces = np.clip((done - 0.5) / 0.2, 0.0, 1.0)
        taken = {
            "cpu": run.speed * needs["cpu"] * (0.8 * maps + 0.15 * shuffle + 0.7 * reduces),
            "memory": needs["memory"] * np.clip(0.4 + 2.0 * done, 0.0, 1.0),
            "read": run.speed * needs["disk"] * maps,
            "write": run.speed * needs["disk"] * (0.6 * maps + 0.8 * reduces),
            "network": run.speed * needs["network"] * shuffle,
            "tasks": maps + 0.5 * shuffle + 0.6 * reduces,
        }
        for name, values in taken.items():
            found[name][at] += values * np.exp(0.2 * wandering(random, (len(done),), 0.98))
    return found


# -------------------------------------------------------------------------------------------------- events


def job_events(
    random: np.random.Generator, runs: list[JobRun], nodes: list[str], origin: int
) -> list[tuple[str, Array, dict[str, object]]]:
    """The events of all runs, by type: (type, times in ticks, columns)."""
    counts = [run.program.tasks for run in runs]
    begin = [np.sort(random.uniform(0.0, 0.6, count)) for count in counts]
    end = [low + random.lognormal(np.log(0.02), 0.3, len(low)) for low in begin]
    pull = [np.sort(random.uniform(0.08, 0.75, 2 * count)) for count in counts]
    pulled = [low + random.lognormal(np.log(0.012), 0.35, len(low)) for low in pull]
    moved = [np.sort(random.uniform(0.0, 1.0, 5 * count)) for count in counts]
    maps, ends = _times(runs, begin), _times(runs, end)
    pulls, arrivals = _times(runs, pull), _times(runs, pulled)
    starts = [np.array([float(run.low)]) for run in runs]
    stops = [np.array([float(run.high)]) for run in runs]
    took = np.round(np.concatenate(ends) - np.concatenate(maps), 3)
    waited = np.round(np.concatenate(arrivals) - np.concatenate(pulls), 3)
    written: list[tuple[str, list[Array], dict[str, object]]] = [
        ("JobStart", starts, {}),
        ("MapStart", maps, {}),
        ("MapFinish", ends, {"duration": took}),
        ("PullStart", pulls, {}),
        ("PullFinish", arrivals, {"duration": waited, "size": _sizes(random, len(waited), 24.0)}),
        ("DataIO", _times(runs, moved), {"size": _sizes(random, 5 * sum(counts), 48.0)}),
        ("JobEnd", stops, {}),
    ]
    return [
        (name, _ticks(times, origin), {**_whose(random, runs, times, nodes), **columns})
        for name, times, columns in written
    ]


def _times(runs: list[JobRun], shares: list[Array]) -> list[Array]:
    """When each run has done these shares of its work, in seconds of the simulation."""
    found = []
    for run, share in zip(runs, shares, strict=True):
        second = np.arange(run.low, run.high + 1, dtype=np.float64)
        found.append(np.interp(share, run.progress, second))
    return found


def _ticks(times: list[Array], origin: int) -> Array:
    return origin + np.round(np.concatenate(times) * SECOND).astype(np.int64)


def _sizes(random: np.random.Generator, count: int, usual: float) -> Array:
    """Megabytes, around the usual."""
    return np.round(random.lognormal(np.log(usual), 0.4, count), 3)


def _whose(random: np.random.Generator, runs: list[JobRun], times: list[Array], nodes: list[str]) -> dict[str, object]:
    """The run, program, data set and node of each event."""
    owner = np.repeat(np.arange(len(runs)), [len(some) for some in times])
    return {
        "job": words(owner, [run.job for run in runs]),
        "program": words(owner, [run.program.name for run in runs]),
        "dataset": words(owner, [run.program.dataset for run in runs]),
        "node": words(random.integers(0, len(nodes), len(owner)), nodes),
    }
