"""Monitors over live events: every alert once, as soon as the watermark has passed its window.

The aggregation keeps its windows in Spark's state, under the checkpoint. What the state means is said by the formula
alone, so the checkpoint notes which monitors it is for: another formula under the same name would read the old numbers
as its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow.fs as fs
from pyspark.sql import functions as F

from trendloom.diagnosis.formula import Formula
from trendloom.diagnosis.monitors import Monitor
from trendloom.engines.spark.diagnosis.monitors import alerts
from trendloom.engines.spark.frames import Frame, describe
from trendloom.engines.spark.streaming.detect import without_marks
from trendloom.engines.spark.streaming.metrics import RESULTS
from trendloom.engines.spark.streaming.settings import StreamSettings
from trendloom.errors import DataError, OptionError, StateError, did_you_mean, option
from trendloom.io.files import place
from trendloom.logical.display import show_duration
from trendloom.model.time import TimeAxis
from trendloom.options import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOTE = "trendloom_monitors.json"


def live_alerts(
    df: DataFrame,
    monitors: Sequence[Monitor],
    axis: TimeAxis,
    options: Options,
    *,
    watermark: str | None,
    checkpoint: str | None,
) -> tuple[DataFrame, Frame]:
    """The alerts of monitors over a DataFrame, and what its columns are.

    `axis`: that of the archive which keeps the monitors. `watermark` None: a batch, not a stream. `checkpoint`: where
    the stream will be started.
    """
    if watermark is not None:
        StreamSettings(watermark, 1)  # refuses what is not a delay
    frame = without_marks(describe(df, options.columns()))
    formulas = [_on_axis(one.formula, axis, frame.schema.axis) for one in monitors]
    for one, formula in zip(monitors, formulas, strict=True):
        _refuse_missing_columns(one.name, formula, frame)
    if checkpoint is not None:
        _agree(checkpoint, {one.name: formula.to_json() for one, formula in zip(monitors, formulas, strict=True)})
    rows = [
        alerts(frame, formula, one.name, watermark=watermark) for one, formula in zip(monitors, formulas, strict=True)
    ]
    found = rows[0]
    for more in rows[1:]:
        found = found.unionByName(more, allowMissingColumns=True)
    return (found if watermark is None else found.observe(RESULTS, F.count(F.lit(1)).alias("rows"))), frame


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
    for feature in formula.features:
        wanted = [feature.attribute, None if feature.category is None else feature.category[0]]
        for column in wanted:
            if column is not None and frame.schema.column(column) is None:
                hint = did_you_mean(column, frame.schema.names)
                raise OptionError(
                    f"monitor '{name}' needs a column '{column}', which the events do not have", hint=hint
                )


def _agree(checkpoint: str, told: dict[str, Any]) -> None:
    """Note for which monitors a checkpoint is, or refuse one that is for others."""
    system, folder = place(checkpoint)
    path = f"{folder}/{NOTE}"
    if system.get_file_info(path).type is fs.FileType.File:
        with system.open_input_stream(path) as source:
            there = json.loads(source.read())
        if there != json.loads(json.dumps(told)):
            raise StateError(
                f"the checkpoint {checkpoint} is of monitors with other formulas ({', '.join(sorted(there))})",
                hint="start with a new checkpoint: what this one has counted is of no use to another formula",
            )
        return
    if system.get_file_info(f"{folder}/offsets").type is fs.FileType.Directory:
        raise StateError(f"the checkpoint {checkpoint} is of another stream", hint="give monitors one of their own")
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(path) as sink:
        sink.write(json.dumps(told).encode())
