"""The feature space: every function of every attribute of every type, over windows, from columns of events.

Of each type come the count of its events and the functions of its numeric attributes; the same again for the events of
each value of a text column that has few values (a category). A window without events counts 0 and has no mean: data
that stops is a feature, too. A column that lacks values somewhere is counted by itself.

The annotated series must not explain itself: what it measures is left out, of the events of the annotated partitions
(`Excluded`).

Cost: one sort per type and category column (by code, 16 bits), and for each attribute a few passes over its column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.diagnosis.features import (
    FUNCTIONS,
    MOST_VALUES,
    AttributeFacts,
    CategoryFacts,
    Feature,
    FeaturePart,
    FeatureTable,
    Floats,
    Places,
    Ticks,
    Truths,
    TypeFacts,
    UserFunction,
    WindowedRows,
    check_functions,
    measure,
    windowed_rows,
)
from trendloom.errors import DataError, OptionError, option

Partition = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Excluded:
    """An attribute of a type (None: how many events there are) that must not be a reason.

    `partitions`: only the values of events of these partitions are left out; none given: those of all events.
    `during`: only those of events in this stretch of time, [low, high).
    """

    type: str
    attribute: str | None
    partitions: tuple[Partition, ...] = ()
    during: tuple[int, int] | None = None


@dataclass(frozen=True)
class FeatureSpace:
    """Which features to compute. `keys`: columns that name partitions; these are neither categories nor numbers,
    because what holds for one run alone says nothing about the next. `length`: the window as people write it."""

    functions: Sequence[str] = FUNCTIONS
    extra: Mapping[str, UserFunction] = field(default_factory=dict)
    left_out: Sequence[Excluded] = ()
    keys: Sequence[str] = ()
    length: str = ""


@dataclass(frozen=True, eq=False)
class WindowedSpace:
    """The features to compute over windows of one size, whose starts ascend; events outside of them are ignored."""

    window: int
    starts: Ticks
    space: FeatureSpace


def windows_within(spans: Sequence[tuple[int, int]], window: int, length: str = "") -> Ticks:
    """The starts of the windows that lie whole inside one of some stretches of time, ascending."""
    if window <= 0:
        raise OptionError(f"a window of {window} has no length", hint=f"give it one: {option('windows', '30 s')}")
    found = [np.arange(-(-low // window), high // window, dtype=np.int64) for low, high in spans]
    starts = np.unique(np.concatenate(found)) * window if found else np.zeros(0, np.int64)
    if not len(starts):
        raise OptionError(
            f"no whole window of {length or window} lies in the stretch of time",
            hint=f"take a shorter window: {option('windows')}",
        )
    return np.asarray(starts, np.int64)


def features_in_part(
    tables: Mapping[str, pa.Table], time: str, windows: WindowedSpace, *, whole: bool = True
) -> FeaturePart:
    """All features of events by type, with the facts that decide which there are.

    Unless these are the `whole` of the windows, every possible feature is computed.
    """
    check_functions(windows.space.functions, windows.space.extra)
    blocks: list[Floats] = []
    features: list[Feature] = []
    facts: dict[str, TypeFacts] = {}
    for type_, table in tables.items():
        making = _FeatureMaking(type_, _typed_rows(type_, table, time, windows), time, windows)
        facts[type_] = making.facts(whole=whole)
        for feature, block in making.features(facts[type_]):
            features.append(feature)
            blocks.append(block)
    values = np.array(blocks) if blocks else np.zeros((0, len(windows.starts)))
    return FeaturePart(FeatureTable(tuple(features), windows.window, windows.starts, values), facts)


# ------------------------------------------------------------------------------------------ events of one type


@dataclass(frozen=True, eq=False)
class TypedRows:
    """The events of a type that lie in windows, by time: `rows` of their table, None for all as they stand."""

    table: pa.Table
    rows: Places | None
    times: Ticks
    places: Places

    def column(self, name: str) -> pa.Array:
        """A column of these rows. Dictionaries are undone: they may hold values that none of the rows has."""
        column = self.table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return (column if self.rows is None else column.take(pa.array(self.rows))).combine_chunks()

    def between(self, begin: int, end: int) -> TypedRows:
        """Some of these rows."""
        rows = np.arange(begin, end) if self.rows is None else self.rows[begin:end]
        return TypedRows(self.table, rows, self.times[begin:end], self.places[begin:end])

    def numbers(self, name: str) -> Floats:
        """A numeric column as doubles, NaN where it has no value; of long ids the nearest ones."""
        column = self.table.column(name)
        found = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
        return found if self.rows is None else np.asarray(found[self.rows])


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows sorted by category value and window; the groups of value i are the windows' places from i · windows on.

    `order`: None for the rows as they stand (no category).
    """

    category: str | None
    names: tuple[str | None, ...]
    order: Places | None
    group: Places
    times: Ticks
    whole: WindowedRows

    def sorted(self, column: Any) -> Any:
        return column if self.order is None else column[self.order]


