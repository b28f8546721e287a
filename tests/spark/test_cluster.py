"""One job on a real cluster: a master and two workers on this machine, each a process of its own.

What a local session cannot show: that everything a task needs travels to another process, and that workers find the
package and the interpreter.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trendloom as tl

QUERY = "PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match WHERE [k] AND a.x <= NEXT(b).x WITHIN 30"
DRIVER = """
import json, sys
given = json.load(sys.stdin)
import pyarrow as pa
from trendloom.spark import detect, session

spark = session(given["master"], settings={
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    # the job waits for both workers, so that both take part
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.cores.max": "2",
})
rows = detect(spark.createDataFrame(pa.table(given["events"])), given["query"]).toArrow().to_pylist()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("ANSWERS" + json.dumps({"rows": rows, "executors": executors}))
spark.stop()
"""


def environment() -> dict[str, str]:
    import pyspark

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYTHONPATH": str(Path(tl.__file__).resolve().parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started(role: str, *arguments: str, until: str) -> subprocess.Popen[str]:
    """A daemon of the cluster; returns when its log says that it is up."""
    command = [f"{environment()['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{role}", *arguments]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if until in line:
            return process
    raise AssertionError("".join(seen[-20:]))


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    url = f"spark://127.0.0.1:{free_port()}"
    running: list[subprocess.Popen[str]] = []
    try:
        port = url.rsplit(":", 1)[1]
        running.append(
            started("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0", until="ALIVE")
        )
        for number in range(2):
            folder = str(tmp_path / f"worker{number}")
            running.append(
                started(
                    "worker.Worker", url, "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", folder,
                    until="Successfully registered",
                )
            )  # fmt: skip
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
            process.communicate()


def events() -> dict[str, list[Any]]:
    count = 400
    return {
        "id": list(range(count)),
        "type": ["ABBCABCB"[(7 * number + number // 9) % 8] for number in range(count)],
        "time": [number // 2 for number in range(count)],
        "x": [None if number % 11 == 0 else (13 * number) % 17 for number in range(count)],
        "k": [number % 7 for number in range(count)],
    }


def test_a_job_on_two_workers(master: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps({"master": master, "query": QUERY, "events": events()}),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = [line for line in done.stdout.splitlines() if "ANSWERS" in line]
    assert told, done.stderr[-3000:]
    answers = json.loads(told[0].split("ANSWERS", 1)[1])
    local = tl.run(QUERY, pa.table(events()), engine="local").to_pylist()
    assert answers["executors"] == 2
    assert len(local) > 20
    assert sorted(map(json.dumps, answers["rows"])) == sorted(map(json.dumps, local))
