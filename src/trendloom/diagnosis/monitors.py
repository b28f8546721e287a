"""Monitors: a reason that is kept in the archive and evaluated from then on; here over an archive, in one process.

A monitor is the formula of a diagnosis, with its precision and recall on the labelled windows of the archive and its
origin. It covers the events of all partitions: the series that the diagnosis left out is not left out here, so
precision and recall are those of the formula as it will run.
A window without any event is skipped, as on a live stream.
Cost: the events of the types of the formula, and of the columns that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.archive import Archive, save_monitor
from trendloom.diagnosis.archived_features import Span, events_within, spans_of_windows
from trendloom.diagnosis.feature_space import FeatureSpace, WindowedSpace, features_in_part, windows_within
from trendloom.diagnosis.features import Feature, FeatureTable, Floats, Ticks, Truths
from trendloom.diagnosis.formula import COMPARE, Formula, Predicate
from trendloom.diagnosis.periods import Period
from trendloom.errors import DataError, OptionError, did_you_mean
from trendloom.frontend.tql.keywords import write_name
from trendloom.io.timestamps import ticks
from trendloom.logical.display import show_duration
from trendloom.model.time import TimeAxis

AGGREGATES = {"mean": "AVG", "min": "MIN", "max": "MAX"}
EVENT = "e"


def query_of(formula: Formula, name: str, axis: TimeAxis) -> str | None:
    """The query whose rows are the windows in which the formula holds; None where the language has no such query.

        QUERY low_memory: RETURN AVG(e.free) PATTERN Memory e WITHIN 30 s HAVING AVG(e.free) <= 1.9

    It has one for counts, means, least and greatest values of one kind of events: not for deviations and changes,
    several types or window sizes at once, nor for windows without events, because without a match there is no row.
    """
    features = formula.features
    if len({(one.type, one.category, one.window) for one in features}) != 1 or _holds_of_nothing(formula):
        return None
    returned = [_aggregate(one) for one in features]
    if any(one is None for one in returned):
        return None
    first = features[0]
    conditions = [" OR ".join(_comparison(one) for one in clause) for clause in formula.clauses]
    conditions = [
        f"({one})" if len(clause) > 1 else one for one, clause in zip(conditions, formula.clauses, strict=True)
    ]
    lines = [
        f"QUERY {write_name(name)}:",
        "  RETURN " + ", ".join(str(one) for one in returned),
        f"  PATTERN {write_name(first.type)} {EVENT}",
        *([] if first.category is None else [f"  WHERE {_category(first.category)}"]),
        f"  WITHIN {show_duration(first.window, axis)}",
        "  HAVING " + " AND ".join(conditions),
    ]
    return "\n".join(lines) + "\n"


def _holds_of_nothing(formula: Formula) -> bool:
    """Whether the formula is true of a window without such events: all counts are 0, and nothing else has a value."""

    def holds(predicate: Predicate) -> bool:
        return predicate.feature.function == "count" and bool(COMPARE[predicate.operator](0.0, predicate.bound))

    return all(any(holds(one) for one in clause) for clause in formula.clauses)


def _aggregate(feature: Feature) -> str | None:
    if feature.attribute is None:
        return "COUNT(*)" if feature.function == "count" else None
    if feature.function not in AGGREGATES:
        return None
    return f"{AGGREGATES[feature.function]}({EVENT}.{write_name(feature.attribute, reserved_allowed=True)})"


def _comparison(predicate: Predicate) -> str:
    return f"{_aggregate(predicate.feature)} {predicate.operator} {_number(predicate.bound)}"


def _number(bound: float) -> str:
    if not math.isfinite(bound):
        raise ValueError(f"{bound} is not a bound")
    return format(Decimal(repr(bound)), "f")


def _category(category: tuple[str, str]) -> str:
    name, value = category
    quoted = "'" + value.replace("'", "''") + "'"
    return f"{EVENT}.{write_name(name, reserved_allowed=True)} = {quoted}"


@dataclass(frozen=True)
class Grade:
    """The result of a formula on windows whose label is known."""

    abnormal: int
    alerts: int
    right: int

    @property
    def precision(self) -> float | None:
        """The share of alerts that were right; None without alerts."""
        return self.right / self.alerts if self.alerts else None

    @property
    def recall(self) -> float | None:
        """The share of abnormal windows that were found; None without such windows."""
        return self.right / self.abnormal if self.abnormal else None

    def __str__(self) -> str:
        shown = [("precision", self.precision), ("recall", self.recall)]
        rates = ", ".join(f"{name} {value:.2f}" for name, value in shown if value is not None)
        return f"{rates or 'no alert'} over {self.abnormal:,} abnormal windows"


@dataclass(frozen=True)
class Monitor:
    """A formula under a name. `made_of`: its origin, as the archive keeps it."""

    name: str
    formula: Formula
    sentence: str
    grade: Grade
    made_of: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "formula": self.formula.to_json(),
            "text": str(self.formula),
            "features": [feature.name for feature in self.formula.features],
            "windows": sorted({feature.window for feature in self.formula.features}),
            "sentence": self.sentence,
            "precision": self.grade.precision,
            "recall": self.grade.recall,
            "labelled": {"abnormal": self.grade.abnormal, "alerts": self.grade.alerts, "right": self.grade.right},
            "made_of": dict(self.made_of),
        }

    @staticmethod
    def from_json(name: str, found: Mapping[str, Any]) -> Monitor:
        labelled = found["labelled"]
        grade = Grade(labelled["abnormal"], labelled["alerts"], labelled["right"])
        return Monitor(name, Formula.from_json(found["formula"]), found["sentence"], grade, found["made_of"])

    def query(self, axis: TimeAxis) -> str | None:
        """The same as a query, where the language has one."""
        return query_of(self.formula, self.name, axis)


def find_monitor(archive: Archive, name: str) -> Monitor:
    """The monitor of that name."""
    known = archive.monitors()
    if name not in known:
        hint = did_you_mean(name, known) or "it has none yet: a diagnosis can be saved as one"
        raise OptionError(f"the archive {archive.root} has no monitor '{name}'", hint=hint)
    try:
        return Monitor.from_json(name, known[name])
    except (KeyError, TypeError, ValueError) as problem:
        raise DataError(
            f"monitor '{name}' of {archive.root} cannot be read: {problem!r}", hint="diagnose again and save it anew"
        ) from None


def keep_monitor(archive: Archive, monitor: Monitor) -> None:
    """Keep a monitor in the archive, in place of the one of that name."""
    save_monitor(archive.root, monitor.name, monitor.to_json())


def check_monitor_name(name: str | None) -> None:
    """Refuse a blank name."""
    if name is not None and not name.strip():
        raise OptionError("a monitor needs a name", hint="for example memory_low")


# ------------------------------------------------------------------------------------------------- running


def run_monitor(
    archive: Archive,
    monitor: Monitor,
    low: int | None = None,
    high: int | None = None,
) -> pa.Table:
    """The windows of [low, high) in which the formula holds: `monitor`, `window_start`, `window_end`, the features."""
    first, last = archive.span
    span = (first if low is None else max(low, first), last + 1 if high is None else min(high, last + 1))
    tables = formula_features(archive, monitor.formula, [span], whole=False)
    finest = min(tables, key=lambda table: table.window)
    held = np.flatnonzero(monitor.formula.evaluate(*tables))
    starts = finest.starts[held]
    starts = starts[happened(archive, starts, finest.window)]
    columns: dict[str, Any] = {
        "monitor": pa.repeat(pa.scalar(monitor.name), len(starts)),
        "window_start": _times(starts, archive),
        "window_end": _times(starts + finest.window, archive),
    }
    by_window = {table.window: table for table in tables}
    for feature in monitor.formula.features:
        values = by_window[feature.window].take([feature]).at(starts)[0]
        columns[feature.name] = pa.array(values, pa.float64(), from_pandas=True)
    return pa.table(columns)


def graded(archive: Archive, formula: Formula, periods: Sequence[Period]) -> Grade:
    """The result of the formula, run as a monitor, on the windows of labelled periods."""
    tables = formula_features(archive, formula, [(one.low, one.high) for one in periods])
    finest = min(tables, key=lambda table: table.window)
    alerts = formula.evaluate(*tables)
    alerts[alerts] = happened(archive, finest.starts[alerts], finest.window)
    abnormal, labelled = labels_of(finest, periods)
    alerts, abnormal = alerts[labelled], abnormal[labelled]
    return Grade(int(abnormal.sum()), int(alerts.sum()), int((alerts & abnormal).sum()))


def labels_of(table: FeatureTable, periods: Sequence[Period]) -> tuple[Truths, Truths]:
    """Which windows are abnormal, and which are labelled at all; marks of a person take precedence."""
    abnormal, known = np.zeros(len(table.starts), bool), np.zeros(len(table.starts), bool)
    for period in sorted(periods, key=lambda one: (one.annotated, one.abnormal)):
        inside = table.within(period.low, period.high)
        abnormal[inside] = period.abnormal
        known |= inside
    return abnormal, known


def _times(starts: Ticks, archive: Archive) -> pa.Array:
    return pa.array(starts, pa.int64()).cast(archive.settings.time_type)


# ------------------------------------------------------------------------------------- features of a formula


def formula_features(
    archive: Archive,
    formula: Formula,
    spans: Sequence[Span],
    *,
    whole: bool = True,
) -> tuple[FeatureTable, ...]:
    """The features of a formula over some stretches of time, a table for each window size.

    `whole`: windows that lie whole inside; else all that share time with a stretch. Longer windows are those that hold
    the shortest ones.
    """
    sizes = sorted({feature.window for feature in formula.features})
    finest = sizes[0]
    spans = spans if whole else [(low // finest * finest, -(-high // finest) * finest) for low, high in spans]
    starts = windows_within(spans, finest)
    windows = [WindowedSpace(size, np.unique(starts // size * size), FeatureSpace()) for size in sizes]
    read = spans_of_windows(windows, archive.chunk)
    groups: dict[tuple[str, tuple[str, str] | None], list[Feature]] = {}
    for feature in formula.features:
        groups.setdefault((feature.type, feature.category), []).append(feature)
    values: dict[Feature, Floats] = {}
    for (type_, category), features in groups.items():
        events = _events_of(archive, type_, category, features, read)
        for one in windows:
            values |= _values(events, archive.time, one, [each for each in features if each.window == one.window])
    return tuple(_table(one, formula, values) for one in windows)


def _table(windows: WindowedSpace, formula: Formula, values: Mapping[Feature, Floats]) -> FeatureTable:
    features = tuple(one for one in formula.features if one.window == windows.window)
    return FeatureTable(features, windows.window, windows.starts, np.array([values[one] for one in features]))


def _events_of(
    archive: Archive, type_: str, category: tuple[str, str] | None, features: Sequence[Feature], spans: Sequence[Span]
) -> pa.Table:
    """The events of some features with the columns that they need, as far as the archive has them."""
    types = archive.types()
    columns = types[type_].columns if type_ in types else {}
    wanted = {one.attribute for one in features}
    attributes = [name for name in columns if name in wanted]
    if type_ not in types or (category is not None and category[0] not in columns):
        return pa.schema([(archive.time, archive.settings.time_type)]).empty_table()
    read = dict.fromkeys([*attributes, *([] if category is None else [category[0]])])
    table = events_within(archive, type_, spans, list(read))
    if category is not None:
        table = table.filter(pc.equal(table.column(category[0]).cast(pa.string()), category[1]))
    return table.select([archive.time, *attributes])


def _values(events: pa.Table, time: str, windows: WindowedSpace, features: Sequence[Feature]) -> dict[Feature, Floats]:
    """The values of features over windows of their size, of the events of their type and category."""
    space = FeatureSpace(tuple(dict.fromkeys(one.function for one in features)))
    made = features_in_part({"": events}, time, replace(windows, space=space), whole=False).table
    rows = {
        (one.attribute, one.function): row
        for one, row in zip(made.features, made.values, strict=True)
        if one.category is None
    }
    none = {one: np.full(len(windows.starts), 0.0 if one.function == "count" else np.nan) for one in features}
    return {one: rows.get((one.attribute, one.function), none[one]) for one in features}


# ------------------------------------------------------------------------------------ windows with events


def happened(archive: Archive, starts: Ticks, window: int) -> Truths:
    """In which windows there was any event, of any type. Types are read until all windows have one."""
    found = np.zeros(len(starts), bool)
    for type_ in archive.types():
        if found.all():
            break
        spans = spans_of_windows([WindowedSpace(window, starts[~found], FeatureSpace())], 0)
        times = ticks(events_within(archive, type_, spans, []).column(archive.time), archive.axis)
        places = np.searchsorted(starts, times, side="right") - 1
        inside = (places >= 0) & (times < starts[np.maximum(places, 0)] + window)
        found[places[inside]] = True
    return found
