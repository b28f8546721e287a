"""Process that answers queries with the checkout on its PYTHONPATH, one request per line of standard input.

It runs by path, not as a module, and imports only the public doors, so that it works with any checkout. A request is a
JSON object with `text`, `events` (a Parquet file), `options` and, where the rows are to be kept, `target`; the reply is
the seconds and the number of rows. Events are read before the clock starts; on Spark reading is a part of the
measurement.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl

warnings.simplefilter("ignore")
replies = sys.stdout
sys.stdout = sys.stderr


@cache
def read_events(path: str) -> pa.Table:
    return pq.read_table(path)


@cache
def spark_session() -> Any:
    from trendloom.spark import session

    return session("local[2]")


def run_query(request: dict[str, Any], engine: str) -> tuple[float, pa.Table]:
    """Seconds and rows of one call."""
    if engine == "spark":
        from trendloom.spark import detect

        frame = spark_session().read.parquet(request["events"])
        begin = time.perf_counter()
        rows = detect(frame, request["text"]).toArrow()
    else:
        events = read_events(request["events"])
        begin = time.perf_counter()
        rows = tl.run(request["text"], events, **request["options"])
    return time.perf_counter() - begin, rows


for line in sys.stdin:
    asked = json.loads(line)
    seconds, found = run_query(asked, sys.argv[1])
    if asked.get("target"):
        pq.write_table(found, asked["target"])
    print(json.dumps([seconds, found.num_rows]), file=replies, flush=True)
