"""Text files as one table: each file is read on its own, then all of them decide the type of each column.

In CSV an empty field is NULL, `""` is empty text. Arrow parses in parallel blocks; where it refuses, or where an
unclosed quote may have swallowed rows, the file is parsed once more, slowly, to name the row.

Columns of CSV must be the same in every file, in any order; JSON lines (`json_lines`) may leave members out, so their
columns are the union. A schema says what some columns are; the others are recognised (`convert`), over all files at
once. Numbers in one file and text in another are an error that names both.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from trendloom.errors import DataError, did_you_mean, option
from trendloom.io import json_lines
from trendloom.io.convert import (
    FAMILIES,
    NUMBERS,
    ConversionFailure,
    FileColumns,
    Form,
    RecognisedColumn,
    convert,
    family_of,
    form_of_text,
    is_text,
    type_of,
)
from trendloom.io.files import (
    BLOCKS,
    NOT_TEXT,
    File,
    guarded,
    in_blocks,
    not_utf8,
    refuse_duplicates,
    refuse_other_encodings,
)

SEPARATORS = {"csv": ",", "tsv": "\t"}


def read_delimited(file: File, separator: str) -> pa.Table:
    """The columns as text, in the order of the file."""
    refuse_other_encodings(file)
    return guarded(file.name, lambda: _read(file, separator), NOT_TEXT)


def refuse_bytes_that_are_not_utf8(file: File) -> None:
    """Name the first line that is not text."""
    with file.open() as stream:
        for number, line in enumerate(io.BufferedReader(stream), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as problem:
                raise not_utf8(file, line[problem.start], number) from None


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
    """An unclosed quote takes the next rows into its field: a line break beside quotes, or at the very end."""
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


# ----------------------------------------------------------------------------------------- several files as one table


Named = Sequence[tuple[File, RecognisedColumn]]


@dataclass(frozen=True)
class TextFiles:
    """CSV, tab-separated files or JSON lines, and what is known of their columns."""

    kind: str
    files: tuple[File, ...]
    schema: Mapping[str, pa.DataType]
    zone: str = "UTC"

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All files as one table, or those of its columns that are named and there."""
        parts = self._parts()
        names = self._names(parts)
        self._refuse_unknown(names, parts)
        _refuse_rows_of_nothing(names, parts)
        wanted = names if columns is None else [name for name in names if name in set(columns)]
        found = {name: self._column(name, parts) for name in wanted}
        for name, kind in self.schema.items() if not names else ():
            found[name] = pa.chunked_array([], kind)
        return pa.table(found)

    @property
    def _marked(self) -> bool:
        return self.kind == "jsonl"

    # ------------------------------------------------------------------------------------------------- reading

    def _parts(self) -> list[FileColumns]:
        if self._marked:
            return [_with_keys(part) for part in self._objects()]
        return [_with_keys(self._delimited(file)) for file in self.files]

    def _delimited(self, file: File) -> FileColumns:
        table = read_delimited(file, SEPARATORS[self.kind])
        columns = {
            name: RecognisedColumn(Form.TEXT if name in self.schema else form_of_text(values), values)
            for name, values in zip(table.column_names, table.columns, strict=True)
        }
        return FileColumns(file, table.num_rows, columns)

    def _objects(self) -> list[FileColumns]:
        """Fast, unless some file holds what only the exact way reads right: then all of them that way."""
        fast: list[FileColumns] = []
        for file in self.files:
            refuse_other_encodings(file)
            part = json_lines.read_fast(file, self.schema)
            if part is None:
                break
            fast.append(part)
        names = {name for part in fast for name in part.columns} - self.schema.keys()
        if len(fast) == len(self.files) and not any(self._inexact(name, fast) for name in names):
            return fast
        return [json_lines.read_exactly(file, self.schema) for file in self.files]

    def _inexact(self, name: str, parts: list[FileColumns]) -> bool:
        form = _union([part.columns[name].form for part in parts if name in part.columns])
        return is_text(form & NUMBERS)

    def _names(self, parts: list[FileColumns]) -> list[str]:
        names = list(dict.fromkeys(name for part in parts for name in part.columns))
        for name in names if not self._marked else ():
            has = [name in part.columns for part in parts]
            if not all(has):
                with_it, without = parts[has.index(True)].file.name, parts[has.index(False)].file.name
                raise DataError(
                    f"column '{name}' is in {with_it}, but missing in {without}",
                    hint="write the files with the same columns, or read them apart",
                )
        return names

    def _refuse_unknown(self, names: list[str], parts: list[FileColumns]) -> None:
        unknown = [name for name in self.schema if name not in names]
        if unknown and names:
            raise DataError(
                f"{parts[0].file.name} has no column '{unknown[0]}', which the schema names",
                hint=did_you_mean(unknown[0], names),
            )

    # ------------------------------------------------------------------------------------------------ one column

    def _column(self, name: str, parts: list[FileColumns]) -> pa.ChunkedArray:
        named = [(part.file, part.columns.get(name) or _nothing(part.rows)) for part in parts]
        if name in self.schema:
            return self._joined(name, named, self.schema[name])
        _refuse_other_families(name, named, marked=self._marked)
        form = _union([one.form for _, one in named])
        if form & Form.NESTED:
            return _joined_nested(name, named)
        return self._joined(name, named, type_of(form, marked=self._marked, zone=self.zone))

    def _joined(self, name: str, named: Named, wanted: pa.DataType) -> pa.ChunkedArray:
        chunks: list[pa.Array] = []
        for file, one in named:
            values = convert(one.values, wanted, self.zone)
            if isinstance(values, ConversionFailure):
                raise DataError(
                    f"{file.name}: {_short(values.value)} in row {values.row + 1}, column '{name}', "
                    f"is not {_described(wanted)}",
                    hint=f"correct the value, or give the column another type in {option('schema')}",
                )
            chunks.extend(values.chunks)
        return pa.chunked_array(chunks, wanted)


