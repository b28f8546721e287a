"""The features of a diagnosis by Spark: one aggregation over the archive's Parquet, small tables to the driver.

Events of every type become rows (window, type, attribute, category, number), once for all events and once for each
column of few values, and one `groupBy` makes all features of all types; so the number of jobs does not grow with the
number of types. What comes to the driver is a row for each window and group, which is put into the same table that
`explanation.space` makes in one process.

Cost: attributes · (1 + categories) rows for each event, added up where they are read, before anything is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from trendloom.engines.spark.columns import column
from trendloom.explanation.features import Feature, FeatureTable, Floats, Ticks, rounded
from trendloom.explanation.space import MOST_VALUES, FeatureSpace, LeftOut, is_number, is_text
from trendloom.io.archive import Archive, ArchivedFile
from trendloom.io.archive.schemas import read_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

WINDOW, TYPE, ATTRIBUTE, CATEGORY, VALUE = "window", "type", "attribute", "category", "value"
GROUP = (WINDOW, TYPE, ATTRIBUTE, CATEGORY, VALUE)
CategoryValues = tuple[str | None, tuple[str | None, ...]]
"""A category and its values; None: all events."""

MAYBE = 2 * MOST_VALUES
"""Columns whose values are estimated to be fewer may be categories; they are counted exactly afterwards."""


def features_on_spark(
    spark: SparkSession, archive: Archive, starts: Ticks, window: int, space: FeatureSpace
) -> FeatureTable:
    """All features over these windows, as `explanation.space.features_at` makes them of tables."""
    sources = tuple(sources_of(archive, lambda file: _holds_any(file, starts, window)))
    if not sources:
        return FeatureTable((), window, starts, np.zeros((0, len(starts))))
    reading = _ArchiveReading(spark, archive, starts, window, space)
    categories = _categories(reading, sources)
    rows = [reading.groups(source, categories.get(source.type, ())) for source in sources]
    return _TableMaking(reading, _columns_by_type(sources, archive)).table(_added_up(union_of(rows)).toArrow())


# ---------------------------------------------------------------------------------------------- what is read


@dataclass(frozen=True)
class ParquetSource:
    """Files of one type with the same columns."""

    type: str
    files: tuple[ArchivedFile, ...]
    columns: pa.Schema

    def read(self, spark: SparkSession, root: Path) -> DataFrame:
        """Their rows; Spark is told the columns, so that it need not look for them."""
        from pyspark.sql.pandas.types import from_arrow_schema

        paths = [str((root / file.path).resolve()) for file in self.files]
        return spark.read.schema(from_arrow_schema(self.columns)).parquet(*paths)


def sources_of(archive: Archive, wanted: Callable[[ArchivedFile], bool]) -> Iterator[ParquetSource]:
    """The wanted files of events, by type and columns."""
    found: dict[tuple[str, str], list[ArchivedFile]] = {}
    for file in archive.files:
        if file.kind == "events" and wanted(file):
            found.setdefault((file.of, file.schema), []).append(file)
    for (type_, _), files in sorted(found.items()):
        yield ParquetSource(type_, tuple(files), read_schema(archive.root, files[0].schema))


def _holds_any(file: ArchivedFile, starts: Ticks, window: int) -> bool:
    if file.low is None or file.high is None:
        return True
    after = np.searchsorted(starts, file.low - window, side="right")
    return bool(after < len(starts) and starts[after] <= file.high)


@dataclass(frozen=True, eq=False)
class _ArchiveReading:
    """How events become rows to be added up."""

    spark: SparkSession
    archive: Archive
    starts: Ticks
    window: int
    space: FeatureSpace

    def events(self, source: ParquetSource) -> DataFrame:
        """The events of the windows, with their tick and the start of their window."""
        df = source.read(self.spark, self.archive.root)
        time = column(self.archive.time)
        tick = F.unix_micros(time) if self.archive.axis.timestamp else time.cast("long")
        low, high = int(self.starts[0]), int(self.starts[-1]) + self.window
        df = df.withColumn(" tick", tick).where((column(" tick") >= low) & (column(" tick") < high))
        df = df.withColumn(WINDOW_OF, column(" tick") - F.pmod(column(" tick"), F.lit(self.window)))
        if len(self.starts) * self.window == high - low:
            return df
        wanted = self.spark.createDataFrame(pa.table({WINDOW_OF: self.starts}))
        return df.join(F.broadcast(wanted), WINDOW_OF, "left_semi")

    def groups(self, source: ParquetSource, categories: Sequence[str]) -> DataFrame:
        """A row for each event, attribute and category."""
        df = self.events(source)
        there = [name for name in categories if name in source.columns.names]
        uncounted = self._hidden(source, None)
        numbers = [F.struct(F.lit(None).cast("string").alias(ATTRIBUTE), F.lit(None).cast("double").alias("number"),
                            uncounted.alias("hidden"))]  # fmt: skip
        for name in numbers_of(source.columns, (self.archive.time, *self.space.categories, *self.space.keys)):
            number = column(name).cast("double")
            number = (
                F.when(~F.isnan(number), number) if pa.types.is_floating(source.columns.field(name).type) else number
            )
            hidden = self._hidden(source, name)
            numbers.append(F.struct(F.lit(name).alias(ATTRIBUTE), number.alias("number"), hidden.alias("hidden")))
        kinds = [_category(None, None), *(_category(name, column(name).cast("string")) for name in there)]
        df = df.select(
            column(WINDOW_OF).alias(WINDOW), F.lit(source.type).alias(TYPE), column(" tick").alias("tick"),
            uncounted.alias("uncounted"), F.array(*numbers).alias("numbers"), F.explode(F.array(*kinds)).alias("kind"),
        )  # fmt: skip
        df = df.where(column("kind")[CATEGORY].isNull() | column("kind")[VALUE].isNotNull())
        df = df.select(WINDOW, TYPE, "tick", "uncounted", "kind", F.explode("numbers").alias("n"))
        return df.select(WINDOW, TYPE, "tick", "uncounted", "kind.*", "n.*")

    def _hidden(self, source: ParquetSource, name: str | None) -> Column:
        """Whether a column (None: the event itself) is left out of an event."""
        found = F.lit(False)
        for one in self.space.left_out:
            if one.type == source.type and one.attribute == name:
                found = found | _left_out(one, source.columns)
        return found


WINDOW_OF = " window"
"""A name that no column of events has: names of columns do not begin with a space."""


def _category(name: str | None, value: Column | None) -> Column:
    text = F.lit(None).cast("string") if value is None else value
    return F.struct(F.lit(name).cast("string").alias(CATEGORY), text.alias(VALUE))


def _left_out(one: LeftOut, columns: pa.Schema) -> Column:
    """Which events are of the partitions whose values are left out, at that time."""
    found = F.lit(not one.partitions)
    for partition in one.partitions:
        test = F.lit(True)
        for name, value in partition:
            if name in columns.names:
                test = test & column(name).eqNullSafe(F.lit(value))
        found = found | test
    if one.during is None:
        return found
    return found & (column(" tick") >= one.during[0]) & (column(" tick") < one.during[1])


def numbers_of(columns: pa.Schema, never: Sequence[str]) -> list[str]:
    """The numeric attributes."""
    return [one.name for one in columns if one.name not in never and is_number(one.type)]


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows; halved again and again, because a chain of hundreds is too deep for Spark's optimizer."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union_of(frames[:middle]).unionByName(union_of(frames[middle:]))


def _categories(reading: _ArchiveReading, sources: Sequence[ParquetSource]) -> dict[str, tuple[str, ...]]:
    """Columns that may be categories, by type: texts with few values, as far as an estimate tells."""
    frames, named = [], set(reading.space.categories)
    never = {reading.archive.time, *reading.space.keys}
    for source in sources:
        some = [
            one.name for one in source.columns if one.name not in never and (one.name in named or is_text(one.type))
        ]
        if some:
            values = F.array(*(_category(name, column(name).cast("string")) for name in some))
            kinds = reading.events(source).select(F.lit(source.type).alias(TYPE), F.explode(values).alias("kind"))
            frames.append(kinds.select(TYPE, "kind.*"))
    if not frames:
        return {}
    few = union_of(frames).groupBy(TYPE, CATEGORY).agg(F.approx_count_distinct(VALUE).alias("values"))
    found: dict[str, tuple[str, ...]] = {}
    for row in few.where((column("values") > 0) & (column("values") <= MAYBE)).collect():
        found[row[TYPE]] = (*found.get(row[TYPE], ()), row[CATEGORY])
    return found


def _added_up(rows: DataFrame) -> DataFrame:
    """What every window knows of every group."""
    number = F.when(~column("hidden"), column("number"))
    order = F.when(number.isNotNull(), F.struct("tick", number))
    counted = column("number").isNotNull() & ~column("hidden") & ~column("uncounted")
    return rows.groupBy(*GROUP).agg(
        F.count(F.lit(1)).alias("events"),
        F.count_if(~column("uncounted")).alias("told"),
        F.count("number").alias("present"),
        F.count_if(counted).alias("counted"),
        F.avg(number).alias("mean"),
        F.min(number).alias("min"),
        F.max(number).alias("max"),
        F.stddev_pop(number).alias("deviation"),
        (F.max_by(number, order) - F.min_by(number, order)).alias("change"),
    )


# ------------------------------------------------------------------------------------------ into one table


def _columns_by_type(sources: Sequence[ParquetSource], archive: Archive) -> dict[str, tuple[str, ...]]:
    """The columns of each type in the order in which one process would read them."""
    known = archive.types()
    return {source.type: tuple(known[source.type].columns) for source in sources}


@dataclass(frozen=True, eq=False)
class _TableMaking:
    """Puts what came to the driver into a table: the features of a type, its attributes and categories in order."""

    reading: _ArchiveReading
    columns: Mapping[str, tuple[str, ...]]

    def table(self, rows: pa.Table) -> FeatureTable:
        features: list[Feature] = []
        values: list[Floats] = []
        for type_ in self.columns:
            for feature, row in self._of_type(type_, rows.filter(pc.equal(rows[TYPE], type_))):
                features.append(feature)
                values.append(row)
        starts = self.reading.starts
        found = np.array(values) if values else np.zeros((0, len(starts)))
        return FeatureTable(tuple(features), self.reading.window, starts, found)

    def _of_type(self, type_: str, rows: pa.Table) -> Iterator[tuple[Feature, Floats]]:
        space = self.reading.space
        if not len(rows):
            return
        measured = Feature(type_, None, "count", None, self.reading.window, space.length)
        groups = _groups(rows)
        whole = groups[None, None, None]
        kinds = self._kinds(type_, groups)
        if "count" in space.functions and whole.sum("told"):
            yield from self._counts(measured, kinds, groups, "told")
        for name in self.columns[type_]:
            found = groups.get((name, None, None))
            if found is None or not found.sum("present"):
                continue
            attribute = replace(measured, attribute=name)
            lacking = found.sum("present") < whole.sum("events")
            for kind in kinds:
                if "count" in space.functions and lacking and found.sum("counted"):
                    yield from self._counts(attribute, [kind], groups, "counted")
                yield from self._measures(attribute, kind, groups)

    def _kinds(self, type_: str, groups: Mapping[Any, _MeasuredGroup]) -> list[CategoryValues]:
        """All events, then each category with its values; one value that all events have says nothing new."""
        found: list[CategoryValues] = [(None, (None,))]
        events = groups[None, None, None].sum("events")
        for name in self.columns[type_]:
            values = [value for attribute, category, value in groups if attribute is None and category == name]
            with_value = sum(groups[None, name, value].sum("events") for value in values)
            if 0 < len(values) <= MOST_VALUES and (len(values) > 1 or with_value < events):
                found.append((name, tuple(sorted(values, key=str))))
        return found

    def _counts(
        self, feature: Feature, kinds: Sequence[CategoryValues], groups: Mapping[Any, _MeasuredGroup], what: str
    ) -> Iterator[tuple[Feature, Floats]]:
        for category, values in kinds:
            for value in values:
                group = groups.get((feature.attribute, category, value))
                row = np.zeros(len(self.reading.starts))
                if group is not None:
                    row[self._places(group)] = group.numbers(what)
                yield _named(feature, category, value, "count"), row

    def _measures(
        self, feature: Feature, kind: CategoryValues, groups: Mapping[Any, _MeasuredGroup]
    ) -> Iterator[tuple[Feature, Floats]]:
        category, values = kind
        for function in (name for name in self.reading.space.functions if name != "count"):
            for value in values:
                group = groups.get((feature.attribute, category, value))
                if group is None:
                    continue
                row = np.full(len(self.reading.starts), np.nan)
                row[self._places(group)] = group.measure(function)
                if not np.isnan(row).all():
                    yield _named(feature, category, value, function), row

    def _places(self, group: _MeasuredGroup) -> Any:
        return np.searchsorted(self.reading.starts, group.numbers(WINDOW).astype(np.int64))


def _named(feature: Feature, category: str | None, value: str | None, function: str) -> Feature:
    found = None if category is None or value is None else (category, value)
    return replace(feature, category=found, function=function)


@dataclass(frozen=True, eq=False)
class _MeasuredGroup:
    """The windows of one attribute and one value of a category."""

    rows: pa.Table

    def sum(self, name: str) -> int:
        return int(pc.sum(self.rows[name]).as_py())

    def numbers(self, name: str) -> Any:
        return self.rows[name].to_numpy()

    def measure(self, function: str) -> Floats:
        """The numbers as one process makes them: a mean lies between the least and the greatest value."""
        least, most = (np.asarray(self.numbers(name), np.float64) for name in ("min", "max"))
        found = np.asarray(self.numbers(function), np.float64)
        if function == "mean":
            return rounded(np.clip(found, least, most))
        if function == "deviation":
            return rounded(np.where(least == most, 0.0, found))
        return found


def _groups(rows: pa.Table) -> dict[tuple[str | None, str | None, str | None], _MeasuredGroup]:
    """The rows of a type by attribute, category and value: sorted once, then cut."""
    order = rows.sort_by(
        [(ATTRIBUTE, "ascending"), (CATEGORY, "ascending"), (VALUE, "ascending"), (WINDOW, "ascending")]
    )
    keys = [
        order[name].combine_chunks().dictionary_encode(null_encoding="encode") for name in (ATTRIBUTE, CATEGORY, VALUE)
    ]
    codes = np.stack([np.asarray(key.indices) for key in keys])
    cuts = np.flatnonzero(np.any(codes[:, 1:] != codes[:, :-1], axis=0)) + 1
    begins = np.r_[0, cuts]
    ends = np.r_[cuts, len(order)]
    names = [key.dictionary.to_pylist() for key in keys]
    return {
        (names[0][codes[0, at]], names[1][codes[1, at]], names[2][codes[2, at]]): _MeasuredGroup(
            order.slice(at, end - at)
        )
        for at, end in zip(begins, ends, strict=True)
    }
