"""The public door to Spark: `detect` patterns in DataFrames, and a `session` with fitting settings.

    from trendloom.spark import detect, session
    spark = session()
    result = detect(spark.read.parquet("events"), "PATTERN SEQ(A a, B+ b[], C c) WHERE [user]")

Needs the extra `spark`. Any session of your own works too, classic or through Spark Connect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trendloom.engines.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def detect(
    df: DataFrame,
    text: str,
    *,
    time: str = "time",
    type: str = "type",
    time_unit: str = "s",
    numeric: str = "exact",
    query: str | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """The rows of a query over a batch DataFrame, as a DataFrame; nothing runs before you ask for its rows.

    `query` picks one of a workload. `partitions` is the number of tasks (default: Spark decides).
    """
    from trendloom.engines.spark.detect import detect_batch

    return detect_batch(
        df, text, query=query, numeric=numeric, partitions=partitions, time=time, type=type, time_unit=time_unit
    )


__all__ = ["detect", "session"]
