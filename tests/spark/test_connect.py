"""`detect` and `run` through Spark Connect: the client has no JVM objects, only the DataFrame's public face.

Classic and Connect sessions cannot live in one process, so the client is a process of its own, as is the server.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import QUICK_SPARK
from tests.spark.processes import answers_of, daemon, free_port

import trendloom as tl

QUERIES = {
    "matches": "PATTERN SEQ(A a, B+ b[]) WHERE [k] AND a.x < b.x WITHIN 6 SLIDE 3",
    "values": "RETURN a.id, sum(b[].x) AS total PATTERN SEQ(A a, B+ b[]) WHERE [k]",
    "totals": "RETURN k, COUNT(*), SUM(B.x), MAX(B.id) PATTERN SEQ(A, B+) GROUP BY k",
    "coarse totals": "RETURN COUNT(*), AVG(B.x) PATTERN SEQ(A, B+) WHERE [k]",
}
EVENTS = {
    "id": [f"e{number}" for number in range(12)],
    "type": list("ABABABBBAABB"),
    "time": list(range(12)),
    "x": [1, 2, None, 4, 3, 6, 1, 8, 2, 1, 5, 7],
    "k": [1, 1, 2, 2, 1, 2, 2, 1, 2, 1, 1, None],
}
CLIENT = """
import json, sys
import pyarrow as pa
import trendloom as tl
from trendloom.spark import detect, session

given = json.load(sys.stdin)
spark = session(given["server"])
table = pa.table(given["events"])
answers = {"session": type(spark).__module__}
for name, query in given["queries"].items():
    found = detect(spark.createDataFrame(table), query)
    answers[name] = {"columns": found.columns, "rows": found.toArrow().to_pylist()}
answers["run"] = tl.run(given["queries"]["matches"], table, engine="spark").to_pylist()
try:
    detect(spark.createDataFrame([("A", None)], "type string, time int"), "PATTERN A").collect()
except Exception as error:
    answers["error"] = str(error)
print("ANSWERS" + json.dumps(answers, default=str))
spark.stop()
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        **QUICK_SPARK,
    }
    options = [option for key, value in settings.items() for option in ("--conf", f"{key}={value}")]
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]", *options)
    with daemon("spark-submit", *server, "spark-internal", until="Spark Connect server started"):
        return answers_of(CLIENT, {"server": f"sc://127.0.0.1:{port}", "queries": QUERIES, "events": EVENTS})


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in rows)


def test_it_is_a_connect_session(answers: dict[str, Any]) -> None:
    assert answers["session"].startswith("pyspark.sql.connect")


@pytest.mark.parametrize("name", QUERIES)
def test_detect_gives_the_rows_of_the_local_engine(answers: dict[str, Any], name: str) -> None:
    local = tl.run(QUERIES[name], pa.table(EVENTS), engine="local")
    assert answers[name]["columns"] == local.column_names
    as_on_spark = [{key: _as_decimal(key, value) for key, value in row.items()} for row in local.to_pylist()]
    assert as_text(answers[name]["rows"]) == as_text(as_on_spark)
    assert local.num_rows > 0


def _as_decimal(name: str, value: Any) -> Any:
    """Exact totals are decimals on Spark, which JSON has as text."""
    return str(value) if name.startswith(("COUNT", "SUM")) else value


def test_run_uses_the_session_that_is_there(answers: dict[str, Any]) -> None:
    local = tl.run(QUERIES["matches"], pa.table(EVENTS), engine="local")
    assert as_text(answers["run"]) == as_text(local.to_pylist())


def test_errors_of_a_task_can_be_read(answers: dict[str, Any]) -> None:
    assert "1 of 1 events in a task have no time" in answers["error"]
