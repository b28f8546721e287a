"""When an event happened, for Spark's watermark: where its time is imprecise, the earliest time it may have had.

So the watermark promises that no event comes that may have happened earlier. Events that no query wants move it, too.
What is less than a tick is rounded so that a clock is never ahead of its event.
"""

from __future__ import annotations

from functools import reduce
from math import ceil
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from trendloom.engines.spark.columns import column
from trendloom.engines.spark.timestamps import moment_of
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SECOND = 1_000_000
"""Microseconds."""


def clock_of(df: DataFrame, schema: Schema) -> Column:
    """The earliest time of an event as a timestamp."""
    time, kinds = column(schema.times), dict(df.dtypes)
    how = schema.imprecision if schema.bounds is None else None
    if not schema.axis.timestamp:
        number = time.cast("long") if how is None else time.cast("long") - _error(how, schema, kinds)
        return F.timestamp_micros(F.try_multiply(number, F.lit(int(schema.axis.tick))))
    moment = time if kinds[schema.times] == "timestamp" else moment_of(time)
    if how is None:
        return moment
    if how.error_column is not None and kinds[how.error_column].startswith("interval"):
        return moment - column(how.error_column)
    return F.timestamp_micros(F.unix_micros(moment) - _error(how, schema, kinds))


def _error(how: Imprecision, schema: Schema, kinds: dict[str, str]) -> Column:
    """How many ticks an event may be earlier than its time, rounded up."""
    if how.error_column is None:
        given = F.lit(ceil(how.error))
        kind = column(schema.type)
        return reduce(lambda rest, one: F.when(kind == one[0], F.lit(ceil(one[1]))).otherwise(rest), how.by_type, given)
    number = column(how.error_column)
    if not schema.axis.timestamp:
        return F.ceil(number).cast("long")
    if kinds[how.error_column] in ("tinyint", "smallint", "int", "bigint"):
        return number.cast("long") * SECOND
    return F.ceil(number * SECOND).cast("long")
