"""The process that Python workers of a local Spark session are copies of: it has loaded what tasks need.

Spark starts `python -m` this module once, and forks it for every worker. Its own daemon forks before anything is
loaded, so that each worker loads NumPy, Arrow, Numba and Trendloom by itself: two seconds of a processor each time.

A process that forks should have one thread; two libraries would start others when they are loaded, and are asked not
to before.
"""

from __future__ import annotations

import gc
import importlib
import os

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
LOADED = ("pandas", "pyspark.worker", "trendloom.engines.spark.tasks", "trendloom.engines.spark.live.processor")


def load() -> None:
    """Load what tasks need, for all workers to come."""
    os.environ.update(ONE_THREAD)
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()  # a collection in a worker would copy what all of them share


if __name__ == "__main__":
    load()
    from pyspark.daemon import manager

    manager()
