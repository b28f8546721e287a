"""CSV and tab-separated files as columns of text, every value as it is written; what is damaged is said with its row.

An empty field is NULL, `""` is empty text. Arrow reads the file in parallel blocks and says little of what is wrong;
where it refuses, or where a quote that nobody closed may have swallowed rows, the file is looked at once more, slowly,
to name the place.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from trendloom.errors import DataError
from trendloom.io.files import File, guarded
from trendloom.io.text import refuse_duplicates

SEPARATORS = {"csv": ",", "tsv": "\t"}
BLOCKS = (1 << 20, 1 << 26, 1 << 30)
"""Bytes that are parsed at once: a row must fit, so a file with a longer one is read anew with the next."""

_Read = TypeVar("_Read")
_HINT = "the file may be damaged, or not be what its name says"
UTF8_HINT = "save it as UTF-8; iconv -f LATIN1 -t UTF-8 does that for most Western texts"


def read_delimited(file: File, separator: str) -> pa.Table:
    """The columns as text, in the order of the file."""
    refuse_other_encodings(file)
    return guarded(file.name, lambda: _read(file, separator), _HINT)


def refuse_other_encodings(file: File) -> None:
    """Text is UTF-8; of other encodings those with two or four bytes for each letter show it at once."""

    def head() -> bytes:
        with file.open() as stream:
            return bytes(stream.read(4))

    first = guarded(file.name, head, _HINT)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(first) > 1 and 0 in first):
        raise DataError(
            f"{file.name} is not text in UTF-8, but in UTF-16 or UTF-32, or no text at all",
            hint="save it as UTF-8; iconv -f UTF-16 -t UTF-8 does that",
        )


def in_blocks(reader: Callable[[int], _Read]) -> _Read:
    """Read with the smallest blocks that hold every row."""
    for size in BLOCKS[:-1]:
        try:
            return reader(size)
        except pa.ArrowInvalid as problem:
            if "straddl" not in str(problem):
                raise
    return reader(BLOCKS[-1])


def refuse_bytes_that_are_not_utf8(file: File) -> None:
    """Name the first line that is not text."""
    with file.open() as stream:
        for number, line in enumerate(io.BufferedReader(stream), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as problem:
                raise DataError(
                    f"{file.name} is not text in UTF-8: byte 0x{line[problem.start]:02x} in line {number}",
                    hint=UTF8_HINT,
                ) from None


# ------------------------------------------------------------------------------------------------------- reading


def _read(file: File, separator: str) -> pa.Table:
    parse = pa.csv.ParseOptions(newlines_in_values=True, delimiter=separator)
    try:
        names = in_blocks(lambda size: _header(file, parse, size))
        refuse_duplicates(names, file.name)
        table = in_blocks(lambda size: _texts(file, parse, names, size))
    except (pa.ArrowInvalid, UnicodeDecodeError) as problem:
        _explain(file, parse, str(problem))
        raise
    _refuse_open_quotes(file, separator, table)
    _refuse_zero_bytes(file, table)
    return table


def _header(file: File, parse: pa.csv.ParseOptions, size: int) -> list[str]:
    with (
        file.open() as stream,
        pa.csv.open_csv(stream, pa.csv.ReadOptions(block_size=size), parse) as reader,
    ):
        return list(reader.schema.names)


def _texts(file: File, parse: pa.csv.ParseOptions, names: list[str], size: int) -> pa.Table:
    convert = pa.csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types={name: pa.string() for name in names},
    )
    with file.open() as stream:
        return pa.csv.read_csv(stream, pa.csv.ReadOptions(block_size=size), parse, convert)


# ----------------------------------------------------------------------------------------------- what is wrong


def _explain(file: File, parse: pa.csv.ParseOptions, problem: str) -> None:
    """Raise a better error than Arrow's, if there is one."""
    if "Empty CSV" in problem:
        raise DataError(f"{file.name} is empty", hint="a CSV file begins with a line of column names")
    refuse_bytes_that_are_not_utf8(file)
    if "columns, got" in problem:
        _refuse_first_bad_row(file, parse)


def _refuse_first_bad_row(file: File, parse: pa.csv.ParseOptions) -> None:
    bad: list[pa.csv.InvalidRow] = []

    def remember(row: pa.csv.InvalidRow) -> str:
        bad.append(row)
        return "error" if row.number is None else "skip"

    watching = pa.csv.ParseOptions(newlines_in_values=True, delimiter=parse.delimiter, invalid_row_handler=remember)
    with file.open() as stream:
        pa.csv.read_csv(stream, pa.csv.ReadOptions(use_threads=False, block_size=BLOCKS[1]), watching)
    if bad and bad[0].number is not None:
        first, text = bad[0], bad[0].text if len(bad[0].text) <= 60 else bad[0].text[:60] + "..."
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise DataError(
            f"{file.name}: row {first.number - 1} has {_fields(first.actual_columns)}, "
            f"but the header has {_fields(first.expected_columns)}: {text!r}{more}",
            hint='fields that hold the separator, a quote or a line break stand in quotes: "a, b"',
        )


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def _refuse_open_quotes(file: File, separator: str, table: pa.Table) -> None:
    """A quote that nobody closes takes the next rows into its field: a line break beside quotes, or at the very end."""
    if table.num_rows == 0 or table.num_columns == 0:
        return
    last = table.column(table.num_columns - 1)[-1].as_py() or ""
    suspicious = "\n" in last or "\r" in last
    for column in () if suspicious else table.columns:
        quoted = pc.match_substring(column, '"')
        if pc.any(quoted).as_py():
            texts = column.filter(quoted)
            suspicious = suspicious or bool(pc.any(pc.match_substring_regex(texts, "[\r\n]")).as_py())
    if suspicious:
        _read_strictly(file, separator)


def _read_strictly(file: File, separator: str) -> None:
    with file.open() as stream:
        lines = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", newline="")
        reader = csv.reader(lines, delimiter=separator, strict=True)
        before = 0
        try:
            for _ in reader:
                before = reader.line_num
        except csv.Error as problem:
            if "field larger" in str(problem):
                return
            raise DataError(
                f"{file.name}: the row that begins in line {before + 1} has a quote that is not closed as it should be",
                hint='after the quote that ends a field comes the separator; quotes inside are doubled: "a ""b"""',
            ) from None


def _refuse_zero_bytes(file: File, table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        zero = pc.match_substring(column, "\0")
        if pc.any(zero).as_py():
            row = pc.index(zero, pa.scalar(True)).as_py()
            raise DataError(
                f"{file.name}: a zero byte in row {row + 1}, column '{name}'",
                hint="the file is damaged, or not text in UTF-8",
            )