@dataclass(frozen=True, eq=False)
class _FeatureMaking:
    """Makes the features of one type."""

    type: str
    events: TypedRows
    time: str
    windows: WindowedSpace

    def facts(self, *, whole: bool) -> TypeFacts:
        """The facts that do not need the numbers; `features` adds those of each attribute before it is measured."""
        count, uncounted = len(self.events.times), self._hidden[None]
        counted = count if uncounted is None else int(np.count_nonzero(~uncounted))
        return TypeFacts(count, counted, {name: _values(column) for name, column in self._texts.items()}, {}, whole)

    def features(self, facts: TypeFacts) -> Iterator[tuple[Feature, Floats]]:
        """The numbers of each feature in each window."""
        windows, space = len(self.windows.starts), self.windows.space
        counting = "count" in space.functions
        groupings = [_grouped(self.events, windows, None)]
        groupings += [
            _grouped(self.events, windows, (name, column))
            for name, column in self._texts.items()
            if facts.is_category(name)
        ]
        measured = Feature(self.type, None, "count", None, self.windows.window, space.length)
        if counting and facts.is_counted(None):
            for grouping in groupings:
                everything = np.ones(len(self.events.times), bool)
                yield from _counts(measured, grouping, everything, self._hidden[None], windows)
        for name in self._attributes:
            numbers, hidden = self.events.numbers(name), self._hidden[name]
            lacking, uncounted = np.isnan(numbers), _either(hidden, self._hidden[None])
            facts.attributes[name] = _attribute_facts(lacking, uncounted)
            attribute = replace(measured, attribute=name)
            for grouping in groupings:
                if counting and facts.is_counted(name):
                    yield from _counts(attribute, grouping, ~lacking, uncounted, windows)
                shown = lacking if hidden is None else lacking | hidden
                yield from _measures(attribute, grouping, numbers, shown, windows, space)

    @cached_property
    def _attributes(self) -> list[str]:
        """The numeric columns."""
        never = (self.time, *self.windows.space.keys)
        return [one.name for one in self.events.table.schema if one.name not in never and is_number(one.type)]

    @cached_property
    def _texts(self) -> dict[str, pa.DictionaryArray]:
        """The columns that may be categories, encoded."""
        never = (self.time, *self.windows.space.keys)
        names = [one.name for one in self.events.table.schema if one.name not in never and is_text(one.type)]
        return {name: self.events.column(name).dictionary_encode() for name in names}

    @cached_property
    def _hidden(self) -> dict[str | None, Truths | None]:
        """Of which events each column (None: the event itself) is left out."""
        names = (None, *self.events.table.column_names)
        return {name: _hidden(self.events, self.type, name, self.windows.space.left_out) for name in names}


def _attribute_facts(lacking: Truths, uncounted: Truths | None) -> AttributeFacts:
    there = ~lacking
    counted = there if uncounted is None else there & ~uncounted
    return AttributeFacts(int(np.count_nonzero(there)), int(np.count_nonzero(counted)))


def _typed_rows(type_: str, table: pa.Table, time: str, windows: WindowedSpace) -> TypedRows:
    times = _ticks(type_, table, time)
    numbers, first = times // windows.window, windows.starts // windows.window
    places = np.minimum(np.searchsorted(first, numbers), max(len(first) - 1, 0))
    inside = first[places] == numbers
    rows: Places | None = None if inside.all() else np.flatnonzero(inside)
    if rows is not None:
        times, places = times[rows], places[rows]
    if np.any(times[1:] < times[:-1]):
        order = np.argsort(times, kind="stable")
        times, places, rows = times[order], places[order], order if rows is None else rows[order]
    return TypedRows(table, rows, times, places)


def _ticks(type_: str, table: pa.Table, time: str) -> Ticks:
    if time not in table.column_names:
        raise DataError(f"events of type {type_} have no column '{time}'", hint=f"name it: {option('time')}")
    column = table.column(time)
    if column.null_count:
        raise DataError(f"{column.null_count:,} events of type {type_} have no time", hint="leave them out")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)


# ----------------------------------------------------------------------------------------------- categories


def _values(column: pa.DictionaryArray) -> CategoryFacts:
    """The facts that decide whether a column is a category; one value too many is enough."""
    some = column.dictionary[: MOST_VALUES + 1].to_pylist()
    return CategoryFacts(frozenset(str(value) for value in some), bool(column.null_count))


