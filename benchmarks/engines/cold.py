"""First answers: `python -m benchmarks.engines.cold [--engine local spark] [--package SRC] [--functions]`.

Every usual query runs as a command of its own, with a folder of compiled code that is empty at first: *cold*; then once
with everything compiled for it, which is not shown; then *warm*. Clock and processor time are those of the whole
command, with all processes it waits for; on a busy machine only the processor's time says something. `--package`
measures the sources of another clone (their `src`), for before and after; `--functions` lists what was compiled, and
how often.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from trendloom.engines.precompile import USUAL, usual_events

EVENTS = 20_000
COMMAND = """
import atexit, json, os, sys
from collections import Counter
from numba.core import event

class Counted(event.Listener):
    found = Counter()
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.found[f"{function.__module__}.{function.__name__}"] += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Counted())
owner, to = os.getpid(), sys.argv.pop(1)
atexit.register(lambda: os.getpid() == owner and json.dump(Counted.found, open(to, "w")))
from trendloom.cli.entry import start
start()
"""


@dataclass(frozen=True)
class Run:
    """One command: seconds by the clock and of the processors, and what it compiled itself, by function."""

    clock: float
    processor: float
    compiled: dict[str, int] = field(default_factory=dict)

    @property
    def functions(self) -> int:
        return sum(self.compiled.values())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", nargs="+", choices=("local", "spark"), default=("local", "spark"))
    options.add_argument("--only", nargs="+", choices=tuple(USUAL), default=tuple(USUAL), metavar="QUERY")
    options.add_argument("--package", type=Path, help="the `src` to measure, of this clone if not given")
    options.add_argument("--functions", action="store_true", help="list the functions that were compiled")
    options.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    chosen = options.parse_args()
    table = Table(
        "query", "engine", *(f"{when}, {what}" for when in ("cold", "warm") for what in ("clock", "cpu")), "compiled"
    )
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(usual_events(EVENTS), f"{folder}/events.parquet")
        for engine in chosen.engine:
            for name in chosen.only:
                cold, warm = measure(Path(folder), name, engine, chosen.package)
                seconds = [f"{one:.1f} s" for run in (cold, warm) for one in (run.clock, run.processor)]
                table.add_row(name, engine, *seconds, f"{cold.functions} of {len(cold.compiled)}")
                figures.append({"query": name, "engine": engine, "cold": vars(cold), "warm": vars(warm)})
                if chosen.functions:
                    print(name, engine, sorted(cold.compiled.items(), key=lambda one: -one[1]))
    Console(width=140).print(table)
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(figures, indent=1))


def measure(folder: Path, name: str, engine: str, package: Path | None) -> tuple[Run, Run]:
    """A query with nothing compiled, and with all of it."""
    query = folder / "query.tql"
    query.write_text(USUAL[name])
    with tempfile.TemporaryDirectory() as cache:
        arguments = ["run", str(query), "-e", str(folder / "events.parquet"), "--engine", engine, "-f", "parquet"]
        arguments += ["-o", str(folder / "rows.parquet"), "-q"]
        modes = ("auto", "always", "auto") if package is None else ("auto", "auto")  # others compile at once
        found = [run_apart(arguments, Path(cache), package, mode) for mode in modes]
        return found[0], found[-1]


def run_apart(arguments: list[str], cache: Path, package: Path | None, mode: str) -> Run:
    """The command in a process of its own, with compiled code in `cache`; `mode` says when to compile."""
    counts = cache / "counts.json"
    folders = {"TRENDLOOM_CACHE": str(cache / "code"), "NUMBA_CACHE_DIR": str(cache / "numba")}
    environment = {**os.environ, **folders, "TRENDLOOM_COMPILE": mode}
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    before, begin = _processor_time(), time.perf_counter()
    subprocess.run([sys.executable, "-c", COMMAND, str(counts), *arguments], env=environment, check=True)
    clock = time.perf_counter() - begin
    return Run(clock, _processor_time() - before, json.loads(counts.read_text()))


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
