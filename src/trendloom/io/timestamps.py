"""Columns of times: local times of a zone to moments and back, ticks of an axis, units of whole numbers, ISO-8601 text.

By the definition in `model.time`, a column at a time. Offsets change on few hours of a year, so they are looked up once
per distinct hour that occurs (at its beginning and its end), and once per distinct second of those few hours. Cost: one
hash pass over the column; text takes two vectorised passes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import QueryWarning, option
from trendloom.model.time import TimeAxis, offset_of_local, offset_of_moment, zone_named

Integers = npt.NDArray[np.int64]
Ticks = npt.NDArray[np.int64]
"""Times as whole numbers; the time axis defines a tick."""
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


def ticks(column: pa.ChunkedArray, axis: TimeAxis) -> Ticks:
    """The times of a prepared column (no NULLs) as whole ticks."""
    if axis.timestamp:
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


# ----------------------------------------------------------------------- whole numbers as times without a unit
#
# A number means what its unit says, and without one it counts seconds; that is never changed here, but it may cause a
# warning. Times that most likely are milliseconds since 1970 would shrink `WITHIN 10 minutes` to 0.6 seconds. The test
# is the share of numbers that would be moments between 1980 and 2100 in each unit, so that small integers never cause a
# warning. Cost: a few vectorised passes over the time column; on Spark, sums in a job that runs anyway.


EPOCHS = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""What whole numbers may count instead of seconds, and how many of them a second has."""

SHORT = {"milliseconds": "ms", "microseconds": "us"}

FIRST_SECOND, LAST_SECOND = 315_532_800, 4_102_444_800  # 1980 and 2100 in seconds
FIRST_DATE, LAST_DATE = 1900_01_01, 2100_12_31
TIME_OF_DAY = 10**6
"""20240131120000: the digits of a time of day behind those of a date."""


@dataclass(frozen=True)
class Sizes:
    """What a time column was seen to hold: how many numbers, the greatest, and how many are of each kind."""

    rows: int
    most: int
    epochs: dict[str, int]
    dates: int


def sizes_of(times: npt.NDArray[np.int64]) -> Sizes:
    """The sizes of a column of whole numbers."""
    if not len(times) or times.max() < FIRST_DATE:
        return Sizes(len(times), 0, {}, 0)
    epochs = {
        name: int(np.count_nonzero((times >= FIRST_SECOND * scale) & (times < LAST_SECOND * scale)))
        for name, scale in EPOCHS.items()
    }
    date = np.where(times > LAST_DATE, times // TIME_OF_DAY, times)
    month, day = date // 100 % 100, date % 100
    written = (date >= FIRST_DATE) & (date <= LAST_DATE) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return Sizes(len(times), int(times.max()), epochs, int(np.count_nonzero(written)))


def doubt_of_unit(column: str, sizes: Sizes) -> QueryWarning | None:
    """A warning where the numbers hardly count seconds."""
    but = "but whole numbers count seconds unless a unit is given"
    meant = f"{option('time_unit', 's')} says that they are seconds"
    if 0 < sizes.rows == sizes.dates:
        return QueryWarning(
            f"the times in column '{column}' look like dates written as numbers ({sizes.most}), {but}",
            hint=f"write them as 2024-01-31, or make timestamps of them; {meant}",
        )
    for name, count in sizes.epochs.items():
        if 2 * count > sizes.rows:
            seconds = min(sizes.most // EPOCHS[name], LAST_SECOND)
            day = datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()
            return QueryWarning(
                f"the times in column '{column}' look like {name} since 1970 ({sizes.most} would be {day}), {but}",
                hint=f"{_way_out(name)}; {meant}",
            )
    return None


def _way_out(name: str) -> str:
    if name != "nanoseconds":
        return f"write {option('time_unit', SHORT[name])}"
    return f"times are kept in microseconds: divide them by 1000 and write {option('time_unit', 'us')}"


# ----------------------------------------------------------------------------------------------------- ISO-8601 text
#
# Arrow parses text with a zone only into a zoned type and text without one only into a plain type; a column may hold
# both, so the two kinds are parsed apart and combined as UTC, or in a given zone. Single values are examined only where
# something does not parse, to name it.


PLAIN_TIME = pa.timestamp("us")
ZONED_TIME = pa.timestamp("us", "UTC")

ISO_ZONE = r"[0-9:.][ ]?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
ISO_CLOCK = r"^[^T ]+[T ]"
_LONG_FRACTION = r"(\.[0-9]{6})0+"  # nanoseconds that are whole microseconds


@dataclass(frozen=True)
class Unparsable:
    """What did not parse: the first row (counted from 0), its text, and how many rows there are of the kind."""

    row: int
    text: str
    count: int


def looks_like_time(text: str) -> bool:
    """A cheap test of one value, before a whole column is tried."""
    return len(text) >= 10 and text[:4].isdigit() and text[4] == "-" and text[7] == "-"


def parse_iso(column: pa.ChunkedArray, zone: str | None = None) -> pa.ChunkedArray | Unparsable:
    """The column as timestamp[us]. NULL stays NULL.

    With a zone: moments, and values that name none are local times of that zone. Without: zoned UTC where every value
    names a zone, else plain, in UTC.
    """
    text = pc.replace_substring_regex(column.cast(pa.string()), _LONG_FRACTION, r"\1")
    zoned = has_zone(text)
    try:
        with_zone = _parsed(text, zoned, ZONED_TIME)
        without = _parsed(text, pc.invert(zoned), PLAIN_TIME)
    except pa.ArrowInvalid:
        return _failures(column.cast(pa.string()))
    if zone is not None:
        return pc.coalesce(in_zone(without, zone), with_zone.cast(pa.timestamp("us", zone)))
    if without.null_count == len(without) and with_zone.null_count < len(with_zone):
        return with_zone
    return pc.coalesce(without, with_zone.cast(PLAIN_TIME))


def has_zone(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which ISO-8601 times name a zone."""
    return pc.and_(pc.match_substring_regex(text, ISO_CLOCK), pc.match_substring_regex(text, ISO_ZONE))


def _parsed(text: pa.ChunkedArray, selected: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    return pc.if_else(selected, text, pa.scalar(None, pa.string())).cast(target)


def _failures(text: pa.ChunkedArray) -> Unparsable:
    """Slow and exact: tries each distinct value by itself."""
    distinct = [value for value in pc.unique(text).to_pylist() if value is not None]
    bad = pa.array([value for value in distinct if not _parses(value)], pa.string())
    rows = pc.is_in(text, value_set=bad)
    first = pc.index(rows, pa.scalar(True)).as_py()
    return Unparsable(first, text[first].as_py(), pc.sum(rows).as_py())


def _parses(value: str) -> bool:
    text = pc.replace_substring_regex(pa.array([value]), _LONG_FRACTION, r"\1")
    for target in (PLAIN_TIME, ZONED_TIME):
        try:
            text.cast(target)
        except pa.ArrowInvalid:
            continue
        return True
    return False
