"""The baseline of streams: the same pattern by Flink's MATCH_RECOGNIZE, on the same events, with the same answer.

`python -m benchmarks.peers.flink.run --events 5000000 --keys 1000` measures it alone. A slow baseline proves nothing:
Flink gets the best of what we tried: SQL without Python functions, object reuse, state on the heap, no checkpoints,
4 GB and the parallel collector, one CSV file. Generating the events inside Flink reads faster but showed no gain in
matching; two files were slower than one, since their readers drift apart and what is ahead waits in state.

The Java machine is warmed by a whole run. Then a fifth of the events and all of them are timed in turns, the best of
each: the difference is the steady rate, free of starting and stopping. Writing the CSV is not Flink's time; writing the
rows of the answer is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.cases.events import same_rows
from benchmarks.peers.flink.environment import flink_python
from benchmarks.peers.flink.workload import ROWS, events_for_flink, expected_rows, milliseconds

PARALLELISM = 2  # as `job.SETTINGS` has it
JAVA = "-Xms4g -Xmx4g -XX:+UseParallelGC"
CONDITIONS = f"PyFlink 2.3 SQL, parallelism {PARALLELISM}, hashmap state, no checkpoints, {JAVA}"


@dataclass(frozen=True)
class FlinkRun:
    """What Flink needed for all events, warm, and the Parquet file with its answer (columns `workload.ROWS`).

    `steady` and `source` are events per second, of the pattern and of the source alone. `processor`: seconds of all
    threads in the best run; where it is far below 2 × `seconds`, others kept the cores from Flink, and
    `undisturbed` is the fairer rate (still too low: sharing caches costs processor time, too).
    """

    events: int
    keys: int
    seconds: float
    steady: float
    source: float
    processor: float
    matches: int
    rows: Path
    conditions: str = CONDITIONS

    @property
    def rate(self) -> float:
        """Events per second of the whole warm run, with starting and stopping."""
        return self.events / self.seconds

    @property
    def undisturbed(self) -> float:
        """Events per second had both cores been Flink's all the time, by the processor time of the best run."""
        return PARALLELISM * self.events / self.processor


@dataclass(frozen=True)
class Timed:
    """One job by Flink's own account."""

    seconds: float
    processor: float


def flink_matches(events: Path, keys: int, within_seconds: int, out: Path, *, tries: int = 2) -> FlinkRun:
    """Match SEQ(A, B+, C), contiguous per key, by Flink, and write the rows found to `out` as Parquet.

    `events` is a Parquet file with id, time (in order, milliseconds apart), type and key.
    """
    table = pq.read_table(events, columns=["id", "time", "type", "key"])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        every, some = write_csv(table, work / "all.csv"), write_csv(table.slice(0, len(table) // 5), work / "some.csv")
        match = [_order(every, within_seconds, work / "rows-warm")]
        for number in range(tries):
            match.append(_order(some, within_seconds, work / f"rows-some-{number}"))
            match.append(_order(every, within_seconds, work / f"rows-{number}"))
        read = [_order(every), *(_order(file) for _ in range(tries) for file in (some, every))]
        timed = _run_job(match + read)
        rows = read_rows(work / "rows-0")
    pq.write_table(rows, out)
    long, short = _best(timed[2 : len(match) : 2]), _best(timed[1 : len(match) : 2])
    source_long, source_short = _best(timed[len(match) + 2 :: 2]), _best(timed[len(match) + 1 :: 2])
    return FlinkRun(
        events=len(table),
        keys=keys,
        seconds=long.seconds,
        steady=_steady(len(table), long, short),
        source=_steady(len(table), source_long, source_short),
        processor=long.processor,
        matches=len(rows),
        rows=out,
    )


def write_csv(events: pa.Table, target: Path) -> Path:
    """The events as the one file that Flink reads: id, milliseconds, type, key, in order of time."""
    columns = {"id": events["id"], "ms": milliseconds(events), "type": events["type"], "key": events["key"]}
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), target, options)
    return target


def read_rows(folder: Path) -> pa.Table:
    """The rows that Flink's tasks wrote, in order of their first event."""
    schema = pa.schema([(name, pa.int64()) for name in ROWS])
    options = pa.csv.ReadOptions(column_names=list(ROWS))
    convert = pa.csv.ConvertOptions(column_types=schema)
    files = [file for file in sorted(folder.glob("*")) if file.stat().st_size] if folder.exists() else []
    tables = [pa.csv.read_csv(file, options, convert_options=convert) for file in files]
    return pa.concat_tables([schema.empty_table(), *tables]).sort_by("first_id")


def _order(events: Path, within_seconds: int | None = None, rows: Path | None = None) -> dict[str, str]:
    """What the job is asked for; without rows to write, the source alone."""
    matching = {} if rows is None else {"rows": str(rows), "within": str(within_seconds)}
    return {"events": str(events), **matching}


def _run_job(orders: list[dict[str, str]]) -> list[Timed]:
    # -P: this folder's modules must not hide others of the same name
    command = [str(flink_python()), "-P", str(Path(__file__).with_name("job.py"))]
    environment = {**os.environ, "JVM_ARGS": JAVA}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, input=json.dumps(orders), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the Flink job failed; does `java -version` say 17?\n{done.stderr[-4000:]}")
    return [Timed(**one) for one in json.loads(done.stdout.splitlines()[-1])]


def _best(runs: list[Timed]) -> Timed:
    return min(runs, key=lambda run: run.seconds)


def _steady(events: int, long: Timed, short: Timed) -> float:
    """Events per second beyond the first fifth; never less than over the whole, which a disturbance could pretend."""
    rest, seconds = events - events // 5, long.seconds - short.seconds
    return max(events / long.seconds, rest / seconds if seconds > 0 else 0.0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=5_000_000)
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--within", type=int, default=600, help="seconds")
    options.add_argument("--tries", type=int, default=2)
    chosen = options.parse_args()
    events = events_for_flink(chosen.events, chosen.keys)
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "events.parquet", Path(folder) / "rows.parquet"
        pq.write_table(events, file)
        found = flink_matches(file, chosen.keys, chosen.within, out, tries=chosen.tries)
        good = same_rows(pq.read_table(out), expected_rows(events, chosen.within))
    print(found.conditions)
    print(
        f"{found.events:,} events, {found.keys:,} keys, {found.matches:,} matches, answer {'' if good else 'NOT '}right"
    )
    print(f"steady {found.steady:,.0f}/s, whole run {found.rate:,.0f}/s in {found.seconds:.3g} s")
    print(f"undisturbed {found.undisturbed:,.0f}/s by {found.processor:.3g} s of processor")
    print(f"source alone {found.source:,.0f}/s")


if __name__ == "__main__":
    main()
