"""What is measured during a soak: memory of all processes, memory that collections leave, state, bytes on disk."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.spark.streaming_cluster import Cluster, Driver, descendants

EVERY = 2.0
COLLECTION = re.compile(r"^\[([^\]]+)\].* \d+M->(\d+)M\(")
MEMORY = ("driver, Python", "driver, JVM", "largest executor, JVM", "largest Python worker")
HEAP = ("heap of driver after collections", "heap of executors after collections")
STATE = ("memory of state stores", "state on disk")
ROWS = "rows of state"
NOISE = dict.fromkeys((*MEMORY, *HEAP), 32 << 20) | {
    # every store has a cache of 8 MiB that fills
    "memory of state stores": 4 * 8 << 20,
    "state on disk": 1 << 20,
    # a few chunks of events per query and bucket, by the pace of batches
    ROWS: 48,
}
"""What is judged, and how much of it comes and goes without being growth."""

Series = dict[str, list[tuple[float, float]]]


def java_options(folder: Path, role: str) -> str:
    """The heap is there from the start, so that what grows is not the heap; collections are logged."""
    return f"-Xms1g -XX:+AlwaysPreTouch -Xlog:gc:file={folder}/gc-{role}-%p.log:time"


@dataclass
class Watch:
    """Samples in a thread; `series` adds what driver and JVMs have written themselves."""

    cluster: Cluster
    driver: Driver
    sampled: Series = field(default_factory=lambda: defaultdict(list))
    stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self.thread = threading.Thread(target=self._sample_on_time, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join()

    def _sample_on_time(self) -> None:
        while not self.stopping.wait(EVERY):
            at = time.time()
            for name, value in self._sample().items():
                if value:
                    self.sampled[name].append((at, value))

    def _sample(self) -> dict[str, float]:
        process = self.driver.process
        below = {} if process is None else descendants(process.pid)
        java = [pid for pid, command in below.items() if "java" in command]
        return {
            "driver, Python": resident(process.pid) if process is not None else 0,
            "driver, JVM": sum(map(resident, java)),
            "largest executor, JVM": max(map(resident, self.cluster.executors()), default=0),
            # not their sum: how many there are changes with every kill
            "largest Python worker": max(map(resident, self.cluster.python_workers()), default=0),
            "state on disk": bytes_in(self.driver.path("checkpoint") / "state"),
            "whole checkpoint on disk": bytes_in(self.driver.path("checkpoint")),
        }

    def series(self) -> Series:
        found = dict(self.sampled)
        for progress in progress_of(self.driver):
            at, operator = datetime.fromisoformat(progress["timestamp"]).timestamp(), progress["stateOperators"][0]
            found.setdefault(ROWS, []).append((at, operator["numRowsTotal"]))
            found.setdefault("memory of state stores", []).append((at, operator["memoryUsedBytes"]))
        for role, name in zip(("driver", "executor"), HEAP, strict=True):
            found[name] = sorted(
                left for path in self.cluster.folder.glob(f"gc-{role}-*.log") for left in after_collections(path)
            )
        return found


def resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def bytes_in(folder: Path) -> int:
    """Bytes of all files in a folder that changes meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def after_collections(path: Path) -> list[tuple[float, float]]:
    """When memory was collected, and what was left."""
    found = (COLLECTION.match(line) for line in path.read_text(errors="replace").splitlines())
    return [(datetime.fromisoformat(hit[1]).timestamp(), float(int(hit[2]) << 20)) for hit in found if hit]


def progress_of(driver: Driver) -> list[dict[str, Any]]:
    """What Spark said of every batch; a line that the driver could not finish is none."""
    found = []
    for line in driver.path("progress.jsonl").read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found
