"""A query over the caller's own DataFrame: bound and planned at once, run when the caller asks for rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from trendloom.engines.workload import Options, queries_of
from trendloom.errors import OptionError, did_you_mean
from trendloom.physical.spread import Path

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
    path: str = "general",
) -> DataFrame:
    """The rows of a query over a batch DataFrame, as a DataFrame; nothing runs before you ask for its rows.

    `query` picks one of a workload. `partitions` is the number of tasks (default: Spark decides). Warnings about the
    query are Python warnings. `path` says how aggregates are spread over tasks: "general" moves all events by key;
    "auto" lets the engine choose, and for that may look at the times and keys at once, in a small job; "reduced" and
    "cut" ask for one way, if the query allows it.
    """
    from trendloom.engines.spark import batch
    from trendloom.engines.spark.frames import describe
    from trendloom.engines.spark.workload import bind_all
    from trendloom.physical.plan import plan_physically

    options = Options(engine="spark", numeric=numeric, time=time, type=type, time_unit=time_unit)
    queries = queries_of(text, query)
    if len(queries) > 1:
        names = ", ".join(str(one.name) for one in queries)
        raise OptionError("a DataFrame holds the rows of one query", hint=f"choose with query=: {names}")
    frame = describe(df, options.columns())
    (plan,) = bind_all(queries, frame)
    for warning in plan.warnings:
        warnings.warn(str(warning), stacklevel=2)
    return batch.run(
        frame.df, plan_physically(plan), frame.arrow, numeric=numeric, partitions=partitions, path=_path(path)
    )


def _path(name: str) -> Path | None:
    known = {"auto": None, "general": Path.GENERAL, "reduced": Path.REDUCED, "cut": Path.CUT}
    if name not in known:
        raise OptionError(f"there is no path '{name}'", hint=did_you_mean(name, known))
    return known[name]
