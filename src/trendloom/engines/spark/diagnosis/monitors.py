"""A monitor on Spark: the features of its formula in one aggregation by window, then the formula as a column.

Events of all types stream through one `groupBy(window).agg(...)`: every feature is an aggregate over the events that it
speaks of, so a window without such events counts 0 of them and has no mean. Features over longer windows than others
need windows of several sizes at once. They are grouped by a *pane*, the least stretch that holds whole windows of each
size, in which every window has aggregates of its own; so there is still one aggregation, which a live stream can keep
in its state, and alerts are certain once the watermark has passed their pane. Then output mode append gives each once.

A window in which nothing happened at all has no row: a live stream cannot distinguish it from one still to come.
Cost: one partial aggregation per task, and a shuffle of one row per pane and task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import lcm
from operator import and_, or_
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.archive import Archive, ArchivedFile
from trendloom.archive.data_files import read_schema
from trendloom.diagnosis.feature_space import is_number
from trendloom.diagnosis.features import BITS, Feature
from trendloom.diagnosis.formula import COMPARE, Formula, Predicate
from trendloom.diagnosis.monitors import Monitor
from trendloom.engines.spark.columns import column
from trendloom.engines.spark.frames import Frame, describe
from trendloom.engines.spark.streaming.stream import clock_of
from trendloom.errors import OptionError, option
from trendloom.io.timestamps import ticks
from trendloom.model.schema import Kind, Schema
from trendloom.options import Options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# The events of an archive as DataFrames: files of one type with the same columns are read together.


@dataclass(frozen=True)
class ParquetGroup:
    """Files of one type with the same columns."""

    type: str
    files: tuple[ArchivedFile, ...]
    columns: pa.Schema

    def read(self, spark: SparkSession, root: Path) -> DataFrame:
        """Their rows; with given columns, Spark need not look for them."""
        from pyspark.sql.pandas.types import from_arrow_schema

        paths = [str((root / file.path).resolve()) for file in self.files]
        return spark.read.schema(from_arrow_schema(self.columns)).parquet(*paths)


def sources_of(archive: Archive, wanted: Callable[[ArchivedFile], bool]) -> Iterator[ParquetGroup]:
    """The wanted files of events, by type and columns."""
    found: dict[tuple[str, str], list[ArchivedFile]] = {}
    for file in archive.files:
        if file.kind == "events" and wanted(file):
            found.setdefault((file.of, file.schema), []).append(file)
    for (type_, _), files in sorted(found.items()):
        yield ParquetGroup(type_, tuple(files), read_schema(archive.root, files[0].schema))


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows; halved again and again, because a chain of hundreds is too deep for Spark's optimizer."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union_of(frames[:middle]).unionByName(union_of(frames[middle:]))


CLOCK, PANE, HAPPENED = "_trendloom_clock", "_trendloom_pane", "_trendloom_happened"
MOST_WINDOWS = 240
"""Windows in one pane: each has aggregates of its own, and Spark makes code for all of them at once."""


def alerts(frame: Frame, formula: Formula, name: str, *, watermark: str | None = None) -> DataFrame:
    """The windows in which the formula holds: `monitor`, `window_start`, `window_end`, and a column per feature.

    Windows are the shortest of the formula's. `watermark`: of a stream; how long to wait for late events.
    """
    panes = panes_of(formula)
    df = _features(frame, formula, panes, watermark)
    windows = F.explode(F.array(*(_window(formula, panes, number) for number in range(panes.count))))
    held = df.select(PANE, windows.alias("w")).where(column("w")[HAPPENED] & column("w")["holds"])
    tick = int(frame.schema.axis.tick)
    start = F.unix_micros(column(PANE)["start"]) + F.col("w")["offset"] * tick
    values = [F.col("w")[str(place)].alias(feature.name) for place, feature in enumerate(formula.features)]
    bounds = [start, start + panes.window * tick]
    times = [_time(bound, frame) for bound in bounds]
    return held.select(
        F.lit(name).alias("monitor"), times[0].alias("window_start"), times[1].alias("window_end"), *values
    )


def archive_alerts(
    spark: SparkSession, archive: Archive, monitor: Monitor, low: int | None = None, high: int | None = None
) -> pa.Table:
    """The alerts of a monitor over an archive, as `diagnosis.monitors.run_monitor` finds them."""
    formula = monitor.formula
    window = min(feature.window for feature in formula.features)
    first, last = archive.span
    begin = (first if low is None else max(low, first)) // window * window
    end = -(-(last + 1 if high is None else min(high, last + 1)) // window) * window
    # longer windows begin before the first and end after the last of the shortest
    longest = max(feature.window for feature in formula.features)
    events = _archived_events(spark, archive, formula, begin // longest * longest, -(-end // longest) * longest)
    options = Options(time=archive.time, type=archive.type, time_unit=archive.unit)
    found = alerts(describe(events, options.columns()), formula, monitor.name).orderBy("window_start").toArrow()
    starts = ticks(found.column("window_start"), archive.axis)
    return found.filter(pa.array((starts >= begin) & (starts < end)))


def _archived_events(spark: SparkSession, archive: Archive, formula: Formula, low: int, high: int) -> DataFrame:
    """Events of all types, each with the columns that the formula needs of it."""
    time = column(archive.time)
    tick = F.unix_micros(time) if archive.axis.timestamp else time
    frames = []
    for source in sources_of(archive, lambda file: file.overlaps(low, high)):
        needed = [name for name in _needed(formula, source.type) if name in source.columns.names]
        kinds = {name: "double" if is_number(source.columns.field(name).type) else "string" for name in needed}
        df = source.read(spark, archive.root).where((tick >= low) & (tick < high))
        casts = [column(name).cast(kind).alias(name) for name, kind in kinds.items()]
        frames.append((df.select(time, F.lit(source.type).alias(archive.type), *casts), kinds))
    every = {name: kind for _, kinds in frames for name, kind in kinds.items()}
    whole = [
        df.select("*", *(F.lit(None).cast(every[name]).alias(name) for name in every if name not in kinds))
        for df, kinds in frames
    ]
    return union_of(whole)


def _needed(formula: Formula, type_: str) -> list[str]:
    """The columns that the features of a type speak of."""
    some = [one for one in formula.features if one.type == type_]
    names = [one.attribute for one in some] + [one.category[0] for one in some if one.category is not None]
    return list(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True)
class Panes:
    """Panes of `length` ticks with `count` windows of the shortest size, `window`."""

    length: int
    window: int

    @property
    def count(self) -> int:
        return self.length // self.window


def panes_of(formula: Formula) -> Panes:
    """The panes that hold whole windows of every size; sizes that hardly ever meet are refused."""
    sizes = {feature.window for feature in formula.features}
    found = Panes(lcm(*sizes), min(sizes))
    if found.count > MOST_WINDOWS:
        lengths = " and ".join(sorted(feature.length or str(feature.window) for feature in formula.features))
        raise OptionError(
            f"windows of {lengths} begin together only every {found.count} windows, which is too seldom to watch them",
            hint=f"diagnose again with {option('windows')} that divide each other",
        )
    return found


# ------------------------------------------------------------------------------------------- the aggregation


def _features(frame: Frame, formula: Formula, panes: Panes, watermark: str | None) -> DataFrame:
    """One row per pane: what happened in each of its windows, and every feature over each of its windows."""
    axis = frame.schema.axis
    df = frame.df.withColumn(CLOCK, clock_of(frame.df, frame.schema))
    df = df.where(column(CLOCK).isNotNull())
    if watermark is not None:
        df = df.withWatermark(CLOCK, watermark)
    tick = F.unix_micros(column(CLOCK)) if axis.timestamp else column(frame.schema.time).cast("long")
    inside = F.pmod(tick, F.lit(panes.length))
    length = f"{panes.length * int(axis.tick)} microseconds"
    found = [
        F.bool_or(_in_window(inside, panes.window, number)).alias(f"{HAPPENED} {number}")
        for number in range(panes.count)
    ]
    for place, number, feature in _aggregated(formula, panes):
        test = _in_window(inside, feature.window, number) & _speaks_of(feature, frame.schema)
        found.append(aggregate(feature, frame.schema, tick, test).alias(f"{place} {number}"))
    return df.groupBy(F.window(column(CLOCK), length).alias(PANE)).agg(*found)


def _aggregated(formula: Formula, panes: Panes) -> Iterator[tuple[int, int, Feature]]:
    """Each feature by its place in the formula, with the number of each of its windows in a pane."""
    for place, feature in enumerate(formula.features):
        for number in range(panes.length // feature.window):
            yield place, number, feature


def _in_window(inside: Column, window: int, number: int) -> Column:
    return (inside >= number * window) & (inside < (number + 1) * window)


def _speaks_of(feature: Feature, schema: Schema) -> Column:
    """Which events a feature is about."""
    test = column(schema.type) == F.lit(feature.type)
    if feature.category is None:
        return test
    name, value = feature.category
    if schema.kind(name) is None:
        return F.lit(False)
    return test & (column(name).cast("string") == F.lit(value))


def aggregate(feature: Feature, schema: Schema, tick: Column, test: Column) -> Column:
    """A feature as an aggregate over the events that pass a test."""
    if feature.attribute is None:
        return F.count_if(F.coalesce(test, F.lit(False))).cast("double")
    if schema.kind(feature.attribute) is None:  # events without the attribute: it has no value, ever
        return F.max(F.lit(None).cast("double"))
    value = F.when(test, number_of(column(feature.attribute), schema.kind(feature.attribute)))
    return aggregate_of(feature.function, value, tick)


def number_of(value: Column, kind: Kind | None) -> Column:
    """A value of an attribute as a double; NaN is NULL, as everywhere."""
    number = value.cast("double")
    return F.when(~F.isnan(number), number) if kind is Kind.FLOAT else number


def aggregate_of(function: str, value: Column, tick: Column) -> Column:
    """One of the functions of features, of values (those that are NULL are not there) with their times."""
    if function == "count":
        return F.count(value).cast("double")
    if function == "mean":  # of equal values exactly that, whatever their sum is rounded to
        return rounded_number(F.greatest(F.least(F.avg(value), F.max(value)), F.min(value)))
    if function == "min":
        return F.min(value)
    if function == "max":
        return F.max(value)
    if function == "deviation":
        return F.when(F.min(value) == F.max(value), F.lit(0.0)).otherwise(rounded_number(F.stddev_pop(value)))
    if function == "change":
        order = F.when(value.isNotNull(), F.struct(tick, value))
        return F.max_by(value, order) - F.min_by(value, order)
    raise OptionError(
        f"feature function '{function}' is one of your own, and runs in Python only",
        hint=f"leave out {option('features')} where the reason is to become a monitor",
    )


def rounded_number(value: Column) -> Column:
    """As `diagnosis.features.rounded`: what differs by the order of addition only becomes equal."""
    exponent = F.floor(F.log2(F.abs(value))) + 1
    places = F.lit(float(BITS)) - exponent
    scaled = F.rint(value * F.pow(F.lit(2.0), places)) * F.pow(F.lit(2.0), -places)
    return F.when(value == 0, F.lit(0.0)).otherwise(scaled)


# ------------------------------------------------------------------------------------------------ the formula


def _window(formula: Formula, panes: Panes, number: int) -> Column:
    """One of the shortest windows of a pane: where it begins, its features, and whether the formula holds."""
    offset = number * panes.window
    values = [
        column(f"{place} {offset // feature.window}").alias(str(place))
        for place, feature in enumerate(formula.features)
    ]
    places = dict(zip(formula.features, values, strict=True))
    clauses = [reduce(or_, [_holds(one, places[one.feature]) for one in clause]) for clause in formula.clauses]
    holds = reduce(and_, clauses) if clauses else F.lit(False)
    happened = F.coalesce(column(f"{HAPPENED} {number}"), F.lit(False))
    return F.struct(F.lit(offset).cast("long").alias("offset"), happened.alias(HAPPENED), holds.alias("holds"), *values)


def _holds(predicate: Predicate, value: Column) -> Column:
    """A comparison; of what has no value it is false."""
    compared: Column = COMPARE[predicate.operator](value, F.lit(predicate.bound))
    return F.coalesce(compared, F.lit(False))


def _time(micros: Column, frame: Frame) -> Column:
    """A time of the kind of the events' times."""
    axis = frame.schema.axis
    if not axis.timestamp:
        return (micros / F.lit(int(axis.tick))).cast("long")
    moment = F.timestamp_micros(micros)
    local = dict(frame.df.dtypes)[frame.schema.time] == "timestamp_ntz"
    return F.timestamp_add("MICROSECOND", micros, F.lit("1970-01-01").cast("timestamp_ntz")) if local else moment
