"""The chart of a query's results: which partitions and values there are to choose from, and the series itself.

A partition comes from the browser as the text of its attributes and is looked up among those of the archive, so what
is not there is never asked for. Cost: the rows of one partition, thinned to what a screen can show.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.archive import Archive, ArchivedQuery
from trendloom.errors import DataError
from trendloom.viz.timeline import Curve, curve_of, times_of

AT, ROWS = "at", "rows"
MOST_PARTITIONS = 2_000
"""Partitions in a dropdown: more would make the page slow, and nobody scrolls so far."""
WINDOWS = ("30 s", "1 min", "5 min", "15 min", "1 h", "6 h", "1 d")
"""Windows of features that are proposed, the finest first."""
MICROSECONDS = (30_000_000, 60_000_000, 300_000_000, 900_000_000, 3_600_000_000, 21_600_000_000, 86_400_000_000)


@dataclass(frozen=True)
class PartitionChoice:
    """A partition to choose: `text` names it for the browser, `label` for people."""

    text: str
    label: str
    key: tuple[tuple[str, Any], ...]


def partition_choices(archive: Archive, query: ArchivedQuery) -> list[PartitionChoice]:
    """The partitions of a query, in the order of their attributes."""
    rows = archive.partitions(query.name).to_pylist()
    return [_choice(row, query) for row in rows[:MOST_PARTITIONS]]


def _choice(row: dict[str, Any], query: ArchivedQuery) -> PartitionChoice:
    key = tuple((name, row[name]) for name in query.keys)
    named = ", ".join(f"{name} = {value}" for name, value in key) or "the whole stream"
    return PartitionChoice(json.dumps([str(value) for _, value in key]), f"{named}  ({row['points']:,} points)", key)


def find_partition(choices: Sequence[PartitionChoice], text: object) -> PartitionChoice:
    """The partition of this text."""
    for one in choices:
        if one.text == text:
            return one
    raise DataError("this partition is not in the archive any more", hint="choose another")


def query_named(archive: Archive, name: object) -> ArchivedQuery:
    """A query of the archive."""
    known = archive.queries()
    if not isinstance(name, str) or name not in known:
        listed = ", ".join(known) or "none"
        raise DataError(f"the archive has no query '{name}'", hint=f"there is {listed}")
    return known[name]


def value_names(query: ArchivedQuery) -> tuple[str, ...]:
    """What can be drawn over time: numbers of the rows, or else how many rows there are."""
    return tuple(query.values) or (ROWS,)


def series_of(archive: Archive, query: ArchivedQuery, partition: PartitionChoice, value: object) -> Curve:
    """One value of one partition over time."""
    rows = archive.results(query.name, dict(partition.key))
    name = value if isinstance(value, str) and value in value_names(query) else value_names(query)[0]
    times = times_of(rows, AT)
    if name == ROWS and ROWS not in query.values:
        moments, counts = np.unique(times, return_counts=True)
        return curve_of("rows at a time", moments, pa.chunked_array([pa.array(counts)]))
    return curve_of(name, times, rows.column(name))


def proposed_window(curve: Curve, *, dated: bool) -> str:
    """A window for features that holds a few values of the series; the finest that does."""
    if not dated or len(curve.times) < 2:
        return WINDOWS[0]
    gap = float(np.median(np.diff(curve.times.astype("datetime64[us]").astype(np.int64))))
    fits = [text for text, length in zip(WINDOWS, MICROSECONDS, strict=True) if length >= gap]
    return fits[0] if fits else WINDOWS[-1]
