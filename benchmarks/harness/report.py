"""Timings with their conditions, as a table on the screen, as JSON for comparing runs, and as a picture of growth.

A busy machine can only add time: contenders are timed in turns, so that all of them see the same disturbances, and
compared by their best times. The median stands beside it and says how disturbed the run was. Kernels are timed by the
processor (`on_processor`): they run in one thread, and the time that thread spends waiting for a core is not theirs.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Result:
    """One measurement. `ratio` compares its rate with that of `baseline`, measured in the same run.

    `checked`: whether its answer equals one found in another way; None: it has no answer, as a pipeline that drops all
    it reads. `note` holds what else is worth knowing.
    """

    name: str
    events: int
    seconds: float
    rows: int
    checked: bool | None
    baseline: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None
    median: float | None = None
    note: str = ""

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds

    @property
    def failure(self) -> str | None:
        """What is wrong with it: a check of no rows has compared nothing."""
        if self.checked is False:
            return f"{self.name}: the answer is wrong"
        if self.checked and not self.rows:
            return f"{self.name}: the check compared nothing"
        return None if self.met is None or self.met else f"{self.name}: {self.goal} is not met"

    def against(self, baseline: str, rate: float) -> Result:
        """The same result beside the rate of a baseline."""
        return replace(self, baseline=baseline, ratio=self.rate / rate)

    def with_goal(self, goal: str, met: bool) -> Result:
        return replace(self, goal=goal, met=met)

    def noting(self, note: str) -> Result:
        return replace(self, note=note)


@dataclass(frozen=True)
class Curve:
    """How the time of one contender grows: seconds by size, and the exponent of size that fits them best.

    `power`: whether it is meant to be a power of the size at all; what enumerates is not.
    """

    picture: str
    name: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    power: bool = True

    @property
    def exponent(self) -> float:
        """The slope of the least-squares line through the logarithms."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


@dataclass
class Report:
    """Measurements of a run. `with_goals`: goals are for full sizes, small ones say nothing about them."""

    results: list[Result] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    with_goals: bool = True

    def add(self, result: Result) -> None:
        result = result if self.with_goals else replace(result, goal="", met=None)
        self.results.append(result)
        wrong = f" ({result.failure})" if result.failure else ""
        Console(stderr=True).print(f"  {result.name}: {result.rate / 1e6:.3g} M events/s{wrong}")

    @property
    def failures(self) -> list[str]:
        return [one.failure for one in self.results if one.failure] or ([] if self.results else ["nothing measured"])

    def show(self) -> None:
        table = Table(title=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        for column in ("what", "events", "seconds", "median", "M events/s", "rows", "answer", "ratio", "goal", "note"):
            table.add_column(column, justify="left" if column in ("what", "ratio", "goal", "note") else "right")
        for r in self.results:
            table.add_row(*_cells(r))
        Console(width=190).print(table)

    def write(self, path: Path) -> None:
        """All figures as JSON, and beside it one picture per group of curves."""
        path.parent.mkdir(parents=True, exist_ok=True)
        found = {
            "results": [{**asdict(r), "rate": r.rate} for r in self.results],
            "curves": [{**asdict(c), "exponent": c.exponent} for c in self.curves],
        }
        path.write_text(json.dumps(found, indent=1))
        for picture in dict.fromkeys(curve.picture for curve in self.curves):
            some = [curve for curve in self.curves if curve.picture == picture]
            draw_growth(some, path.parent / f"growth-{picture.replace(' ', '-')}.svg")


def _cells(r: Result) -> tuple[str, ...]:
    ratio = "" if r.ratio is None else f"{r.ratio:.3g} of {r.baseline}"
    goal = r.goal if r.met is None else f"{r.goal}: {'met' if r.met else 'NOT met'}"
    middle = "" if r.median is None else f"{r.median:.3g}"
    answer = {True: "checked", False: "WRONG", None: "-"}[r.checked]
    figures = (f"{r.events:,}", f"{r.seconds:.3g}", middle, f"{r.rate / 1e6:.3g}", f"{r.rows:,}")
    return (r.name, *figures, answer, ratio, goal, r.note)


def draw_growth(curves: Sequence[Curve], target: Path) -> Path:
    """Seconds by size, both on logarithmic scales: a straight line's slope is the exponent."""
    from trendloom.viz.canvas import GRID, PALETTE, picture

    with picture(target, 7, 5.5) as figure:
        axes = figure.subplots()
        for number, curve in enumerate(curves):
            label = f"{curve.name}: n^{curve.exponent:.2f}" if curve.power else f"{curve.name}: no power of n"
            axes.loglog(curve.sizes, curve.seconds, "o-", color=PALETTE[number % len(PALETTE)], label=label)
        axes.set(title=curves[0].picture, xlabel="events per window", ylabel="seconds")
        axes.grid(color=GRID)
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return target


# -------------------------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class Timing:
    """Of several tries: the least seconds, the middle, the last answer, and the least processor time of all threads."""

    best: float
    median: float
    answer: Any
    processor: float

    def result(self, name: str, events: int, *, rows: int, checked: bool | None) -> Result:
        return Result(name, events, self.best, rows, checked, median=self.median)


def race(
    tries: int, contenders: Mapping[str, Callable[[], Any]], *, warm: bool = True, on_processor: bool = False
) -> dict[str, Timing]:
    """Time contenders in turns, each after a first run that compiles and is not counted."""
    clock = time.thread_time if on_processor else time.perf_counter
    answers = {name: work() for name, work in contenders.items()} if warm else dict[str, Any]()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    processor = dict.fromkeys(contenders, float("inf"))
    for _ in range(tries):
        for name, work in contenders.items():
            begin, spent = clock(), time.process_time()
            answers[name] = work()
            seconds[name].append(clock() - begin)
            processor[name] = min(processor[name], time.process_time() - spent)
    return {name: Timing(min(some), median(some), answers[name], processor[name]) for name, some in seconds.items()}


def best_of(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of several tries, and the last result: the machine can only add time."""
    timing = race(times, {"": work}, warm=False)[""]
    return timing.best, timing.answer
