"""What the values of a text column are (numbers, truth values, times or text), and the column converted to that type.

Each value has a form (a whole number, one that a double does not hold, a date, ...); a column has the union of its
values' forms, and several files the union of theirs, so neither the order of rows and files nor the block size
matters. Numbers that would not be written again as they were read are names, not numbers: `007`, `+49301`, more than
64 bits. A column with one of them stays text, or `007` would equal `7`. A schema names types instead.

Cost: a few vectorised passes; columns of text are recognised by their first values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import OptionError, did_you_mean
from trendloom.io.files import File
from trendloom.io.timestamps import PLAIN_TIME, Unparsable, has_zone, in_zone, looks_like_time, parse_iso


class Form(Flag):
    """What values look like. A column may hold several forms of one family."""

    NONE = 0  # no value at all
    INT = auto()  # whole numbers that doubles hold as well
    LONG = auto()  # other whole numbers of 64 bits
    WIDE = auto()  # longer ones, of up to 38 digits
    FLOAT = auto()
    ID = auto()  # digits that are not a number: 007, +49301, 1234567890123456789.01
    BOOL = auto()
    DATE = auto()
    TIME = auto()  # a date and a time of day
    MOMENT = auto()  # the same with a zone
    TEXT = auto()
    NESTED = auto()  # lists and objects, of JSON


@dataclass(frozen=True, eq=False)
class RecognisedColumn:
    """A column of a text file: what its values are, and the values, as text or as what the file says they are."""

    form: Form
    values: pa.ChunkedArray


@dataclass(frozen=True, eq=False)
class FileColumns:
    """What one text file holds."""

    file: File
    rows: int
    columns: Mapping[str, RecognisedColumn]


NUMBERS = Form.INT | Form.LONG | Form.WIDE | Form.FLOAT | Form.ID
TIMES = Form.DATE | Form.TIME | Form.MOMENT
FAMILIES = {NUMBERS: "numbers", TIMES: "times", Form.BOOL: "true or false", Form.TEXT: "text", Form.NESTED: "nested"}

EXACT = 2**53
"""Every whole number up to here is a double."""

MOST_DIGITS = 38
"""Digits of the longest decimal number."""

_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NO_NUMBER = r"^[+-]?(?i:nan|inf|infinity)$"
_WHOLE = r"^[+-]?[0-9]+$"
_ID = r"^(?:\+|-?0[0-9])"
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_DATE_LENGTH = 10
_SAMPLE = 64


def family_of(form: Form) -> Form:
    return next((family for family in FAMILIES if form & family), Form.NONE)


def is_text(form: Form) -> bool:
    """Whether values of these forms stay text: ids, and whole numbers that the doubles beside them do not hold."""
    mixed = bool(form & Form.FLOAT and form & (Form.LONG | Form.WIDE))
    return bool(form & (Form.TEXT | Form.ID)) or mixed


# ------------------------------------------------------------------------------------------ the form of a column


def form_of_text(column: pa.ChunkedArray) -> Form:
    """The form of a column of a text file that marks nothing as text or number (CSV, names of folders)."""
    values = pc.drop_null(column)
    if len(values) == 0:
        return Form.NONE
    sample = [value.strip() for value in values.slice(0, _SAMPLE).to_pylist()]
    for looks, form_of in _GUESSES:
        if all(map(looks, sample)):
            form = form_of(values) or form_of(pc.utf8_trim_whitespace(values))
            return form or Form.TEXT
    return Form.TEXT


def form_of_numbers(values: pa.ChunkedArray, *, marked: bool = False) -> Form:
    """The forms of numbers as they are written; NONE if some are not numbers. `marked`: the file says they are."""
    quick = _form_of_plain_numbers(values)
    if quick:
        return quick
    words = pc.match_substring_regex(values, _NO_NUMBER)
    if not _all(pc.or_(pc.match_substring_regex(values, _NUMBER), words)):
        return Form.NONE
    if _any(pc.and_not(pc.match_substring_regex(values, _ID), words)):
        return Form.ID
    is_whole = pc.match_substring_regex(values, _WHOLE)
    form = _form_of_digits(values.filter(is_whole))
    rest = pc.invert(is_whole)
    return form | _form_of_fractions(values.filter(rest), words.filter(rest), marked)


def form_of_times(values: pa.ChunkedArray) -> Form:
    """The forms of ISO-8601 times; NONE if some are none."""
    short = pc.equal(pc.binary_length(values), _DATE_LENGTH)
    if cast_if_possible(values, PLAIN_TIME) is not None:  # refuses every zone
        return (Form.DATE if _any(short) else Form.NONE) | (Form.NONE if _all(short) else Form.TIME)
    if isinstance(parse_iso(values), Unparsable):
        return Form.NONE
    zoned = has_zone(values)
    form = Form.DATE if _any(short) else Form.NONE
    form |= Form.MOMENT if _any(zoned) else Form.NONE
    return form if _all(pc.or_(short, zoned)) else form | Form.TIME


def _form_of_words(values: pa.ChunkedArray) -> Form:
    return Form.BOOL if _all(pc.is_in(values, pa.array(_TRUE + _FALSE))) else Form.NONE


def _looks_like_number(text: str) -> bool:
    return re.match(_NUMBER, text) is not None or re.match(_NO_NUMBER, text) is not None


_GUESSES: tuple[tuple[Callable[[str], bool], Callable[[pa.ChunkedArray], Form]], ...] = (
    (_looks_like_number, form_of_numbers),
    (lambda text: text in _TRUE or text in _FALSE, _form_of_words),
    (looks_like_time, form_of_times),
)


# ------------------------------------------------------------------------------------------------------- numbers


def _form_of_plain_numbers(values: pa.ChunkedArray) -> Form:
    """Whole numbers as they would be written again, or numbers that a double holds: the two that files are full of."""
    whole = cast_if_possible(values, pa.int64())
    if whole is not None:
        return form_of_integers(whole) if _all(pc.equal(whole.cast(pa.string()), values)) else Form.NONE
    doubles = cast_if_possible(values, pa.float64())
    if doubles is None or not _all(pc.less(pc.abs(doubles), float(EXACT))):
        return Form.NONE
    return Form.NONE if _any(pc.match_substring_regex(values, _ID)) else Form.FLOAT


def cast_if_possible(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    """The values as that type; None if one of them does not fit."""
    try:
        return values.cast(wanted)
    except pa.ArrowInvalid:
        return None


def form_of_integers(whole: pa.ChunkedArray) -> Form:
    bounds = pc.min_max(whole)
    if bounds["min"].as_py() is None:
        return Form.NONE
    return Form.LONG if bounds["min"].as_py() < -EXACT or bounds["max"].as_py() > EXACT else Form.INT


def _form_of_digits(digits: pa.ChunkedArray) -> Form:
    whole = cast_if_possible(digits, pa.int64())
    if whole is not None:
        return form_of_integers(whole)
    most = pc.max(pc.utf8_length(pc.utf8_ltrim(digits, "-"))).as_py()
    return Form.WIDE if most <= MOST_DIGITS else Form.ID


def _form_of_fractions(values: pa.ChunkedArray, words: pa.ChunkedArray, marked: bool) -> Form:
    """What is neither infinite nor has more digits before its point than a double is a double."""
    if len(values) == 0:
        return Form.NONE
    doubles = values.cast(pa.float64())
    lost = pc.is_inf(doubles)
    if not marked:
        long = pc.and_not(pc.greater(pc.abs(doubles), float(EXACT)), pc.match_substring_regex(values, "[eE]"))
        lost = pc.or_(lost, long)
    return Form.ID if _any(pc.and_not(lost, words)) else Form.FLOAT


def _all(mask: pa.ChunkedArray) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


# -------------------------------------------------------------------------------------- from a form to a type
#
# A value that does not fit never becomes NULL silently: `convert` returns a `ConversionFailure`, the first such value
# and its row. Parts are tried again only where something does not fit, to find it.


WIDEST = pa.decimal128(MOST_DIGITS, 0)


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
        _require(pc.match_substring_regex(column, _WHOLE))
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
            return in_zone(column.cast(pa.timestamp("us")), zone).cast(wanted)
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
    return pc.coalesce(in_zone(plain, zone).cast(wanted), moments.cast(wanted))


def _parsed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    found = parse_iso(text)
    if isinstance(found, Unparsable):
        raise pa.ArrowInvalid(found.text)
    return found


def _require(mask: pa.ChunkedArray) -> None:
    if not _all(mask):
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


# ------------------------------------------------------------------------------------------- schemas as text
#
# "time timestamp, id string, amount decimal(10,2)" becomes names and Arrow types. The words are those of Spark's SQL,
# so that one text serves `trendloom run` and `trendloom stream`; no Spark is needed to read it. A colon may stand
# between name and type, `NOT NULL` and a COMMENT are ignored, names in backquotes may hold anything.


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
