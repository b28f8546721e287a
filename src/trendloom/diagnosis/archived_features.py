"""The features of an archive's events, one type after the other, each read once for all windows.

Only files that hold a window of the diagnosis are opened, and only columns are read that can be a feature or name the
partition of an event. Events of one type are in memory at a time, and become numbers by window before the next type is
read. `type_features` and `joined_in_time` are also what tasks on Spark compute and how their parts are put together:
every window lies in one part, so the numbers are those of one process, bit by bit.
Cost: the events of the windows, read once, and added up for each window size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from trendloom.archive import Archive
from trendloom.diagnosis.feature_space import WindowedSpace, features_in_part, is_number, is_text
from trendloom.diagnosis.features import Feature, FeaturePart, FeatureTable, Floats, Ticks, TypeFacts
from trendloom.diagnosis.request import Progress

Span = tuple[int, int]


def features_of_archive(
    archive: Archive, windows: Sequence[WindowedSpace], progress: Progress
) -> tuple[FeatureTable, ...]:
    """A table for each window size."""
    names = list(archive.types())
    parts: list[list[FeaturePart]] = [[] for _ in windows]
    for number, name in enumerate(names):
        progress(f"features of {name} ({number + 1} of {len(names)} types)", number / len(names))
        for found, part in zip(parts, type_features(archive, name, windows, whole=True), strict=True):
            found.append(part)
    return tuple(joined_in_time(found, one.starts, one.window) for one, found in zip(windows, parts, strict=True))


def type_features(
    archive: Archive, name: str, windows: Sequence[WindowedSpace], *, whole: bool
) -> tuple[FeaturePart, ...]:
    """The features of one type for each window size; `whole`: these are all windows of the diagnosis."""
    keys = {key for one in windows for out in one.space.left_out for part in out.partitions for key, _ in part}
    events = events_within(archive, name, spans_of_windows(windows, archive.chunk), _columns(archive, name, keys))
    return tuple(features_in_part({name: events}, archive.time, one, whole=whole) for one in windows)


def joined_in_time(parts: Sequence[FeaturePart], starts: Ticks, window: int) -> FeatureTable:
    """The features over all windows, of parts that differ in their windows, their types or both."""
    facts: dict[str, TypeFacts] = {}
    for part in parts:
        for type_, known in part.facts.items():
            facts[type_] = facts[type_] + known if type_ in facts else TypeFacts(0, 0, {}, {}) + known
    rows: dict[Feature, Floats] = {}
    for part in parts:
        places = np.searchsorted(starts, part.table.starts)
        for feature, values in zip(part.table.features, part.table.values, strict=True):
            if feature not in rows and facts[feature.type].has(feature):
                rows[feature] = np.full(len(starts), 0.0 if feature.function == "count" else np.nan)
            if feature in rows:
                rows[feature][places] = values
    found = np.array(list(rows.values())) if rows else np.zeros((0, len(starts)))
    return FeatureTable(tuple(rows), window, starts, found)


def spans_of_windows(windows: Sequence[WindowedSpace], near: int) -> list[Span]:
    """The stretches of time that windows cover; those that are `near` each other are read as one."""
    starts = np.concatenate([one.starts for one in windows])
    ends = np.concatenate([one.starts + one.window for one in windows])
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    cuts = np.flatnonzero(starts[1:] - ends[:-1] > near) + 1
    begins = starts[np.r_[0, cuts]]
    return [(int(low), int(high)) for low, high in zip(begins, ends[np.r_[cuts - 1, len(ends) - 1]], strict=True)]


def events_within(archive: Archive, name: str, spans: Sequence[Span], columns: Sequence[str]) -> pa.Table:
    """The events of a type in some stretches of time."""
    return pa.concat_tables([archive.events(name, low, high, columns) for low, high in spans])


def _columns(archive: Archive, name: str, keys: set[str]) -> list[str]:
    """The columns that can be a number, a category or a partition attribute."""
    known = archive.types()[name].columns
    return [column for column, kind in known.items() if column in keys or is_number(kind) or is_text(kind)]
