"""Compare two checkouts of this project: `python -m benchmarks.compare BEFORE AFTER [--quick] [--limit 1.05]`.

A process for each checkout runs the same queries over the same files of events in turns, after a first run that
compiles, so that whatever disturbs the machine disturbs both. The rows of the first run are compared, in any order. A
ratio is the median seconds of AFTER over those of BEFORE; where it is beyond the limit, the case is measured for as
many rounds again, twice, before it counts. The exit code is 1 if an answer differs or a ratio stays beyond the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.cases.compared import LOCAL, SPARK, ComparedCase, compared_events

WORKER = Path(__file__).parent / "harness" / "checkout_worker.py"
EVENTS, QUICK_EVENTS = 1_000_000, 100_000
ROUNDS, EXTENSIONS = 5, 2
DIGITS = 12
"""Sums of doubles depend on the order in which tasks end: they are compared to so many digits."""


@dataclass(frozen=True)
class Comparison:
    """One case: seconds of every round, before and after, and how many rows were compared and equal."""

    name: str
    rows: int
    same: bool
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return median(self.after) / median(self.before)

    def passes(self, limit: float | None) -> bool:
        """A case without rows has compared nothing."""
        return self.same and self.rows > 0 and (limit is None or self.ratio <= limit)


class Checkout:
    """A process that answers with the source of one checkout."""

    def __init__(self, folder: Path, engine: str) -> None:
        source = folder / "src"
        if not (source / "trendloom").is_dir():
            raise SystemExit(f"{folder} is not a checkout of this project: it has no src/trendloom")
        environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "TRENDLOOM_COMPILE": "always"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER), engine],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, case: ComparedCase, events: str, target: str = "") -> tuple[float, int]:
        """Seconds and number of rows; the rows are written to `target`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"text": case.text, "events": events, "options": case.options, "target": target}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        reply = self._process.stdout.readline()
        if not reply:
            raise SystemExit(f"a checkout has failed on: {case.text}")
        seconds, rows = json.loads(reply)
        return seconds, rows

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before", type=Path, help="a checkout of the project")
    options.add_argument("after", type=Path, help="another one")
    options.add_argument("--quick", action="store_true", help="a tenth of the events")
    options.add_argument("--limit", type=float, help="the largest ratio that passes")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--engines", nargs="+", choices=("local", "spark"), default=("local", "spark"))
    options.add_argument("--only", nargs="+", metavar="CASE", help="names of cases")
    chosen = options.parse_args()
    events = QUICK_EVENTS if chosen.quick else EVENTS
    found: list[Comparison] = []
    for engine, cases in (("local", LOCAL), ("spark", SPARK)):
        if engine in chosen.engines:
            some = {name: case for name, case in cases.items() if not chosen.only or name in chosen.only}
            found += compare_checkouts(chosen.before, chosen.after, engine, some, events, chosen.rounds, chosen.limit)
    show_comparisons(found, chosen.limit)
    failed = [one.name for one in found if not one.passes(chosen.limit)]
    if failed or not found:
        sys.exit(f"slower, or other rows, or none: {', '.join(failed)}" if found else "nothing was compared")


def compare_checkouts(
    before: Path,
    after: Path,
    engine: str,
    cases: Mapping[str, ComparedCase],
    events: int,
    rounds: int = ROUNDS,
    limit: float | None = None,
) -> list[Comparison]:
    """Run all cases on one engine in both checkouts."""
    found: list[Comparison] = []
    with tempfile.TemporaryDirectory() as folder:
        sides = [Checkout(checkout, engine) for checkout in (before, after)]
        try:
            for name, case in cases.items():
                file = _events_file(Path(folder), int(events * case.share))
                one = _compare_case(sides, f"{engine}, {name}", case, file, rounds, limit)
                Console(stderr=True).print(f"  {one.name}: {one.ratio:.3f}{'' if one.same else ', OTHER ROWS'}")
                found.append(one)
        finally:
            for side in sides:
                side.close()
    return found


def _events_file(folder: Path, count: int) -> str:
    file = folder / f"{count}.parquet"
    if not file.exists():
        pq.write_table(compared_events(count), file, row_group_size=max(count // 4, 1))
    return str(file)


def _compare_case(
    sides: list[Checkout], name: str, case: ComparedCase, events: str, rounds: int, limit: float | None
) -> Comparison:
    targets = [str(Path(events).with_name(f"rows-{number}.parquet")) for number in range(len(sides))]
    for side, target in zip(sides, targets, strict=True):
        side.run(case, events, target)
    first, second = (pq.read_table(target) for target in targets)
    same, rows = same_rows_in_any_order(first, second), len(first)
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(1 + EXTENSIONS):
        for number in range(rounds):
            for at in (0, 1) if number % 2 == 0 else (1, 0):
                measured, count = sides[at].run(case, events)
                seconds[at].append(measured)
                same = same and count == rows
        found = Comparison(name, rows, same, tuple(seconds[0]), tuple(seconds[1]))
        if limit is None or found.ratio <= limit:
            break
    return found


def same_rows_in_any_order(first: pa.Table, second: pa.Table) -> bool:
    """Whether two tables have the same columns and, counted, the same rows."""
    if first.column_names != second.column_names or len(first) != len(second):
        return False
    if not len(first) or first.equals(second):
        return True
    return _sorted_rows(first) == _sorted_rows(second)


def _sorted_rows(table: pa.Table) -> list[str]:
    columns = [[_text_of(value) for value in column.to_pylist()] for column in table.columns]
    return sorted("\t".join(row) for row in zip(*columns, strict=True))


def _text_of(value: Any) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else repr(value)


def show_comparisons(found: list[Comparison], limit: float | None) -> None:
    table = Table("case", "rows", "before", "after", "after / before", "rows are the same")
    for one in found:
        mark = "" if limit is None or one.ratio <= limit else f" > {limit}"
        seconds = (f"{median(some):.3f} s" for some in (one.before, one.after))
        table.add_row(one.name, f"{one.rows:,}", *seconds, f"{one.ratio:.3f}{mark}", "yes" if one.same else "NO")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
