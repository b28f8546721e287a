"""Runs of programs on a cluster: when they go on, and the events of their tasks.

Idea: a run is an amount of work. Its speed at each second is what interference leaves, with some noise; events happen
after shares of the work, and speed turns shares into times. So everything that a run does slows down together, its
durations grow, and nothing is simulated step by step. Cost: O(seconds) per run, O(log seconds) per event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.simulate.simulation import SECOND, wandering, words

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
