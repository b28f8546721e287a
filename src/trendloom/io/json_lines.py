"""JSON lines as columns: one object in each line, its members are the columns, one that is missing is NULL.

Arrow reads them fast, but makes doubles of integers beyond 64 bits, does not mind bytes that are not UTF-8, and gives
up where a schema needs more than it supports. `read_exactly` is the other way: Python's parser, which keeps every
number as it is written and can say what is wrong in which line; about twenty times slower, for files that need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyarrow import types

from trendloom.errors import DataError, option
from trendloom.io.convert import (
    EXACT,
    FileColumns,
    Form,
    RecognisedColumn,
    form_of_integers,
    form_of_numbers,
    form_of_times,
)
from trendloom.io.files import File, decode_names, guarded, in_blocks, not_utf8
from trendloom.io.timestamps import looks_like_time


class Number(str):
    """A number as it is written."""


_LOOKED_AT = 1 << 16
"""Bytes of the beginning that are parsed to find members that are text."""

_HINT = "JSON lines hold one object in each line"


# ---------------------------------------------------------------------------------------------------- the fast way


def read_fast(file: File, schema: Mapping[str, pa.DataType]) -> FileColumns | None:
    """The file as Arrow reads it; None if `read_exactly` may read it more exactly."""
    return guarded(file.name, lambda: _read_fast(file, schema), _HINT)


def _read_fast(file: File, schema: Mapping[str, pa.DataType]) -> FileColumns | None:
    if not _head(file, 1):
        return FileColumns(file, 0, {})
    named = {name: _as_parsed(wanted) for name, wanted in schema.items()}
    first = _members_at_first(file)
    texts = {name: pa.string() for name, text in first.items() if text}
    try:
        table = _table(file, texts | named)
        late = [field.name for field in table.schema if types.is_timestamp(field.type)]
        if late:  # their zones are lost
            table = _table(file, texts | named | dict.fromkeys(late, pa.string()))
        table.validate(full=True)
        decode_names(table.schema)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    absent = [name for name in named if table.column(name).null_count == table.num_rows and not _names(file, name)]
    order = dict.fromkeys([*first, *table.column_names])  # Arrow puts the columns that it was given first
    columns = {name: table.column(name) for name in order if name not in absent}
    return FileColumns(
        file, table.num_rows, {name: RecognisedColumn(_form(values), values) for name, values in columns.items()}
    )


def _table(file: File, known: Mapping[str, pa.DataType]) -> pa.Table:
    parse = pa.json.ParseOptions(explicit_schema=pa.schema(list(known.items())))

    def read(size: int) -> pa.Table:
        with file.open() as stream:
            return pa.json.read_json(stream, pa.json.ReadOptions(block_size=size), parse)

    return in_blocks(read)


def _members_at_first(file: File) -> dict[str, bool]:
    """Members of the first lines, and whether they are text: Arrow would make times of some, and drop their zones."""
    found: dict[str, bool] = {}
    for line in _head(file, _LOOKED_AT).splitlines()[:-1]:
        try:
            members = json.loads(line)
        except (ValueError, RecursionError):
            break
        for name, value in members.items() if isinstance(members, dict) else ():
            found[name] = found.get(name, False) or isinstance(value, str)
    return found


def _head(file: File, size: int) -> bytes:
    with file.open() as stream:
        return bytes(stream.read(size))


def _names(file: File, member: str) -> bool:
    """Whether any line has the member, be it NULL."""
    with file.open() as stream:
        return json.dumps(member, ensure_ascii=False).encode() in bytes(stream.read())


def _as_parsed(wanted: pa.DataType) -> pa.DataType:
    return pa.string() if types.is_temporal(wanted) else wanted


def _form(values: pa.ChunkedArray) -> Form:
    kind = values.type
    if values.null_count == len(values):
        return Form.NONE
    if types.is_string(kind):
        return _form_of_strings(values)
    if types.is_boolean(kind):
        return Form.BOOL
    if not (types.is_integer(kind) or types.is_floating(kind)):
        return Form.NESTED
    if types.is_integer(kind):
        return form_of_integers(values)
    large = pc.any(pc.greater_equal(pc.abs(values), float(EXACT))).as_py()
    return Form.FLOAT | Form.LONG if large else Form.FLOAT


def _form_of_strings(column: pa.ChunkedArray) -> Form:
    values = pc.drop_null(column)
    if len(values) == 0:
        return Form.NONE
    if not all(map(looks_like_time, values.slice(0, 64).to_pylist())):
        return Form.TEXT
    return form_of_times(values) or Form.TEXT


# --------------------------------------------------------------------------------------------------- the exact way


def read_exactly(file: File, schema: Mapping[str, pa.DataType]) -> FileColumns:
    """Every value as it is written; columns that the schema names are text."""
    lines: list[int] = []
    columns: dict[str, list[Any]] = {}
    for number, members in guarded(file.name, lambda: list(_objects(file)), _HINT):
        for name, value in members.items():
            column = columns.setdefault(name, [])
            column.extend([None] * (len(lines) - len(column)))
            column.append(value)
        lines.append(number)
    for column in columns.values():
        column.extend([None] * (len(lines) - len(column)))
    found = {name: _recognised(file, name, column, lines, name in schema) for name, column in columns.items()}
    return FileColumns(file, len(lines), found)


def _objects(file: File) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects and the lines they begin in. Several in one line are taken as Arrow takes them."""
    decoder = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_members)
    with file.open() as stream:
        content = bytes(stream.read())
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            text = line.decode("utf-8")
            at = _skipped(text, 0)
            while at < len(text):
                value, at = decoder.raw_decode(text, at)
                if not isinstance(value, dict):
                    raise DataError(f"{file.name}: line {number} is not an object: {_shown(text)}", hint=_HINT)
                yield number, value
                at = _skipped(text, at)
        except UnicodeDecodeError as problem:
            raise not_utf8(file, line[problem.start], number) from None
        except json.JSONDecodeError as problem:
            where = f"line {number}, column {problem.colno}"
            raise DataError(f"{file.name}: {problem.msg} in {where}: {_shown(text)}", hint=_HINT) from None
        except RecursionError:
            raise DataError(f"{file.name}: line {number} is nested too deeply", hint=_HINT) from None
        except ValueError as problem:
            raise DataError(f"{file.name}: {problem} in line {number}", hint=_HINT) from None


