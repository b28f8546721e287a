"""A table becomes a stream of events: the time and type columns are found, checked and understood.

After `prepare` every time is a whole number of ticks (see `model.time`), no time is missing, and the schema has the
binder all it needs. What is wrong with the data is said here, with the row where it is wrong, and not in the middle
of a run. Cost: a few vectorised passes over the time and type columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import DataError, OptionError, QueryNote, QueryWarning, did_you_mean, option
from trendloom.expr.arrays import Coder
from trendloom.expr.vectors import Vector, from_arrow, kind_of
from trendloom.io.intervals import check_columns, intervals_of
from trendloom.io.timestamps import Ticks, Unparsable, doubt_of_unit, parse_iso, sizes_of, with_zone
from trendloom.io.timestamps import ticks as ticks
from trendloom.model.imprecision import Imprecision, Intervals
from trendloom.model.schema import RESERVED, Column, Kind, Schema
from trendloom.model.time import MICROSECONDS, UNIT_WORDS, TimeAxis
from trendloom.options import Columns, Options

TYPE = "type"
"""The column of types where no other is named."""


@dataclass(frozen=True, eq=False)
class Events:
    """A checked stream. `ticks` are the times of the rows; None where time is imprecise. `types` are their types.

    `warnings`: what is probably not meant, as far as the events alone show. `intervals`: when events may have happened,
    where that is not known for sure.
    """

    table: pa.Table
    schema: Schema
    ticks: Ticks | None
    types: Vector
    warnings: tuple[QueryWarning, ...] = ()
    intervals: Intervals | None = None


def prepare(table: pa.Table, *, coder: Coder | None = None, **columns: Unpack[Columns]) -> Events:
    """Check a table as a stream of events, or say what is wrong with it.

    `columns`: the options of reading; without `time_unit` whole numbers count seconds, and where they hardly do there
    is a warning. `coder`: a faster encoder of types.
    """
    options = Options(**columns)
    time, type, time_unit, time_zone = options.time, options.type, options.time_unit, options.time_zone
    unit, imprecise = short_unit(time_unit), options.imprecise
    bounds = imprecise.bounds
    if table.num_columns == 0 and table.num_rows == 0:  # an empty file of JSON lines: no events, so no columns either
        table = pa.table({name: pa.nulls(0) for name in dict.fromkeys([*(bounds or (time,)), type])})
    _refuse_reserved(table.column_names)
    found: list[QueryWarning] = []
    if type not in table.column_names:
        _refuse_unnamed(table, type, options.query_types)
        table, note = with_one_type(table, type, options.query_types)
        found.append(note)
    table = _with_type(table, type)
    if bounds is None:
        table, axis = _with_time(table, time, "time", unit, time_zone)
    else:
        table, axis = _with_bounds(table, bounds, unit, time_zone)
    table = without_nan(table if time_zone is None else with_zone(table, time_zone))
    check_order(options.order, table.schema, imprecise=imprecise.imprecise)
    imprecision = imprecise.measured(axis)
    if imprecision is not None:
        check_columns(table.schema, imprecision)
    if time_unit is None and not axis.timestamp:
        found += doubts_of_times(table, time if bounds is None else bounds[0])
    types = from_arrow(table.column(type), Kind.STRING, options.threads or 1, coder)
    present = _present(types, table.column(type).type)
    schema = Schema(
        _columns(table, time_zone),
        time,
        type,
        axis,
        None,
        present,
        imprecision,
        tuple(options.order),
        time_zone,
    )
    if imprecision is None:
        return Events(table, schema, ticks(table.column(time), axis), types, tuple(found))
    found += _absent_types(imprecision, present)
    return Events(table, schema, None, types, tuple(found), intervals_of(table, schema))


def with_one_type(table: pa.Table, name: str, wanted: Sequence[str]) -> tuple[pa.Table, QueryNote]:
    """The table with a column `name` of the one type that the queries name, and a note that says so.

    Without a column of types, every event is of that type, and has one in results as everywhere. It is never guessed
    where it could be wrong: if some column holds the name of the type, that column is named instead.
    """
    only = the_only_type(name, wanted)
    for other in table.column_names:
        column = table.column(other)
        if kind_of(column.type) is Kind.STRING and pc.any(pc.equal(column.cast(pa.large_string()), only)).as_py():
            raise types_elsewhere(name, other, only)
    types = pa.chunked_array([pa.repeat(pa.scalar(only, pa.string()), len(table))])
    note = QueryNote(
        f"the events have no column '{name}': every one is taken for a '{only}', the only type of the query",
        hint=f"if a column holds types, name it with {option('type')}",
    )
    return table.append_column(name, types), note


def the_only_type(name: str, wanted: Sequence[str]) -> str:
    """The one type, or an error that shows how to make a column of several."""
    if len(wanted) == 1:
        return wanted[0]
    first, second, *_ = sorted(wanted)
    listed = ", ".join(f"'{one}'" for one in sorted(wanted)[:4]) + (" ..." if len(wanted) > 4 else "")
    raise DataError(
        f"there is no column '{name}' for the type of events, and the query names several types: {listed}",
        hint=f"name the column that holds them with {option('type')}, or add one that says of every event which it is, "
        f"for example in SQL: CASE WHEN amount < 0 THEN '{first}' ELSE '{second}' END AS {name}",
    )


def types_elsewhere(name: str, other: str, only: str) -> DataError:
    """The refusal to guess where another column seems to hold the types."""
    return DataError(
        f"there is no column '{name}' for the type of events, but column '{other}' holds '{only}'",
        hint=f"if that is the type, write {option('type', other)}",
    )


def doubts_of_times(table: pa.Table, time: str) -> tuple[QueryWarning, ...]:
    """Warnings about a column of whole numbers that hardly counts seconds."""
    doubt = doubt_of_unit(time, sizes_of(table.column(time).cast(pa.int64()).to_numpy()))
    return () if doubt is None else (doubt,)


def short_unit(name: str | None) -> str:
    """`s`, `second` and `seconds` are all `s`, and so is no name."""
    if name is None:
        return "s"
    word = name.strip().lower()
    short = UNIT_WORDS.get(word.removesuffix("s"), word)
    if short not in MICROSECONDS:
        hint = "the unit of an integer time column is one of " + ", ".join(MICROSECONDS)
        raise OptionError(f"unknown time unit '{name}'", hint=hint)
    return short


# ---------------------------------------------------------------------------------------------- the table


def _refuse_reserved(names: Sequence[str]) -> None:
    taken = [name for name in names if name in RESERVED]
    if taken:
        listed = ", ".join(f"'{name}'" for name in taken)
        raise DataError(
            f"the input has {'columns' if len(taken) > 1 else 'a column'} {listed}, which results use as their own",
            hint=f"rename in the input: {', '.join(RESERVED)} are reserved",
        )


def _column(table: pa.Table, name: str, what: str, role: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        close = did_you_mean(name, table.column_names) or "the input has no columns"
        raise DataError(
            f"there is no column '{name}' for the {what} of events", hint=f"{close} ({option(role)} names it)"
        )
    return table.column(name)


def _replaced(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    if column is table.column(name):
        return table
    return table.set_column(table.column_names.index(name), name, column)


def _refuse_unnamed(table: pa.Table, name: str, wanted: Sequence[str]) -> None:
    """A column of types that was named, or that is there in other letters, must be there."""
    if name != TYPE or not wanted or any(other.lower() == name for other in table.column_names):
        _column(table, name, "type", "type")


def _with_type(table: pa.Table, name: str) -> pa.Table:
    column = _column(table, name, "type", "type")
    kind = kind_of(column.type)
    if kind not in (Kind.STRING, Kind.NULL):
        raise DataError(
            f"column '{name}' holds the type of events, so it must be text, not {column.type}",
            hint=f"name another column with {option('type')}, or turn it into text",
        )
    return _replaced(table, name, column.cast(pa.string()) if kind is Kind.NULL else column)


def _present(types: Vector, read_from: pa.DataType) -> frozenset[str]:
    """The types that occur; a dictionary that was read may hold more."""
    if types.dictionary is None or not len(types):
        return frozenset()
    if types.valid is None and not pa.types.is_dictionary(read_from):
        return frozenset(types.dictionary.tolist())
    codes = types.values if types.valid is None else types.values[types.valid]
    return frozenset(types.dictionary[np.bincount(codes, minlength=len(types.dictionary)) > 0].tolist())


def _columns(table: pa.Table, zone: str | None) -> tuple[Column, ...]:
    return tuple(_described(name, table.column(name), zone) for name in table.column_names)


def _described(name: str, column: pa.ChunkedArray, zone: str | None) -> Column:
    """The column. A date stands for its midnight in UTC, whatever the zone, and so does text compared with it."""
    kind = _kind(column)
    if types.is_timestamp(column.type):
        return Column(name, kind, zone=zone or column.type.tz)
    if kind is not Kind.DECIMAL:
        return Column(name, kind)
    plain = column.type.value_type if types.is_dictionary(column.type) else column.type
    return Column(name, kind, plain.scale, plain.precision)


def _kind(column: pa.ChunkedArray) -> Kind:
    """A column without any value fits everywhere; one without any row is what its type says."""
    return Kind.NULL if 0 < len(column) == column.null_count else kind_of(column.type)


def without_nan(table: pa.Table) -> pa.Table:
    """NaN in the data is read as NULL."""
    for name in table.column_names:
        column = table.column(name)
        if types.is_float32(column.type) or types.is_float64(column.type):
            nan = pc.is_nan(column)
            if pc.any(nan).as_py():
                table = _replaced(table, name, pc.if_else(nan, pa.scalar(None, column.type), column))
    return table


# ---------------------------------------------------------------------------------------------- the order


def check_order(order: Sequence[str], columns: pa.Schema, *, imprecise: bool) -> None:
    """Refuse columns that cannot say which of two events of equal time comes first."""
    if order and imprecise:
        raise OptionError(
            "events of imprecise time cannot be ordered by a column: nobody knows which have equal times",
            hint=f"leave out {option('order')}, or name one precise time with {option('time')}",
        )
    for name in order:
        if name not in columns.names:
            close = did_you_mean(name, columns.names) or "the input has no columns"
            raise DataError(
                f"there is no column '{name}' to order events of equal time by",
                hint=f"{close} ({option('order')} names it)",
            )
        kind = columns.field(name).type
        if kind_of(kind) is Kind.OTHER:
            raise DataError(
                f"column '{name}' holds values that have no order: {kind}",
                hint=f"{option('order')} takes columns of numbers, texts, booleans or times",
            )


# ---------------------------------------------------------------------------------------------- the times


def _with_time(table: pa.Table, name: str, role: str, unit: str, zone: str | None) -> tuple[pa.Table, TimeAxis]:
    """The table with the time column in its final type, and what its ticks are."""
    column = _column(table, name, "time", role)
    _refuse_missing(column, name)
    if types.is_null(column.type):
        return _replaced(table, name, column.cast(pa.int64())), TimeAxis.integer(unit)
    if types.is_integer(column.type):
        _refuse_wide(column, name)
        return table, TimeAxis.integer(unit)
    return _replaced(table, name, _timestamps(column, name, role, zone)), TimeAxis.timestamps()


def _timestamps(column: pa.ChunkedArray, name: str, role: str, zone: str | None) -> pa.ChunkedArray:
    kind = kind_of(column.type)
    if kind is Kind.STRING:
        parsed = parse_iso(column, zone)
        if isinstance(parsed, Unparsable):
            raise DataError(
                f"column '{name}' holds text that is not a time: {parsed.text!r} in row {parsed.row + 1}"
                + (f", and {parsed.count - 1} more" if parsed.count > 1 else ""),
                hint="write times as 2013-07-04T12:30:00Z, or as whole numbers",
            )
        return parsed
    if kind is Kind.TIME:
        return _microseconds(column, name)
    if kind in (Kind.FLOAT, Kind.DECIMAL):
        hint = f"cast it to whole numbers and name their unit, e.g. {option('time_unit', 'ms')}"
    else:
        hint = f"name another column with {option(role)}"
    raise DataError(
        f"column '{name}' holds the time of events, so it must be whole numbers or timestamps, not {column.type}",
        hint=hint,
    )


def _microseconds(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    try:
        return column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    except pa.ArrowInvalid as problem:
        raise DataError(
            f"column '{name}' has times that are not whole microseconds, or too far away: {problem}",
            hint="round the times to microseconds first, or give whole numbers",
        ) from problem


def _refuse_missing(column: pa.ChunkedArray, name: str) -> None:
    if column.null_count:
        events = "event has" if len(column) == 1 else "events have"
        first = pc.index(column.is_null(), True).as_py() + 1
        raise DataError(
            f"{column.null_count} of {len(column)} {events} no time: column '{name}' is NULL"
            f"{'' if column.null_count == len(column) else f', first in row {first:,}'}",
            hint="drop these rows or fill in their time first",
        )


def _refuse_wide(column: pa.ChunkedArray, name: str) -> None:
    if types.is_uint64(column.type) and len(column) and pc.max(column).as_py() >= 2**63:
        raise DataError(f"column '{name}' has times beyond 64-bit integers", hint="give times in a coarser unit")


# ---------------------------------------------------------------------------------------- imprecise times


def _with_bounds(table: pa.Table, bounds: tuple[str, str], unit: str, zone: str | None) -> tuple[pa.Table, TimeAxis]:
    low, high = bounds
    table, axis = _with_time(table, low, "time_low", unit, zone)
    table, other = _with_time(table, high, "time_high", unit, zone)
    if axis != other:
        raise DataError(
            f"column '{low}' is {table.column(low).type}, but '{high}' is {table.column(high).type}",
            hint="both bounds are whole numbers, or both are timestamps",
        )
    return table, axis


def _absent_types(imprecision: Imprecision, present: frozenset[str]) -> list[QueryWarning]:
    """Types with an error of their own that no event has: their name may be misspelt, and others be taken as exact."""
    return [
        QueryWarning(
            f"{option('time_error')} names a type that no event has: '{name}'", hint=did_you_mean(name, present)
        )
        for name, _ in imprecision.by_type
        if present and name not in present
    ]
