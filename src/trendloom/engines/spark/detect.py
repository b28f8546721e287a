"""A query over the caller's own DataFrame: bound and planned at once, run when the caller asks for rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from trendloom.engines.spark import batch
from trendloom.engines.spark.frames import describe
from trendloom.engines.spark.workload import bind_all
from trendloom.engines.workload import Options, queries_of
from trendloom.errors import OptionError
from trendloom.physical.plan import plan_physically

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def detect_batch(
    df: DataFrame, text: str, *, query: str | None, numeric: str, partitions: int | None, **columns: Any
) -> DataFrame:
    """One query over a batch DataFrame. Warnings of the binder are Python warnings."""
    options = Options(engine="spark", numeric=numeric, **columns)
    queries = queries_of(text, query)
    if len(queries) > 1:
        names = ", ".join(str(one.name) for one in queries)
        raise OptionError("a DataFrame holds the rows of one query", hint=f"choose with query=: {names}")
    frame = describe(df, options.columns())
    (plan,) = bind_all(queries, frame)
    for warning in plan.warnings:
        warnings.warn(str(warning), stacklevel=3)
    return batch.run(frame.df, plan_physically(plan), frame.arrow, numeric=numeric, partitions=partitions)
