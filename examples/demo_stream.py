"""The live demo: real server metrics are fed, three hours of them every second, and patterns show as they appear.

    make demo-stream               # or: python examples/demo_stream.py [SECONDS]

A thread writes files of readings into a folder, as a collector would. `trendloom stream` reads the folder, with a state
that survives restarts, and prints rows once they are certain. Ctrl-C ends it early.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
METRICS = HERE / "data" / "nab_metrics.parquet"
WORKLOAD = HERE / "demo_stream.tql"
STEP = 3 * 3600 * 1_000_000  # microseconds of the metrics' own time in a file
START = pa.scalar(1_397_088_000_000_000, pa.int64()).cast(pa.timestamp("us", "UTC"))  # when most series are there


def readings() -> pa.Table:
    """Events of all series in order of time."""
    table = pq.read_table(METRICS)
    names = pa.array([name.rsplit("/", 1)[-1] for name in table["series"].to_pylist()])
    types = pa.array(["Reading"] * len(table))
    time_ = table["time"].cast(pa.timestamp("us", "UTC"))
    events = pa.table({"time": time_, "type": types, "series": names, "value": table["value"]})
    return events.filter(pc.greater_equal(events["time"], START)).sort_by("time")


def feed(folder: Path, stop: threading.Event) -> None:
    """A file every second; a fifth of its readings come one file later than they should."""
    events = readings()
    part = (events["time"].cast(pa.int64()).to_numpy() - pc.min(events["time"]).cast(pa.int64()).as_py()) // STEP
    part = part + (np.random.default_rng(7).random(len(part)) < 0.2)
    for number in np.unique(part):
        unfinished = folder / f".{number:06d}"
        pq.write_table(events.filter(pa.array(part == number)), unfinished)
        unfinished.rename(folder / f"{number:06d}.parquet")
        if stop.wait(1.0):
            return


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 90.0
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "readings"
        folder.mkdir()
        feeder = threading.Thread(target=feed, args=(folder, stop), daemon=True)
        feeder.start()
        command = [
            *(sys.executable, "-m", "trendloom", "stream", str(WORKLOAD)),
            *("--source", f"parquet:{folder}", "--schema", "time timestamp, type string, series string, value double"),
            *(
                "--sink",
                "console",
                "--checkpoint",
                str(Path(name) / "checkpoint"),
                "--late-to",
                str(Path(name) / "late"),
            ),
            *("--watermark", "3 hours", "--trigger", "2 seconds"),
        ]
        with subprocess.Popen(command) as stream:
            until = time.monotonic() + seconds
            try:
                while stream.poll() is None and time.monotonic() < until:
                    time.sleep(0.2)
            except KeyboardInterrupt:
                pass  # the stream has heard it, too
            if stream.poll() is None:
                stream.send_signal(signal.SIGINT)
        stop.set()
        feeder.join()
        return stream.returncode


if __name__ == "__main__":
    sys.exit(main())
