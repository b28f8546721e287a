"""What the values of a text column are: numbers, truth values, times or text, decided by all of them.

Each value has a form (a whole number, one that a double does not hold, a date, ...); a column has the union of its
values' forms, and files together the union of theirs, so neither the order of rows and files nor the way they are read
in blocks matters. Numbers that would not be written again as they were read are names, not numbers: `007`, `+49301`,
more than 64 bits. A column with one of them stays text, or `007` would equal `7`.

Cost: a few vectorised passes; columns of text are known by their first values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.io import iso
from trendloom.io.files import File


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
    if cast_if_possible(values, iso.PLAIN) is not None:  # refuses every zone
        return (Form.DATE if _any(short) else Form.NONE) | (Form.NONE if _all(short) else Form.TIME)
    if isinstance(iso.parse(values), iso.Unparsable):
        return Form.NONE
    zoned = has_zone(values)
    form = Form.DATE if _any(short) else Form.NONE
    form |= Form.MOMENT if _any(zoned) else Form.NONE
    return form if _all(pc.or_(short, zoned)) else form | Form.TIME


def has_zone(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.and_(pc.match_substring_regex(text, iso.CLOCK), pc.match_substring_regex(text, iso.ZONE))


def _form_of_words(values: pa.ChunkedArray) -> Form:
    return Form.BOOL if _all(pc.is_in(values, pa.array(_TRUE + _FALSE))) else Form.NONE


def _looks_like_number(text: str) -> bool:
    return re.match(_NUMBER, text) is not None or re.match(_NO_NUMBER, text) is not None


_GUESSES: tuple[tuple[Callable[[str], bool], Callable[[pa.ChunkedArray], Form]], ...] = (
    (_looks_like_number, form_of_numbers),
    (lambda text: text in _TRUE or text in _FALSE, _form_of_words),
    (iso.looks_like_time, form_of_times),
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
    try:
        return form_of_integers(digits.cast(pa.int64()))
    except pa.ArrowInvalid:
        pass
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
