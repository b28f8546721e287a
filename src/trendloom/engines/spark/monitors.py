"""Monitors on Spark: the features of a formula in one aggregation by window, then the formula as a column.

Events of all types stream through one `groupBy(window).agg(...)`: every feature is an aggregate over the events that it
counts, so a window without such events counts 0 of them and has no mean. Features over longer windows than others
need windows of several sizes at once. They are grouped by a *pane*, the least stretch that holds whole windows of each
size, in which every window has aggregates of its own; so there is still one aggregation, which a live stream can keep
in its state, and alerts are certain once the watermark has passed their pane. Then output mode append gives each once.

A window in which nothing happened at all has no row: a live stream cannot distinguish it from one still to come.
Cost: one partial aggregation per task, and a shuffle of one row per pane and task.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import lcm
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from trendloom.archive import Archive
from trendloom.archive.data_files import read_schema
from trendloom.diagnosis.feature_space import is_number
from trendloom.diagnosis.features import BITS, Feature
from trendloom.diagnosis.formula import COMPARE, Formula, Predicate
from trendloom.diagnosis.monitors import Monitor
from trendloom.engines.spark.columns import clock_of, column, epoch_plus
from trendloom.engines.spark.frames import Frame, describe
from trendloom.engines.spark.streaming.checkpoint import has_offsets, read_note, write_note
from trendloom.engines.spark.streaming.metrics import RESULTS
from trendloom.engines.spark.streaming.stream import StreamSettings, without_marks
from trendloom.errors import DataError, OptionError, StateError, did_you_mean, option
from trendloom.io.timestamps import ticks
from trendloom.logical.display import show_duration
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import TimeAxis
from trendloom.options import Options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


NOTE = "trendloom_monitors.json"
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


def live_alerts(
    df: DataFrame,
    monitors: Sequence[Monitor],
    axis: TimeAxis,
    options: Options,
    *,
    watermark: str | None,
    checkpoint: str | None,
) -> tuple[DataFrame, Frame]:
    """The alerts of monitors over a batch or a streaming DataFrame, and the meaning of its columns.

    `axis`: that of the archive which keeps the monitors. `watermark` None: a batch, not a stream. `checkpoint`: where
    the stream will be started.
    """
    if watermark is not None:
        StreamSettings(watermark, 1)  # refuses what is not a delay
    frame = without_marks(describe(df, options.columns()))
    formulas = {one.name: _on_axis(one.formula, axis, frame.schema.axis) for one in monitors}
    for name, formula in formulas.items():
        _refuse_missing_columns(name, formula, frame)
    if checkpoint is not None:
        _agree(checkpoint, {name: formula.to_json() for name, formula in formulas.items()})
    rows = [alerts(frame, formula, name, watermark=watermark) for name, formula in formulas.items()]
    found = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), rows)
    return (found if watermark is None else found.observe(RESULTS, F.count(F.lit(1)).alias("rows"))), frame


def _archived_events(spark: SparkSession, archive: Archive, formula: Formula, low: int, high: int) -> DataFrame:
    """Events of all types, each with the columns that the formula needs of it.

    Files of one type with the same columns are read together; with given columns, Spark need not look for them.
    """
    time = column(archive.time)
    tick = F.unix_micros(time) if archive.axis.timestamp else time
    groups: dict[tuple[str, str], list[str]] = {}
    for file in archive.files:
        if file.kind == "events" and file.overlaps(low, high):
            groups.setdefault((file.of, file.schema), []).append(str((archive.root / file.path).resolve()))
    frames = []
    for (type_, schema), paths in sorted(groups.items()):
        columns = read_schema(archive.root, schema)
        needed = [columns.field(name) for name in _needed(formula, type_) if name in columns.names]
        casts = [column(one.name).cast("double" if is_number(one.type) else "string").alias(one.name) for one in needed]
        df = spark.read.schema(from_arrow_schema(columns)).parquet(*paths).where((tick >= low) & (tick < high))
        frames.append(df.select(time, F.lit(type_).alias(archive.type), *casts))
    return _union(frames)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, NULL in columns that a frame lacks; a balanced tree, so that the plan is not deep."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return _union(frames[:middle]).unionByName(_union(frames[middle:]), allowMissingColumns=True)


def _needed(formula: Formula, type_: str) -> list[str]:
    """The columns that the features of a type need."""
    return list(dict.fromkeys(name for one in formula.features if one.type == type_ for name in _columns_of(one)))


def _columns_of(feature: Feature) -> list[str]:
    names = (feature.attribute, None if feature.category is None else feature.category[0])
    return [name for name in names if name is not None]


def _on_axis(formula: Formula, archived: TimeAxis, live: TimeAxis) -> Formula:
    """The formula with its windows in ticks of the live events."""
    if archived.tick == live.tick:
        return formula

    def rescaled(window: int) -> int:
        ticks = window * Fraction(archived.tick) / live.tick
        if ticks.denominator != 1:
            raise DataError(
                f"a window of {show_duration(window, archived)} is not a whole number of the live events' time units",
                hint=f"say what their times count: {option('time_unit')}",
            )
        return int(ticks)

    clauses = tuple(
        tuple(replace(one, feature=replace(one.feature, window=rescaled(one.feature.window))) for one in clause)
        for clause in formula.clauses
    )
    return Formula(clauses)


def _refuse_missing_columns(name: str, formula: Formula, frame: Frame) -> None:
    """A column that is not there would never have a value, and the monitor never an alert."""
    for one in (one for feature in formula.features for one in _columns_of(feature)):
        if frame.schema.column(one) is None:
            hint = did_you_mean(one, frame.schema.names)
            raise OptionError(f"monitor '{name}' needs a column '{one}', which the events do not have", hint=hint)


def _agree(checkpoint: str, formulas: dict[str, Any]) -> None:
    """Note for which monitors a checkpoint is, or refuse one that is for others.

    What Spark's state means is said by the formula alone: another formula under the same name would read the old
    numbers as its own.
    """
    there = read_note(checkpoint, NOTE)
    if there is None:
        if has_offsets(checkpoint):
            raise StateError(f"the checkpoint {checkpoint} is of another stream", hint="give monitors one of their own")
        write_note(checkpoint, NOTE, json.dumps(formulas))
    elif json.loads(there) != json.loads(json.dumps(formulas)):
        raise StateError(
            f"the checkpoint {checkpoint} is of monitors with other formulas ({', '.join(sorted(json.loads(there)))})",
            hint="start with a new checkpoint: what this one has counted is of no use to another formula",
        )


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
    for at, feature in enumerate(formula.features):
        counted = _counts_for(feature, frame.schema)
        for number in range(panes.length // feature.window):
            test = _in_window(inside, feature.window, number) & counted
            found.append(_aggregate(feature, frame.schema, tick, test).alias(f"{at} {number}"))
    return df.groupBy(F.window(column(CLOCK), length).alias(PANE)).agg(*found)


def _in_window(inside: Column, window: int, number: int) -> Column:
    return (inside >= number * window) & (inside < (number + 1) * window)


def _counts_for(feature: Feature, schema: Schema) -> Column:
    """Which events a feature counts."""
    test = column(schema.type) == F.lit(feature.type)
    if feature.category is None:
        return test
    name, value = feature.category
    if schema.kind(name) is None:
        return F.lit(False)
    return test & (column(name).cast("string") == F.lit(value))


def _aggregate(feature: Feature, schema: Schema, tick: Column, test: Column) -> Column:
    """A feature as an aggregate over the events that pass a test."""
    if feature.attribute is None:
        return F.count_if(F.coalesce(test, F.lit(False))).cast("double")
    if schema.kind(feature.attribute) is None:  # events without the attribute: it has no value, ever
        return F.max(F.lit(None).cast("double"))
    number = column(feature.attribute).cast("double")
    if schema.kind(feature.attribute) is Kind.FLOAT:
        number = F.when(~F.isnan(number), number)  # NaN is NULL, as everywhere
    return _aggregate_of(feature.function, F.when(test, number), tick)


def _aggregate_of(function: str, value: Column, tick: Column) -> Column:
    """One of the functions of features, of values (those that are NULL are not there) with their times."""
    if function == "count":
        return F.count(value).cast("double")
    if function == "mean":  # of equal values exactly that, whatever their sum is rounded to
        return _rounded_number(F.greatest(F.least(F.avg(value), F.max(value)), F.min(value)))
    if function == "min":
        return F.min(value)
    if function == "max":
        return F.max(value)
    if function == "deviation":
        return F.when(F.min(value) == F.max(value), F.lit(0.0)).otherwise(_rounded_number(F.stddev_pop(value)))
    if function == "change":
        order = F.when(value.isNotNull(), F.struct(tick, value))
        return F.max_by(value, order) - F.min_by(value, order)
    raise OptionError(
        f"feature function '{function}' is one of your own, and runs in Python only",
        hint=f"leave out {option('features')} where the reason is to become a monitor",
    )


def _rounded_number(value: Column) -> Column:
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
    local = dict(frame.df.dtypes)[frame.schema.time] == "timestamp_ntz"
    return epoch_plus(micros) if local else F.timestamp_micros(micros)
