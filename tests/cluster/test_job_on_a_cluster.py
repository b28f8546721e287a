"""One job on a real cluster, whose processes are apart.

What a local session cannot show: that everything a task needs travels to another process, and that workers find the
package and the interpreter.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from tests.spark.processes import answers_of
from tests.spark.streaming_cluster import Cluster

import trendloom as tl

QUERY = "PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match WHERE [k] AND a.x <= NEXT(b).x WITHIN 30"
DRIVER = """
import json, os, sys
given = json.load(sys.stdin)
import pyarrow as pa
from trendloom.spark import detect, session

spark = session(given["master"], settings={
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
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


def events() -> dict[str, list[Any]]:
    count = 400
    return {
        "id": list(range(count)),
        "type": ["ABBCABCB"[(7 * number + number // 9) % 8] for number in range(count)],
        "time": [number // 2 for number in range(count)],
        "x": [None if number % 11 == 0 else (13 * number) % 17 for number in range(count)],
        "k": [number % 7 for number in range(count)],
    }


def test_a_job_on_two_workers(cluster: Cluster) -> None:
    answers = answers_of(DRIVER, {"master": cluster.url, "query": QUERY, "events": events()})
    local = tl.run(QUERY, pa.table(events()), engine="local").to_pylist()
    assert answers["executors"] == 2
    assert len(local) > 20
    assert sorted(map(json.dumps, answers["rows"])) == sorted(map(json.dumps, local))
