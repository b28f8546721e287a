"""The public door to Spark: `detect` patterns in DataFrames, and a `session` with fitting settings.

    from trendloom.spark import detect, session
    spark = session()
    result = detect(spark.read.parquet("events"), "PATTERN SEQ(A a, B+ b[], C c) WHERE [user]")

Needs the extra `spark`. Any session of your own works too, classic or through Spark Connect.
"""

from __future__ import annotations

from trendloom.engines.spark.detect import detect
from trendloom.engines.spark.session import session

__all__ = ["detect", "session"]
