"""The process that Spark's Python workers are copies of: one thread, everything loaded, and nothing out of archives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trendloom.engines.spark.worker_daemon import LOADED, without_archives

pyspark = pytest.importorskip("pyspark")
HOME = Path(pyspark.__file__).parent
ARCHIVES = [str(path) for path in (HOME / "python" / "lib").glob("*.zip")]

LOADS = """
import json, sys
from pathlib import Path
from trendloom.engines.spark.worker_daemon import LOADED, load
sys.path[:0] = json.loads(sys.argv[1])
load()
threads = len(list(Path("/proc/self/task").iterdir()))
print(json.dumps([threads, [name in sys.modules for name in LOADED], sys.modules["pyspark"].__file__]))
"""


def test_it_forks_with_one_thread_and_everything_loaded() -> None:
    command = [sys.executable, "-c", LOADS, json.dumps(ARCHIVES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    threads, loaded, place = json.loads(done.stdout)
    assert threads == 1
    assert loaded == [True] * len(LOADED)
    assert ".zip" not in place


def test_archives_of_another_spark_stay() -> None:
    assert len(ARCHIVES) >= 2
    other = "/opt/spark/python/lib/pyspark.zip"
    paths = [*ARCHIVES, "/somewhere/my.zip", *sys.path]
    assert without_archives(paths) == ["/somewhere/my.zip", *sys.path]
    assert without_archives([other, *sys.path]) == [other, *sys.path]
    assert without_archives(ARCHIVES) == ARCHIVES  # nothing is installed elsewhere
