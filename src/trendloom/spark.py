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

`archive` puts a batch of events, and the rows of queries over them, into a folder by type and time:

    archive(spark.read.parquet("events"), text, "plant", keep="30 days")

`watch` looks for reasons that a diagnosis kept as monitors (`trendloom.diagnose(..., save_as="memory_low")`):

    watch(spark.read.parquet("events"), "plant", "memory_low")

`register_source` and `register_sink` add classes of your own to what `trendloom stream` takes
(`trendloom.streaming.connectors`); so do entry points of the groups `trendloom.sources` and `trendloom.sinks`.

Needs the extra `spark`. Any session of your own works too, classic or through Spark Connect.
"""

from __future__ import annotations

from trendloom.engines.spark.detect import archive, detect, watch
from trendloom.engines.spark.session import session
from trendloom.engines.spark.streaming.metrics import Metrics, metrics_of
from trendloom.engines.spark.streaming.sinks import SINKS
from trendloom.engines.spark.streaming.sinks.database import to_database, to_sqlite
from trendloom.engines.spark.streaming.sinks.jsonl import to_jsonl
from trendloom.engines.spark.streaming.sinks.parquet import to_parquet
from trendloom.engines.spark.streaming.sources import SOURCES
from trendloom.engines.spark.streaming.sources.kafka import events_of_kafka

register_source = SOURCES.register
register_sink = SINKS.register

__all__ = [
    "Metrics",
    "archive",
    "detect",
    "events_of_kafka",
    "metrics_of",
    "register_sink",
    "register_source",
    "session",
    "to_database",
    "to_jsonl",
    "to_parquet",
    "to_sqlite",
    "watch",
]
