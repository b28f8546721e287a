"""A standalone cluster on this machine whose processes can be killed one by one, and a driver that can be, too.

Processes are found through /proc: what descends from a worker is an executor, its Python daemon, or a Python worker.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.spark.processes import environment, free_port

from trendloom.engines.spark.session import WORKER_DAEMON

PLACES = ("source", "checkpoint", "late", "sink", "stop")
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    "spark.python.daemon.module": WORKER_DAEMON,
    "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "4",
    # a killed process fails the task that it worked on, and the shuffle files it held fail others
    "spark.task.maxFailures": "50",
    "spark.stage.maxConsecutiveAttempts": "20",
}


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"in {seconds} s: not {what}")
        time.sleep(0.05)


# ------------------------------------------------------------------------------------------------- processes


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the command line of every process that runs."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found[int(folder.name)] = (int(parent), command)
    return found


def descendants(*roots: int) -> dict[int, str]:
    """The command lines of the processes that descend from some, by their ids."""
    running, found = processes(), {}
    generation = set(roots)
    while generation:
        generation = {pid for pid, (parent, _) in running.items() if parent in generation}
        found.update({pid: running[pid][1] for pid in generation})
    return found


def processor_time(pid: int) -> int:
    """The time that a process has computed, in ticks of the system's; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11]) + int(fields[12])


def kill(pid: int) -> None:
    """kill -9, unless it is gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


# --------------------------------------------------------------------------------------------------- cluster


@dataclass
class Cluster:
    """A master and workers with one core each. Logs and work folders are in `folder`."""

    folder: Path
    workers: int = 2
    url: str = field(init=False)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Cluster:
        port = str(free_port())
        self.url = f"spark://127.0.0.1:{port}"
        self._start("master", "ALIVE", "org.apache.spark.deploy.master.Master", "--port", port)
        for number in range(self.workers):
            self._launch_worker(number)
        for number in range(self.workers):
            self._await(f"worker{number}", "Successfully registered")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        below = self._below()
        for process in reversed(self.running.values()):
            process.kill()
            process.wait()
        for pid in below:
            kill(pid)

    def executors(self) -> list[int]:
        return [pid for pid, command in self._below().items() if "CoarseGrainedExecutorBackend" in command]

    def python_workers(self) -> list[int]:
        """The Python processes that work for tasks: children of the daemon of an executor."""
        daemons = [pid for pid, command in self._below().items() if WORKER_DAEMON in command]
        return [pid for pid, command in descendants(*daemons).items() if WORKER_DAEMON in command]

    def kill_worker(self, number: int) -> None:
        """As if its machine was switched off: the worker, its executors and their Python processes."""
        process = self.running.pop(f"worker{number}")
        below = descendants(process.pid)
        for pid in (process.pid, *below):
            kill(pid)
        process.wait()

    def start_worker(self, number: int) -> None:
        self._launch_worker(number)
        self._await(f"worker{number}", "Successfully registered")

    def _below(self) -> dict[int, str]:
        return descendants(*(process.pid for process in self.running.values()))

    def _launch_worker(self, number: int) -> None:
        own = ("-c", "1", "-m", "1g", "-d", str(self.folder / f"work{number}"))
        self._launch(f"worker{number}", "org.apache.spark.deploy.worker.Worker", self.url, *own)

    def _start(self, name: str, until: str, *command: str) -> None:
        self._launch(name, *command)
        self._await(name, until)

    def _launch(self, name: str, *command: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"{name}.log"
        log.unlink(missing_ok=True)
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        with log.open("wb") as told:
            self.running[name] = subprocess.Popen(
                [f"{environment()['SPARK_HOME']}/bin/spark-class", *command, *here],
                # an application is not given up because many of its executors are killed
                env=environment() | {"SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1"},
                stdout=subprocess.DEVNULL,
                stderr=told,
            )

    def _await(self, name: str, until: str) -> None:
        log = self.folder / f"{name}.log"
        wait_until(lambda: until in log.read_text(errors="replace"), f"'{until}' in {log}", 180)


# ---------------------------------------------------------------------------------------------------- driver


@dataclass
class Driver:
    """The program `stream_driver`, with everything that belongs to its stream in `folder`."""

    folder: Path
    master: str
    workload: str
    settings: dict[str, str] = field(default_factory=dict)
    buckets: int = 4
    files: int = 1
    every: str = "0 seconds"  # from one batch to the next, at least
    process: subprocess.Popen[bytes] | None = None

    def path(self, name: str) -> Path:
        return self.folder / name

    def start(self, *, hold: int | None = None) -> None:
        """Start, or go on from the checkpoint. `hold`: stop for ever when that batch is written but not committed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path("source").mkdir(exist_ok=True)
        given: dict[str, Any] = {
            name: str(self.path(name)) for name in ("source", "checkpoint", "late", "sink", "stop")
        }
        given |= {"master": self.master, "workload": self.workload, "settings": SETTINGS | self.settings}
        given |= {"buckets": self.buckets, "files": self.files, "every": self.every, "hold": hold}
        given["progress"] = str(self.path("progress.jsonl"))
        self.path("given.json").write_text(json.dumps(given))
        with self.path("driver.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.stream_driver", str(self.path("given.json"))],
                cwd=ROOT,
                env=environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9 of the Python process and its JVM, at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Let it work off what has arrived, and wait for its end."""
        assert self.process is not None
        self.path("stop").touch()
        assert self.process.wait(timeout=300) == 0, self.log()[-5000:]

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def log(self) -> str:
        return self.path("driver.log").read_text(errors="replace")

    # What a checkpoint says: offsets/N is there when batch N begins, commits/N when it is done.

    def begun(self) -> int:
        """The last batch that has begun, -1 if none has."""
        return self._last("offsets")

    def committed(self) -> int:
        """The last batch that is done, -1 if none is."""
        return self._last("commits")

    def wait_for_batch(self, number: int, seconds: float = 300) -> None:
        """Wait until a batch is under way, that one or a later one."""

        def under_way() -> bool:
            self.check()
            return self.begun() >= number and self.begun() > self.committed()

        wait_until(under_way, f"batch {number} under way", seconds)

    def check(self) -> None:
        """The program must not have ended by itself."""
        assert self.process is not None
        assert self.process.poll() is None, self.log()[-5000:]

    def _last(self, name: str) -> int:
        folder = self.path("checkpoint") / name
        return max((int(one.name) for one in folder.glob("[0-9]*")), default=-1) if folder.exists() else -1
