"""Text and values of JSON as columns of a type: one that was recognised, or one that a schema names.

What does not fit is never NULL in silence: `convert` returns a `ConversionFailure`, the first such value and its row.
Cost: one vectorised pass; only where something does not fit are parts tried again, to find it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import OptionError, did_you_mean
from trendloom.io import iso
from trendloom.io.recognise import TIMES, Form, cast_if_possible, has_zone, is_text
from trendloom.io.timestamps import in_zone

WIDEST = pa.decimal128(38, 0)
_DIGITS = r"^[+-]?[0-9]+$"


@dataclass(frozen=True)
class ConversionFailure:
    """A value that is not of the requested type, and its row, counted from 0."""

    row: int
    value: object


def type_of(form: Form, *, marked: bool, zone: str) -> pa.DataType:
    """The type of a column of these forms. `marked`: the file distinguishes numbers from text, as JSON does."""
    if form & Form.NESTED or not form:
        return pa.null()
    if is_text(form) or (form & Form.WIDE and not marked):
        return pa.string()
    if form & Form.BOOL:
        return pa.bool_()
    if form & TIMES:
        return _type_of_times(form, zone)
    if form & Form.WIDE:
        return WIDEST
    return pa.float64() if form & Form.FLOAT else pa.int64()


def _type_of_times(form: Form, zone: str) -> pa.DataType:
    if form == Form.MOMENT:
        return pa.timestamp("us", "UTC")
    if form & Form.MOMENT:
        return pa.timestamp("us", zone)
    return pa.date32() if form == Form.DATE else pa.timestamp("us")


def convert(column: pa.ChunkedArray, wanted: pa.DataType, zone: str) -> pa.ChunkedArray | ConversionFailure:
    """The column as that type. Times without a zone are of `zone`, where the type has one."""
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    try:
        return _converted(column, wanted, zone)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    bare = pc.utf8_trim_whitespace(column) if types.is_string(column.type) else column
    try:
        return _converted(bare, wanted, zone)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _first_misfit(bare, lambda part: _converted(part, wanted, zone))


def _converted(column: pa.ChunkedArray, wanted: pa.DataType, zone: str) -> pa.ChunkedArray:
    if types.is_timestamp(wanted):
        return _times(column, wanted, zone)
    if not types.is_string(column.type):
        return column.cast(wanted)
    if types.is_boolean(wanted):
        return _truth(column)
    if types.is_decimal(wanted):
        return _decimals(column, wanted)
    if types.is_integer(wanted):
        _require(pc.match_substring_regex(column, _DIGITS))
        return pc.replace_substring_regex(column, r"^\+", "").cast(wanted)
    return column.cast(wanted)


def _decimals(text: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Arrow refuses digits behind the point that do not fit, but does not notice when there are too many before it."""
    bound = float(10 ** (wanted.precision - wanted.scale))
    _require(pc.less_equal(pc.abs(text.cast(pa.float64())), bound))
    return text.cast(wanted)


def _truth(text: pa.ChunkedArray) -> pa.ChunkedArray:
    lower = pc.utf8_lower(text)
    yes = pc.equal(lower, "true")
    _require(pc.or_(yes, pc.equal(lower, "false")))
    return yes


def _times(column: pa.ChunkedArray, wanted: pa.DataType, zone: str) -> pa.ChunkedArray:
    """Times with and without a zone are parsed apart; a type without a zone takes those without one."""
    if not types.is_string(column.type):
        if types.is_timestamp(column.type) and column.type.tz is None and wanted.tz is not None:
            return _placed(column.cast(pa.timestamp("us")), wanted, zone)
        return column.cast(wanted)
    if wanted.tz is None and (plain := cast_if_possible(column, wanted)) is not None:  # Arrow refuses every zone here
        return plain
    zoned = has_zone(column)
    if wanted.tz is None:
        _require(pc.invert(zoned))
    nothing = pa.scalar(None, pa.string())
    plain = _parsed(pc.if_else(zoned, nothing, column))
    if wanted.tz is None:
        return plain.cast(wanted)
    moments = _parsed(pc.if_else(zoned, column, nothing))
    return pc.coalesce(_placed(plain, wanted, zone), moments.cast(wanted))


def _parsed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    found = iso.parse(text)
    if isinstance(found, iso.Unparsable):
        raise pa.ArrowInvalid(found.text)
    return found


def _placed(plain: pa.ChunkedArray, wanted: pa.DataType, zone: str) -> pa.ChunkedArray:
    return in_zone(plain, zone).cast(wanted)


def _require(mask: pa.ChunkedArray) -> None:
    if not pc.all(mask, min_count=0).as_py():
        raise pa.ArrowInvalid("not of the type wanted")


def _first_misfit(column: pa.ChunkedArray, converted: Callable[[pa.ChunkedArray], object]) -> ConversionFailure:
    first, last = 0, len(column)  # what is before `first` fits, what is before `last` does not
    while last - first > 1:
        middle = (first + last) // 2
        try:
            converted(column.slice(first, middle - first))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            last = middle
        else:
            first = middle
    return ConversionFailure(first, column[first].as_py())


# What `--schema` says: "time timestamp, id string, amount decimal(10,2)" becomes names and Arrow types.
#
# The words are those of Spark's SQL, so that one text serves `trendloom run` and `trendloom stream`; no Spark is needed
# to read it. A colon may stand between name and type, `NOT NULL` and a COMMENT are read over, names in backquotes may
# hold anything.


TYPES = {
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
DECIMALS = ("decimal", "dec", "numeric")
EXAMPLE = '"time timestamp, type string, amount decimal(10,2)"'

_NAME = r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^\s`,:()]+))"
_TYPE = r"(?P<type>[A-Za-z_]\w*)\s*(?:\(\s*(?P<first>\d+)\s*(?:,\s*(?P<second>\d+)\s*)?\))?"
_MORE = r"(?:\s+NOT\s+NULL)?(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?"
_COLUMN = re.compile(rf"\s*{_NAME}\s*(?::\s*|\s+){_TYPE}{_MORE}\s*(?:,|$)", re.IGNORECASE)


def parse_schema(text: str) -> dict[str, pa.DataType]:
    """The columns that a text names, and what each is."""
    found: dict[str, pa.DataType] = {}
    at = 0
    while at < len(text):
        match = _COLUMN.match(text, at)
        if match is None:
            raise OptionError(f"the schema cannot be read from {text[at:].strip()[:40]!r} on", hint=f"write {EXAMPLE}")
        name = match["plain"] if match["quoted"] is None else match["quoted"].replace("``", "`")
        if name in found:
            raise OptionError(f"the schema names column '{name}' twice", hint="leave one of them out")
        found[name] = _type(match)
        at = match.end()
    if not found:
        raise OptionError("the schema names no column", hint=f"write {EXAMPLE}")
    return found


def _type(match: re.Match[str]) -> pa.DataType:
    word, first, second = match["type"].lower(), match["first"], match["second"]
    if word in DECIMALS:
        digits, scale = int(first or 10), int(second or 0)
        if not 1 <= digits <= 38 or scale > digits:
            raise OptionError(
                f"there is no type {word}({digits},{scale})",
                hint="a decimal has at most 38 digits, and not more of them behind the point: decimal(38,2)",
            )
        return pa.decimal128(digits, scale)
    if word not in TYPES:
        raise OptionError(f"there is no type '{match['type']}'", hint=did_you_mean(word, [*TYPES, *DECIMALS]))
    if first is not None and word not in ("varchar", "char"):
        raise OptionError(f"the type {word} takes no numbers in brackets", hint=f"write {word}")
    return TYPES[word]
