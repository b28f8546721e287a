"""Timings with their conditions, as a table on the screen and as JSON for comparing runs."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Result:
    """One measurement. `ratio` compares its rate with that of `baseline`, measured in the same run."""

    name: str
    events: int
    seconds: float
    rows: int
    checked: bool
    baseline: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds

    def against(self, baseline: str, rate: float) -> Result:
        """The same result beside the rate of a baseline."""
        return replace(self, baseline=baseline, ratio=self.rate / rate)

    def with_goal(self, goal: str, met: bool) -> Result:
        return replace(self, goal=goal, met=met)


@dataclass
class Report:
    results: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.results.append(result)
        Console(stderr=True).print(f"  {result.name}: {result.rate / 1e6:.2f} M events/s")

    def show(self) -> None:
        table = Table(title=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        for column in ("what", "events", "seconds", "M events/s", "rows", "answer", "ratio", "goal"):
            table.add_column(column, justify="left" if column in ("what", "ratio", "goal") else "right")
        for r in self.results:
            ratio = "" if r.ratio is None else f"{r.ratio:.2f} of {r.baseline}"
            goal = r.goal if r.met is None else f"{r.goal}: {'met' if r.met else 'NOT met'}"
            answer = "checked" if r.checked else "-"
            table.add_row(
                r.name, f"{r.events:,}", f"{r.seconds:.2f}", f"{r.rate / 1e6:.2f}", f"{r.rows:,}", answer, ratio, goal
            )
        Console(width=150).print(table)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{**asdict(r), "rate": r.rate} for r in self.results], indent=1))


def best_of(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of several tries, and the last result: the machine can only add time."""
    best, found = float("inf"), None
    for _ in range(times):
        begin = time.perf_counter()
        found = work()
        best = min(best, time.perf_counter() - begin)
    return best, found
