"""The columns of a result: known from the plan and the input's types, before anything runs.

`events` is a list of struct: all input columns and `var`, the variable an event is bound to. Windows have the type of
the time column. Exact aggregates are int64 or wider as needed; on Spark always decimal(38, 0). Decimals keep the digits
after their point: a value of a column has its type, a computed one is decimal(38, s), or wider as needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from pyarrow import types

from trendloom.errors import DataError, OptionError, option
from trendloom.expr.arrays import Array
from trendloom.expr.decimals import DECIMALS
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Total
from trendloom.io.write import EXACT, is_exact_text
from trendloom.kernels.contract.matches import ResultColumn
from trendloom.logical.plan import Aggregation, Plan, Value
from trendloom.model.schema import Kind
from trendloom.model.selection import Trends
from trendloom.model.time import UTC
from trendloom.planner.plan import Physical

VAR = "var"
EXACT_ON_SPARK = pa.decimal128(38, 0)


def events_type(schema: pa.Schema) -> pa.ListType:
    """The type of the `events` column for events of this schema."""
    fields = [pa.field(field.name, field.type) for field in schema]
    return pa.list_(pa.struct([*fields, pa.field(VAR, pa.string())]))


def time_array(ticks: Array, time_type: pa.DataType) -> pa.Array:
    """Ticks as values of the time column's type."""
    try:
        if pa.types.is_timestamp(time_type):
            return pa.array(ticks, pa.timestamp("us", time_type.tz)).cast(time_type)
        return pa.array(ticks, pa.int64()).cast(time_type)
    except pa.ArrowInvalid:
        raise DataError(
            f"the bounds of a window do not fit the time column's type {time_type}",
            hint="cast the time column to int64",
        ) from None


def value_type(value: Value, plan: Plan, schema: pa.Schema) -> pa.DataType:
    """The type of a value of one match."""
    if isinstance(value.expr, Attribute):
        return schema.field(value.expr.column).type
    if value.kind is Kind.DECIMAL:
        return _extreme_type(value.expr, schema) or decimal_type(value.scale)
    zone = getattr(schema.field(plan.schema.times).type, "tz", None)
    return pa.timestamp("us", zone) if value.kind is Kind.TIME else _TYPES[value.kind]


_TYPES = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.DURATION: pa.duration("us"),
    Kind.NULL: pa.null(),
}


def decimal_type(scale: int) -> pa.DataType:
    """The type of decimals that were computed."""
    return pa.decimal128(38, scale) if scale <= 38 else pa.decimal256(76, scale)


def _extreme_type(expr: Expr, schema: pa.Schema) -> pa.DataType | None:
    """A least or greatest decimal is one of its column; None: the value is something else."""
    if not isinstance(expr, Aggregate | Total) or expr.function not in ("min", "max") or expr.column is None:
        return None
    own = schema.field(expr.column).type
    return own.value_type if pa.types.is_dictionary(own) else own


def row_schema(physical: Physical, schema: pa.Schema, exact: pa.DataType = EXACT_ON_SPARK) -> pa.Schema:
    """The columns of rows per match, with exact integers as `exact`."""
    plan = physical.plan
    fields = [pa.field(name, schema.field(name).type) for name in plan.partition]
    fields += window_fields(plan, schema)
    if isinstance(plan.output, Trends):
        fields.append(pa.field("events", events_type(schema)))
    else:
        fields += [pa.field(value.name, value_type(value, plan, schema)) for value in plan.output.values]
    marked = EXACT if pa.types.is_string(exact) else None
    for column in physical.kernel.columns:
        kind = exact if column.counts else added_type(column, plan, schema)
        fields.append(pa.field(column.name, kind, metadata=marked if column.counts else None))
    return pa.schema(fields)


def added_type(column: ResultColumn, plan: Plan, schema: pa.Schema) -> pa.DataType:
    """The type of a column that a kernel adds, if it does not count matches."""
    if column.kind is Kind.TIME:
        return schema.field(plan.schema.times).type
    return decimal_type(column.scale) if column.kind is Kind.DECIMAL else _TYPES[column.kind]


def exactly_named(columns: Mapping[str, pa.Array], exact: Collection[str]) -> pa.Table:
    """A table whose schema marks text that holds exact numbers, which no type is wide enough for."""
    fields = [
        pa.field(name, array.type, metadata=EXACT if name in exact and pa.types.is_string(array.type) else None)
        for name, array in columns.items()
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with these columns; cast only where types differ: Arrow's cast breaks structs with columns of NULLs."""
    if batch.schema.types == schema.types:
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    return batch.cast(schema)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """No row, so that the columns are known."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def window_fields(plan: Plan, schema: pa.Schema) -> list[pa.Field]:
    """`window_start` and `window_end` where the query has windows."""
    if not plan.window.sliding:
        return []
    time_type = schema.field(plan.schema.times).type
    return [pa.field("window_start", time_type), pa.field("window_end", time_type)]


def total_type(value: Value, plan: Plan, schema: pa.Schema, numeric: str) -> pa.DataType | None:
    """The type of a value over matches; None: exact integers or decimals, as wide as they need."""
    if value.kind.exact and numeric != "exact":
        return pa.float64()
    if value.kind is Kind.DECIMAL:
        return _extreme_type(value.expr, schema)
    return None if value.kind is Kind.INT else value_type(value, plan, schema)


def aggregate_schema(plan: Plan, schema: pa.Schema, numeric: str, exact: pa.DataType = EXACT_ON_SPARK) -> pa.Schema:
    """The columns of aggregate rows, with exact integers as `exact`; decimals are as wide as Spark has them."""
    assert isinstance(plan.output, Aggregation)
    fields = [pa.field(name, schema.field(name).type) for name in plan.group_by]
    fields += window_fields(plan, schema)
    for value in plan.output.values:
        wide = decimal_type(value.scale) if value.kind is Kind.DECIMAL else exact
        fields.append(pa.field(value.name, total_type(value, plan, schema, numeric) or wide))
    return pa.schema(fields)


# Rows of several queries in one table: the union of their columns, each of a type that holds all its values exactly.
#
# Integers and decimals become as wide as they must, in the end text of digits; times and durations take the finest
# unit; what has no such type is refused. A query that lacks a column has NULL there.


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
