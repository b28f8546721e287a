"""Rows of several queries in one table: the union of their columns, each of a type that holds all its values exactly.

Integers and decimals become as wide as they must, in the end text of digits; times and durations take the finest unit;
what has no such type is refused. A query that lacks a column has NULL there.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types

from trendloom.errors import OptionError, option
from trendloom.io.text import EXACT, is_exact_text
from trendloom.model.numbers import DECIMALS
from trendloom.model.zone import UTC


def joint_schema_of(results: Sequence[pa.Schema], most_digits: int | None = None) -> pa.Schema:
    """The columns of all results in the order of their first appearance.

    Decimals that need more than `most_digits` are refused; without it, text holds those that no decimal does.
    """
    fields: dict[str, list[pa.Field]] = {}
    for schema in results:
        for field in schema:
            fields.setdefault(field.name, []).append(field)
    return pa.schema([_joint(name, some, most_digits) for name, some in fields.items()])


def with_columns(table: pa.Table, joint: pa.Schema) -> pa.Table:
    """The table with all columns of a joint schema."""
    return pa.Table.from_arrays([_column(table, field) for field in joint], schema=joint)


def one_table(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows of all tables."""
    joint = joint_schema_of([table.schema for table in tables])
    return pa.concat_tables([with_columns(table, joint) for table in tables])


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if field.name not in table.column_names:
        return pa.nulls(len(table), field.type)
    column, own = table[field.name], table.schema.field(field.name)
    if own.type == field.type:
        return column
    if is_exact_text(field) and types.is_decimal(own.type):
        return pa.array([None if value is None else format(value, "f") for value in column.to_pylist()], field.type)
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        raise _differ(field.name, [own.type, field.type]) from None


def _joint(name: str, fields: Sequence[pa.Field], most_digits: int | None) -> pa.Field:
    found = list(dict.fromkeys(_plain(field.type) for field in fields if not types.is_null(field.type)))
    if any(map(is_exact_text, fields)):
        return pa.field(name, pa.string(), metadata=EXACT)
    if len(found) < 2:
        same = fields[0].type if len({field.type for field in fields}) == 1 else None
        return pa.field(name, same or (found[0] if found else pa.null()))
    wide = None
    if all(map(types.is_integer, found)):
        wide = _widest_integer(found)
    elif all(types.is_integer(one) or types.is_decimal(one) for one in found):
        return _widest_decimal(name, found, most_digits)
    elif all(map(types.is_timestamp, found)):
        wide = _finest_time(found)
    else:
        wide = _as_arrow_does(name, found)
    if wide is None:
        raise _differ(name, found)
    return pa.field(name, wide)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if types.is_dictionary(kind) else kind


def _widest_integer(found: Sequence[pa.DataType]) -> pa.DataType:
    if all(map(types.is_signed_integer, found)) or all(map(types.is_unsigned_integer, found)):
        return max(found, key=lambda one: one.bit_width)
    return pa.decimal128(20, 0) if pa.uint64() in found else pa.int64()


def _widest_decimal(name: str, found: Sequence[pa.DataType], most_digits: int | None) -> pa.Field:
    scale = max(one.scale if types.is_decimal(one) else 0 for one in found)
    whole = max(one.precision - one.scale if types.is_decimal(one) else _digits(one) for one in found)
    for widest, make in DECIMALS.items():
        if scale + whole <= min(widest, most_digits or widest):
            return pa.field(name, make(scale + whole, scale))
    if most_digits is not None:
        raise _differ(name, found)
    return pa.field(name, pa.string(), metadata=EXACT)


def _digits(kind: pa.DataType) -> int:
    return len(str(2**kind.bit_width if types.is_unsigned_integer(kind) else 2 ** (kind.bit_width - 1)))


def _finest_time(found: Sequence[pa.DataType]) -> pa.DataType | None:
    """Moments may have different zones; a local time and a moment have nothing in common."""
    zones = {one.tz for one in found}
    if None in zones and len(zones) > 1:
        return None
    unit = max((one.unit for one in found), key=("s", "ms", "us", "ns").index)
    return pa.timestamp(unit, zones.pop() if len(zones) == 1 else UTC)


def _as_arrow_does(name: str, found: Sequence[pa.DataType]) -> pa.DataType | None:
    """Floats, texts, durations and nested values."""
    try:
        schemas = [pa.schema([pa.field(name, one)]) for one in found]
        return pa.unify_schemas(schemas, promote_options="permissive").field(name).type
    except pa.ArrowException:
        return None


def _differ(name: str, found: Sequence[pa.DataType]) -> OptionError:
    listed = ", ".join(dict.fromkeys(map(str, found)))
    return OptionError(
        f"the queries cannot share one table of results: '{name}' is of the types {listed}, which no type holds",
        hint=f"rename columns that differ with AS, or choose one query with {option('query')}",
    )
