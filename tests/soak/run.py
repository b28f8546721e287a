"""A live stream for a long time at a steady rate, with kills at random moments: every row once, memory and state flat.

    python -m tests.soak.run --minutes 20 --kills 12

Writes a report into benchmark-output/soak and ends with an error if a row is lost or double, or something grows.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.feed import Feed
from tests.soak.kills import Kill, strike, timetable
from tests.soak.report import Outcome, write_report
from tests.soak.verdict import judge
from tests.soak.watch import NOISE, Watch, java_options, progress_of
from tests.spark.streaming_cluster import Cluster, Driver
from tests.spark.streams import WORKLOAD, counted, difference, expected_rows, late_events, names_of, rows_given_out

FILES = 8
"""Files that one batch may take: more than one, so that the stream catches up after a kill."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=int, default=1000, help="events per second")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("benchmark-output/soak"))
    return parser.parse_args()


def settings(folder: Path) -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": java_options(folder, "driver"),
        "spark.executor.extraJavaOptions": java_options(folder, "executor"),
        # a Python worker that grows without bound ends itself, not the machine
        "spark.executor.pyspark.memory": "4g",
        # the files of the last hundred batches, as is the default, would grow for half of the run
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    }


def stream(folder: Path, cluster: Cluster) -> Driver:
    chosen = settings(cluster.folder)
    return Driver(folder / "stream", cluster.url, WORKLOAD, settings=chosen, files=FILES, every="4 seconds")


def run_for(given: argparse.Namespace, cluster: Cluster, driver: Driver) -> list[Kill]:
    """Let the stream run for its time, and kill at the times of the timetable."""
    draw = random.Random(given.seed)
    begin, seconds, kills = time.monotonic(), given.minutes * 60, []
    for at, kind in timetable(given.kills, seconds, draw):
        wait_till(begin + at, driver)
        kills.append(strike(kind, cluster, driver, draw))
        print(f"{at:6.0f} s  killed: {kind}, batch {kills[-1].batch} done after {kills[-1].recovery:.1f} s", flush=True)
    wait_till(begin + seconds, driver)
    return kills


def wait_till(moment: float, driver: Driver) -> None:
    while time.monotonic() < moment:
        driver.check()
        time.sleep(min(1, max(moment - time.monotonic(), 0)))


def soak(given: argparse.Namespace, folder: Path) -> Outcome:
    with (
        Cluster(folder / "cluster") as cluster,
        stream(folder, cluster) as driver,
    ):
        feed = Feed(driver.path("source"), given.rate, given.seed)
        watch = Watch(cluster, driver)
        driver.start()
        feed.start()
        driver.wait_for_batch(1, 300)
        begin = time.time()
        watch.start()
        kills = run_for(given, cluster, driver)
        end = time.time()
        watch.stop()
        feed.stop()
        driver.stop()
    timely, late = feed.events()
    want = expected_rows(WORKLOAD, timely)
    got = rows_given_out(driver.path("sink"), names_of(WORKLOAD))
    series = watch.series()
    outcome = Outcome(
        minutes=given.minutes,
        rate=given.rate,
        seed=given.seed,
        begin=begin,
        events=len(timely),
        late=len(late),
        rows={name: rows.total() for name, rows in want.items()},
        differences=difference(got, want),
        late_differ=late_events(driver.path("late"), "m") != counted(late),
        kills=kills,
        batches=[one["durationMs"]["triggerExecution"] / 1000 for one in progress_of(driver)],
        verdicts=[judge(name, series.get(name, []), begin, end, noise) for name, noise in NOISE.items()],
    )
    write_report(given.output, outcome, series)
    return outcome


def main() -> int:
    given = options()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    outcome = soak(given, folder)
    print((given.output / "report.md").read_text())
    if outcome.passed:
        shutil.rmtree(folder)
        return 0
    print(f"everything of the run is in {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
