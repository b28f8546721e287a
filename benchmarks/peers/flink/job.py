"""The Flink job, run by PyFlink's own interpreter: SQL all the way, so that no row passes through Python.

Reads its orders as JSON from standard input, runs them one after the other in one warm Java machine, and prints for
each the seconds by Flink's own account (from the job's start to its end) and the processor time of the Java machine.
What it gives Flink: see `SETTINGS`, and the driver for the memory.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",  # operators hand rows on without copying
    "state.backend.type": "hashmap",  # state as objects on the heap, nothing serialized
    "pipeline.auto-watermark-interval": "200 ms",  # the default; 50 ms and 1 s showed no gain
    "table.local-time-zone": "UTC",
}  # checkpoints are off unless asked for

# An event as old as the watermark is late in Flink: without disorder the watermark is a millisecond behind.
EVENTS = """
CREATE TABLE events (
    id BIGINT, ms BIGINT, type STRING, key BIGINT,
    ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{events}')
"""
NOTHING = """
CREATE TABLE target (id BIGINT, ts TIMESTAMP_LTZ(3), type STRING, key BIGINT) WITH ('connector' = 'blackhole')
"""
ROWS = """
CREATE TABLE target (key BIGINT, first_id BIGINT, last_id BIGINT, count_b BIGINT)
WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{rows}')
"""
READ = "INSERT INTO target SELECT id, ts, type, key FROM events"
MATCH = """
INSERT INTO target SELECT key, first_id, last_id, count_b FROM events MATCH_RECOGNIZE (
    PARTITION BY key ORDER BY ts
    MEASURES A.id AS first_id, C.id AS last_id, COUNT(B.id) AS count_b
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A B+ C) WITHIN INTERVAL '{within}' SECOND(9)
    DEFINE A AS A.type = 'A', B AS B.type = 'B', C AS C.type = 'C'
)
"""


def main() -> None:
    settings = Configuration()
    for name, value in SETTINGS.items():
        settings.set_string(name, value)
    chosen = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build()
    tables = TableEnvironment.create(chosen)
    print(json.dumps([run(tables, order) for order in json.load(sys.stdin)]))


def run(tables: TableEnvironment, order: dict[str, str]) -> dict[str, float]:
    """One job: with `rows` and `within` the pattern, without them the source alone."""
    matching = "rows" in order
    for name in ("events", "target"):
        tables.execute_sql(f"DROP TABLE IF EXISTS {name}")
    tables.execute_sql(EVENTS.format(**order))
    tables.execute_sql((ROWS if matching else NOTHING).format(**order))
    spent = processor_seconds()
    client = tables.execute_sql((MATCH if matching else READ).format(**order)).get_job_client()
    done = client.get_job_execution_result().result()
    return {"seconds": done.get_net_runtime() / 1_000, "processor": processor_seconds() - spent}


def processor_seconds() -> float:
    """Processor time so far of this process's children: the Java machine."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    fields = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children]
    return sum(int(user) + int(system) for user, system in (some[11:13] for some in fields)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
