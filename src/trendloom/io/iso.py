"""ISO-8601 text to timestamps, a column at a time.

Arrow parses text with a zone only into a zoned type and text without one only into a plain type; a column may hold
both, so the two kinds are parsed apart and put together as UTC, or in a zone that is given. Cost: two vectorised
passes over the column. Single values are looked at only where something does not parse, to name it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.io.timestamps import in_zone

PLAIN = pa.timestamp("us")
ZONED = pa.timestamp("us", "UTC")

ZONE = r"[0-9:.][ ]?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
CLOCK = r"^[^T ]+[T ]"
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


def parse(column: pa.ChunkedArray, zone: str | None = None) -> pa.ChunkedArray | Unparsable:
    """The column as timestamp[us]. NULL stays NULL.

    With a zone: moments, and values that name none are local times of that zone. Without: zoned UTC where every value
    names a zone, else plain, in UTC.
    """
    text = pc.replace_substring_regex(column.cast(pa.string()), _LONG_FRACTION, r"\1")
    zoned = _names_zone(text)
    try:
        with_zone = _parsed(text, zoned, ZONED)
        without = _parsed(text, pc.invert(zoned), PLAIN)
    except pa.ArrowInvalid:
        return _failures(column.cast(pa.string()))
    if zone is not None:
        return pc.coalesce(in_zone(without, zone), with_zone.cast(pa.timestamp("us", zone)))
    if without.null_count == len(without) and with_zone.null_count < len(with_zone):
        return with_zone
    return pc.coalesce(without, with_zone.cast(PLAIN))


def _names_zone(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.and_(pc.match_substring_regex(text, CLOCK), pc.match_substring_regex(text, ZONE))


def _parsed(text: pa.ChunkedArray, wanted: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    return pc.if_else(wanted, text, pa.scalar(None, pa.string())).cast(target)


def _failures(text: pa.ChunkedArray) -> Unparsable:
    """Slow and exact: tries each distinct value by itself."""
    distinct = [value for value in pc.unique(text).to_pylist() if value is not None]
    bad = pa.array([value for value in distinct if not _parses(value)], pa.string())
    rows = pc.is_in(text, value_set=bad)
    first = pc.index(rows, pa.scalar(True)).as_py()
    return Unparsable(first, text[first].as_py(), pc.sum(rows).as_py())


def _parses(value: str) -> bool:
    text = pc.replace_substring_regex(pa.array([value]), _LONG_FRACTION, r"\1")
    for target in (PLAIN, ZONED):
        try:
            text.cast(target)
        except pa.ArrowInvalid:
            continue
        return True
    return False