def _refuse_rows_of_nothing(names: list[str], parts: list[FileColumns]) -> None:
    filled = [part for part in parts if part.rows]
    if filled and not names:
        raise DataError(
            f"{filled[0].file.name} holds objects without any member", hint="an event has a time and a type"
        )


def _with_keys(part: FileColumns) -> FileColumns:
    """The columns that folders give, `key=value`; they come before a column of that name in the file."""
    found = dict(part.columns)
    for name, value in part.file.keys:
        values = pa.chunked_array([pa.repeat(pa.scalar(value, pa.string()), part.rows)])
        found[name] = RecognisedColumn(form_of_text(values), values)
    return replace(part, columns=found)


def _nothing(rows: int) -> RecognisedColumn:
    return RecognisedColumn(Form.NONE, pa.chunked_array([pa.nulls(rows)]))


def _union(forms: Sequence[Form]) -> Form:
    return reduce(or_, forms, Form.NONE)


def _refuse_other_families(name: str, named: Named, *, marked: bool) -> None:
    """Numbers in one file and text in another are an error; digits that stay text go with text."""
    known = [(file, one.form) for file, one in named if one.form]
    for file, form in known[1:]:
        first, other = known[0][1], form
        text = all(pa.types.is_string(type_of(one, marked=marked, zone="UTC")) for one in (first, other))
        if family_of(first) != family_of(other) and not text:
            raise DataError(
                f"column '{name}' is {FAMILIES[family_of(first)]} in {known[0][0].name}, "
                f"but {FAMILIES[family_of(other)]} in {file.name}",
                hint=f"say what it is: {option('schema', f'{name} string')}",
            )


def _joined_nested(name: str, named: Named) -> pa.ChunkedArray:
    tables = [pa.table({name: one.values}) for _, one in named]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except pa.ArrowException:
        (first, one), (second, other) = _two_that_differ(named)
        raise DataError(
            f"column '{name}' is {one.values.type} in {first.name}, but {other.values.type} in {second.name}",
            hint=f"write them alike, or read them as text: {option('schema', f'{name} string')}",
        ) from None


def _two_that_differ(named: Named) -> Sequence[tuple[File, RecognisedColumn]]:
    known = [pair for pair in named if pair[1].form]
    return known[0], next(pair for pair in known if pair[1].values.type != known[0][1].values.type)


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _described(wanted: pa.DataType) -> str:
    if pa.types.is_timestamp(wanted):
        return "a time (2013-07-04T12:30:00Z)" if wanted.tz else "a time without a zone (2013-07-04T12:30:00)"
    if pa.types.is_boolean(wanted):
        return "true or false"
    if pa.types.is_date(wanted):
        return "a date (2013-07-04)"
    if pa.types.is_decimal(wanted):
        return f"a number of {wanted.precision} digits, {wanted.scale} of them behind the point"
    return f"a whole number of {wanted.bit_width} bits" if pa.types.is_integer(wanted) else "a number"
