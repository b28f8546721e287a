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


ROW_QUERY = """
import json, sys
import pyarrow as pa
import trendloom as tl
events = pa.table({"type": ["A", "B"], "time": [1, 2], "id": [1, 2]})
rows = tl.run("PATTERN SEQ(A a, B b) SEMANTICS skip-till-next-match WITHIN 10", events, engine="local")
print(json.dumps({"rows": rows.num_rows, "modules": sorted(sys.modules)}))
"""
NOT_FOR_ROWS = (
    "trendloom.engines.spark",
    "trendloom.kernels.aggregate.type_grained",
    "trendloom.kernels.ranking",
    "trendloom.kernels.shared",
    "trendloom.kernels.trends",
    "trendloom.kernels.uncertain",
    "trendloom.planner.aggregation",
    "trendloom.planner.counting",
    "trendloom.planner.sharing",
)


def test_a_query_for_rows_loads_no_other_algorithms() -> None:
    done = subprocess.run([sys.executable, "-c", ROW_QUERY], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["rows"] == 1
    assert [name for name in found["modules"] if name.startswith(NOT_FOR_ROWS)] == []
