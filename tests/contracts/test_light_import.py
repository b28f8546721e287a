"""`import trendloom` is quick and loads no heavy library: people import it in notebooks, commands and workers."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys, time
start = time.perf_counter()
import trendloom
seconds = time.perf_counter() - start
heavy = [name for name in ("pyspark", "numba", "pandas", "polars", "matplotlib", "dash") if name in sys.modules]
print(json.dumps({"seconds": seconds, "heavy": heavy}))
"""


def measure() -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_loads_no_heavy_library() -> None:
    assert measure()["heavy"] == []


def test_import_takes_less_than_half_a_second() -> None:
    # the best of three: other processes on the machine only ever make it slower
    assert min(float(str(measure()["seconds"])) for _ in range(3)) < 0.5
