"""The public door to Spark: `detect` patterns in DataFrames, and a `session` with fitting settings.

    from trendloom.spark import detect, session
    spark = session()
    result = detect(spark.read.parquet("events"), "PATTERN SEQ(A a, B+ b[], C c) WHERE [user]")

A streaming DataFrame gives a streaming DataFrame. `to_parquet`, `to_jsonl`, `to_sqlite` and `to_database` make
functions for `foreachBatch` that write every row exactly once, `metrics_of` tells what the query is doing,
`events_of_kafka` decodes messages:

    events = events_of_kafka(spark.readStream.format("kafka")...load(), "time timestamp, type string, user string")
    rows = detect(events, text, watermark="10 seconds", checkpoint="state")
    query = rows.writeStream.option("checkpointLocation", "state").foreachBatch(to_sqlite("rows.db", "matches")).start()
    metrics_of(query).late

Needs the extra `spark`. Any session of your own works too, classic or through Spark Connect.
"""

from __future__ import annotations

from trendloom.engines.spark.detect import detect
from trendloom.engines.spark.live.database import to_database, to_sqlite
from trendloom.engines.spark.live.metrics import Metrics, metrics_of
from trendloom.engines.spark.live.sinks import to_jsonl, to_parquet
from trendloom.engines.spark.live.sources import events_of_kafka
from trendloom.engines.spark.session import session

__all__ = [
    "Metrics",
    "detect",
    "events_of_kafka",
    "metrics_of",
    "session",
    "to_database",
    "to_jsonl",
    "to_parquet",
    "to_sqlite",
]