def _grouped(events: TypedRows, windows: int, by: tuple[str, pa.DictionaryArray] | None) -> GroupedRows:
    if by is None:
        rows = windowed_rows(events.places, events.times)
        return GroupedRows(None, (None,), None, events.places, events.times, rows)
    name, encoded = by
    values = [str(value) for value in encoded.dictionary.to_pylist()]
    ranks = np.argsort(np.argsort(values)).astype(np.int16)
    found = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    codes = np.r_[ranks, np.int16(-1)][found]
    # rows are in order of time, and a stable sort leaves them so within each value
    order = np.argsort(codes, kind="stable")[np.count_nonzero(codes < 0) :]
    group = codes[order].astype(np.intp) * windows + events.places[order]
    times = events.times[order]
    return GroupedRows(name, tuple(sorted(values)), order, group, times, windowed_rows(group, times))


def is_text(kind: pa.DataType) -> bool:
    """Whether a column may be a category."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column has numbers to measure."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


# --------------------------------------------------------------------------------------- numbers of groups


def _counts(
    feature: Feature, grouping: GroupedRows, there: Truths, hidden: Truths | None, windows: int
) -> Iterator[tuple[Feature, Floats]]:
    """The number of events with a value in each group, 0 included."""
    counted = grouping.sorted(there if hidden is None else there & ~hidden)
    sums = np.bincount(grouping.group[counted], minlength=len(grouping.names) * windows)
    for value, row in zip(grouping.names, sums.reshape(len(grouping.names), windows), strict=True):
        yield _named(feature, grouping, value, "count"), row.astype(np.float64)


def _measures(
    feature: Feature, grouping: GroupedRows, numbers: Floats, lacking: Truths, windows: int, space: FeatureSpace
) -> Iterator[tuple[Feature, Floats]]:
    """The functions of each group; features that have no value at all are left out."""
    values, missing = grouping.sorted(numbers), grouping.sorted(lacking)
    rows = grouping.whole
    if missing.any():
        there = ~missing
        values, rows = values[there], windowed_rows(grouping.group[there], grouping.times[there])
    if not len(values):
        return
    for function, found in measure(values, rows, space.functions, space.extra, feature.source).items():
        spread = np.full(len(grouping.names) * windows, np.nan)
        spread[rows.groups] = found
        for value, row in zip(grouping.names, spread.reshape(len(grouping.names), windows), strict=True):
            if not np.isnan(row).all():
                yield _named(feature, grouping, value, function), row


def _named(feature: Feature, grouping: GroupedRows, value: str | None, function: str) -> Feature:
    category = None if grouping.category is None or value is None else (grouping.category, value)
    return replace(feature, category=category, function=function)


# ------------------------------------------------------------------------------------------ what is left out


def _hidden(events: TypedRows, type_: str, name: str | None, left_out: Sequence[Excluded]) -> Truths | None:
    """Of which events a column is left out; None: of none."""
    found: Truths | None = None
    for one in left_out:
        if one.type == type_ and one.attribute == name:
            found = _either(found, _left_out(events, one))
    return found


def _left_out(events: TypedRows, one: Excluded) -> Truths:
    """Which events lose a value; events are in order of time, so only those of a stretch are looked at."""
    if one.during is None:
        return _of_partitions(events, one.partitions)
    begin, end = (int(place) for place in np.searchsorted(events.times, one.during))
    found = np.zeros(len(events.times), bool)
    found[begin:end] = _of_partitions(events.between(begin, end), one.partitions)
    return found


def _of_partitions(events: TypedRows, partitions: Sequence[Partition]) -> Truths:
    """Which events are of one of some partitions: their values, numbered column by column, are those of one."""
    if not partitions:
        return np.ones(len(events.times), bool)
    key, wanted = np.zeros(len(events.times), np.int64), np.zeros(len(partitions), np.int64)
    for place, (name, _) in enumerate(partitions[0]):
        if name not in events.table.column_names:
            return np.zeros(len(events.times), bool)  # who lacks the attribute is in no partition
        column = events.column(name)
        values = pa.array([partition[place][1] for partition in partitions]).cast(column.type)
        known = values.unique()
        key = key * (len(known) + 1) + _numbered(column, known)
        wanted = wanted * (len(known) + 1) + _numbered(values, known)
    return np.isin(key, wanted)


def _numbered(column: pa.Array, known: pa.Array) -> Ticks:
    """The place of each value among the known ones; others have the place after them."""
    places = pc.index_in(column, known).fill_null(len(known))
    return np.asarray(places.to_numpy(zero_copy_only=False), np.int64)


def _either(one: Truths | None, other: Truths | None) -> Truths | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other
