"""Processes for tests that need more than the session of this one: daemons of Spark, and clients in Python."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import trendloom

MARK = "ANSWERS"


def environment() -> dict[str, str]:
    """Everything stays on this machine; workers find the interpreter and the package that the tests use."""
    import pyspark

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYTHONPATH": str(Path(trendloom.__file__).resolve().parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    }


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def daemon(program: str, *arguments: str, until: str) -> Iterator[None]:
    """A program of Spark's `bin` that runs until the block ends; the block begins when its log says `until`."""
    command = [f"{environment()['SPARK_HOME']}/bin/{program}", *arguments]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    seen = []
    try:
        for line in process.stderr:
            seen.append(line)
            if until in line:
                break
        else:
            raise AssertionError("".join(seen[-20:]))
        # a log that nobody reads fills its pipe, and the daemon waits for ever
        Thread(target=process.stderr.read, daemon=True).start()
        yield
    finally:
        process.terminate()
        process.wait()


def answers_of(script: str, given: object) -> dict[str, Any]:
    """Run a Python script that reads `given` as JSON and prints MARK and its answers."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(given),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    told = [line for line in done.stdout.splitlines() if MARK in line]
    assert told, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(told[0].split(MARK, 1)[1])
    return found
