"""Columns of local times become columns of moments, and back: by the definition in `model.zone`, a column at a time.

Offsets change on few hours of a year, so they are looked up once per distinct hour that occurs (twice: at its beginning
and its end), and once per distinct second of the few hours in which they change. Cost: one hash pass over the column.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from trendloom.model.zone import offset_of_local, offset_of_moment, zone_named

Integers = npt.NDArray[np.int64]
Offset = Callable[[datetime.tzinfo, int], int]

HOUR = 3600
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def with_zone(table: pa.Table, zone: str) -> pa.Table:
    """The table with every column of timestamps without a zone read as local times of this one."""
    for at, field in enumerate(table.schema):
        if is_local(field.type):
            table = table.set_column(at, field.name, in_zone(table.column(at), zone))
    return table


def is_local(kind: pa.DataType) -> bool:
    """Whether times of this type do not say their zone."""
    return bool(types.is_timestamp(kind) and kind.tz is None)


def in_zone(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Local times of a zone as moments, of the same unit and with that zone."""
    return _shifted(column, zone, offset_of_local, -1).cast(pa.timestamp(column.type.unit, zone))


def local_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Moments as clocks of the column's zone show them, without a zone."""
    return _shifted(column, column.type.tz, offset_of_moment, 1)


def _shifted(column: pa.ChunkedArray, zone: str, offset: Offset, sign: int) -> pa.ChunkedArray:
    plain = pa.timestamp(column.type.unit)
    if len(column) == column.null_count:
        return column.cast(plain)
    per_second = PER_SECOND[column.type.unit]
    ticks = column.cast(plain).cast(pa.int64()).fill_null(0).to_numpy()
    shift = _offsets(ticks // per_second, zone_named(zone), offset) * (sign * per_second)
    mask = np.asarray(column.is_null()) if column.null_count else None
    return pa.chunked_array([pa.array(ticks + shift, pa.int64(), mask=mask).cast(plain)])


def _offsets(seconds: Integers, zone: datetime.tzinfo, offset: Offset) -> Integers:
    """The offset at each of these seconds."""
    hours = pa.array(seconds // HOUR).dictionary_encode()
    begins = [hour * HOUR for hour in hours.dictionary.to_pylist()]
    first = np.array([offset(zone, begin) for begin in begins], np.int64)
    last = np.array([offset(zone, begin + HOUR - 1) for begin in begins], np.int64)
    places = np.asarray(hours.indices)
    found: Integers = first[places]
    changing = np.flatnonzero((first != last)[places])
    if len(changing):
        single = pa.array(seconds[changing]).dictionary_encode()
        exact = np.array([offset(zone, second) for second in single.dictionary.to_pylist()], np.int64)
        found[changing] = exact[np.asarray(single.indices)]
    return found
