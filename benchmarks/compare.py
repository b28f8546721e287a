"""Two checkouts of this project, side by side: `python -m benchmarks.compare OTHER/src [--events N] [--rounds R]`.

A process for each answers the same queries over the same events in turn, everything compiled before, so that whatever
disturbs the machine disturbs both. Answers are compared. Seconds are the best of the rounds; a ratio above one says
that this checkout is slower than the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.many_queries import in_one_text, plain_queries
from trendloom.engines.precompile_queries import MORE, USUAL, usual_events

HERE = Path(__file__).resolve().parents[1] / "src"
SLOWER = 1.05
WORKER = """
import hashlib, json, sys, time, warnings
import pyarrow.parquet as pq
import trendloom as tl
warnings.simplefilter("ignore")
events = pq.read_table(sys.argv[1])
told = sys.stdout
for line in sys.stdin:
    query = json.loads(line)
    begin = time.perf_counter()
    rows = tl.run(query, events)
    seconds = time.perf_counter() - begin
    digest = hashlib.sha256()
    for batch in rows.combine_chunks().to_batches():
        for column in batch.columns:
            digest.update(repr(column[:1000].to_pylist()).encode())
    print(json.dumps([seconds, rows.num_rows, digest.hexdigest()]), file=told, flush=True)
"""


@dataclass
class Side:
    """A checkout that answers."""

    process: subprocess.Popen[str]

    @classmethod
    def of(cls, source: Path, events: str) -> Side:
        environment = {**os.environ, "PYTHONPATH": str(source), "TRENDLOOM_COMPILE": "always"}
        command = [sys.executable, "-c", WORKER, events]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return cls(subprocess.Popen(command, env=environment, **pipes))

    def ask(self, query: str) -> tuple[float, int, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(query), file=self.process.stdin, flush=True)
        seconds, rows, digest = json.loads(self.process.stdout.readline())
        return seconds, rows, digest


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("other", type=Path, help="the `src` of the other checkout")
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", nargs="+", metavar="QUERY")
    chosen = options.parse_args()
    queries = {**USUAL, **MORE, "20 queries of one key set": in_one_text(plain_queries(20))}
    table = Table("query", "rows", "other", "here", "ratio", "same rows")
    slower = []
    with tempfile.TemporaryDirectory() as folder:
        events = f"{folder}/events.parquet"
        pq.write_table(usual_events(chosen.events), events)
        sides = [Side.of(chosen.other, events), Side.of(HERE, events)]
        for name in chosen.only or queries:
            found = [[side.ask(queries[name]) for side in sides] for _ in range(chosen.rounds + 1)]
            best = [min(turn[at][0] for turn in found[1:]) for at in (0, 1)]
            same = found[0][0][1:] == found[0][1][1:]
            ratio = best[1] / best[0]
            slower += [name] if ratio > SLOWER or not same else []
            row = (f"{found[0][1][1]:,}", *(f"{one:.3f} s" for one in best), f"{ratio:.2f}", str(same))
            table.add_row(name, *row)
        for side in sides:
            side.process.terminate()
    Console(width=120).print(table)
    sys.exit(f"slower, or not the same: {', '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()