def _skipped(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} stands twice")
    return found


_SORTS = {bool: "true or false", Number: "a number", str: "text", dict: "an object", list: "a list"}


def _recognised(file: File, name: str, column: list[Any], lines: list[int], named: bool) -> RecognisedColumn:
    sorts: dict[type, int] = {}
    for value, line in zip(column, lines, strict=True):
        if value is not None:
            sorts.setdefault(type(value), line)
    if named:
        return RecognisedColumn(Form.TEXT, _texts(file, name, column, lines))
    if len(sorts) > 1:
        (first, line), (second, other) = list(sorts.items())[:2]
        raise DataError(
            f"{file.name}: '{name}' is {_SORTS[first]} in line {line}, but {_SORTS[second]} in line {other}",
            hint=f"say what it is: {option('schema', f'{name} string')}",
        )
    sort = next(iter(sorts), None)
    if sort is None:
        return RecognisedColumn(Form.NONE, pa.chunked_array([pa.nulls(len(column))]))
    if sort in (dict, list):
        return RecognisedColumn(Form.NESTED, _nested(file, name, column))
    if sort is bool:
        return RecognisedColumn(Form.BOOL, pa.chunked_array([pa.array(column, pa.bool_())]))
    values = _texts(file, name, column, lines)
    if sort is Number:
        return RecognisedColumn(form_of_numbers(pc.drop_null(values), marked=True) or Form.ID, values)
    return RecognisedColumn(_form_of_strings(values), values)


def _texts(file: File, name: str, column: list[Any], lines: list[int]) -> pa.ChunkedArray:
    shown = [value if value is None or isinstance(value, str) else _written(value) for value in column]
    try:
        return pa.chunked_array([pa.array(shown, pa.string())])
    except UnicodeEncodeError:
        bad = next(at for at, value in enumerate(shown) if value is not None and not _encodable(value))
        raise DataError(
            f"{file.name}: '{name}' in line {lines[bad]} holds half of a character (a lone surrogate)",
            hint=r"characters beyond \uffff are written as two escapes, \ud83d\ude00, or as themselves",
        ) from None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _written(value: Any) -> str:
    """A value that is not text, as JSON."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_written(one)}" for key, one in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _nested(file: File, name: str, column: list[Any]) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([pa.array([_plain(value) for value in column])])
    except (pa.ArrowException, UnicodeEncodeError, OverflowError, ValueError, TypeError) as problem:
        reason = str(problem).split("\n")[0]
        raise DataError(
            f"{file.name}: the lists or objects of '{name}' differ in what they hold: {reason}",
            hint=f"write them alike, or read them as text: {option('schema', f'{name} string')}",
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Number):
        number = float(value)
        return int(value) if value.lstrip("-").isdecimal() and abs(number) < 2**63 else number
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return {key: _plain(one) for key, one in value.items()} if isinstance(value, dict) else value
