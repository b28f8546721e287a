"""The process that Python workers of a local Spark session are copies of: it has loaded what tasks need.

Spark starts `python -m` this module once, and forks it for every worker. Its own daemon forks before anything is
loaded, so that each worker loads NumPy, Arrow, Numba and Trendloom by itself; and it loads PySpark from archives of
sources, which Python compiles each time. Together that is seconds of a processor for every worker.

A process that forks should have one thread; two libraries would start others when they are loaded, unless the
environment forbids it.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
LOADED = (
    "pandas",
    "pyspark.worker",
    "trendloom.engines.spark.workload_job",
    "trendloom.engines.spark.streaming.stepping",
)


def load() -> None:
    """Load what tasks need, for all workers to come."""
    os.environ.update(ONE_THREAD)
    sys.path[:] = without_archives(sys.path)
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()  # a collection in a worker would copy what all of them share


def without_archives(paths: list[str]) -> list[str]:
    """The paths without Spark's archives, if the packages in them are installed around these archives."""
    archives = [path for path in paths if path.endswith(".zip") and Path(path).parts[-3:-1] == ("python", "lib")]
    others = [path for path in paths if path not in archives]
    found = PathFinder.find_spec("pyspark", others)
    if found is None or found.origin is None or PathFinder.find_spec("py4j", others) is None:
        return paths
    home = Path(found.origin).parent.resolve()
    return others if all(Path(path).resolve().is_relative_to(home) for path in archives) else paths


if __name__ == "__main__":
    load()
    from pyspark.daemon import manager

    manager()
