"""Columns of Spark: by their exact names, predicates as columns, and times whatever the zone of the session.

Predicates are columns so that Spark skips what cannot matter (and Parquet need not be read). Only what means the same
to Spark is translated; the rest is left to the task, which tests everything again. So a translated filter may keep too
much, never too little.

Spark's `timestamp` is a moment without a zone; `timestamp_ntz` is a local time. Neither is ever converted by a cast
here, because casts take the session's zone. Java's rules for hours that clocks skip or repeat are those of
`model.zone`. Local times become moments, and results have their zones again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import ceil
from operator import and_, eq, ge, gt, le, lt, ne, or_

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StructType

from trendloom.engines.spark.errors import WHOLE_MICROSECONDS, error_text
from trendloom.errors import DataError
from trendloom.expr.nodes import Attribute, Comparison, Constant, Expr, Junction, NullTest
from trendloom.io.timestamps import ISO_CLOCK, ISO_ZONE
from trendloom.logical.plan import Plan
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import UTC
from trendloom.pattern.algebra import atoms

COMPARE = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
FEW_QUERIES = 8
"""Queries whose conditions Spark tests one by one; a test of hundreds is too deep for its optimizer."""
SECOND = 1_000_000
"""Microseconds."""
AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"


def column(name: str) -> Column:
    """A column by its exact name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


def without_time(schema: Schema) -> Column:
    """Which rows lack a time, or a part of it."""
    return reduce(or_, [column(name).isNull() for name in schema.said_in])


def needed_rows(plan: Plan, schema: StructType) -> Column | None:
    """Which rows can matter: those with a key that fit some position. None: all of them."""
    tests = [column(name).isNotNull() for name in plan.keys]
    if plan.scan.types is not None:
        fitting: dict[str, list[Column] | None] = {}
        for atom in atoms(plan.pattern):
            test = _position_test(plan, atom.position, schema)
            known = fitting.setdefault(atom.type, [])
            fitting[atom.type] = None if test is None or known is None else [*known, test]
        kind = column(plan.schema.type)
        of_types = [kind == name if not some else (kind == name) & reduce(or_, some) for name, some in fitting.items()]
        tests.append(reduce(or_, of_types))
    return reduce(and_, tests) if tests else None


def needed_by_any(plans: Sequence[Plan], schema: StructType) -> Column | None:
    """Which rows any of some queries with the same keys may need; of many queries by their types alone. None: all."""
    if len(plans) <= FEW_QUERIES:
        tests = [needed_rows(plan, schema) for plan in plans]
        known = [test for test in tests if test is not None]
        return reduce(or_, known) if len(known) == len(tests) else None
    tests = [column(name).isNotNull() for name in plans[0].keys]
    if all(plan.scan.types is not None for plan in plans):
        types = sorted({kind for plan in plans for kind in plan.scan.types or ()})
        tests.append(column(plans[0].schema.type).isin(types))
    return reduce(and_, tests) if tests else None


def _position_test(plan: Plan, position: int, schema: StructType) -> Column | None:
    """The predicates of one position that Spark can test; None where there are none."""
    tests = [_lowered(expr, schema) for where, expr in plan.filters if where == position]
    known = [test for test in tests if test is not None]
    return reduce(and_, known) if known else None


def exact_test(expr: Expr, schema: StructType) -> Column | None:
    """The expression as a Spark column that is true where it is, and only there; None: Spark cannot test it."""
    if not isinstance(expr, Junction):
        return _lowered(expr, schema)
    parts = [exact_test(part, schema) for part in expr.operands]
    known = [part for part in parts if part is not None]
    return reduce(and_ if expr.operator == "and" else or_, known) if len(known) == len(parts) else None


def _lowered(expr: Expr, schema: StructType) -> Column | None:
    """The expression as a Spark column that is true at least wherever the expression is; None: there is none."""
    if isinstance(expr, Comparison):
        return _comparison(expr, schema)
    if isinstance(expr, NullTest) and isinstance(expr.operand, Attribute) and expr.operand.kind is not Kind.FLOAT:
        test = column(expr.operand.column)
        return test.isNotNull() if expr.negated else test.isNull()
    if isinstance(expr, Junction):
        parts = [_lowered(part, schema) for part in expr.operands]
        known = [part for part in parts if part is not None]
        if expr.operator == "and" and known:
            return reduce(and_, known)
        if expr.operator == "or" and len(known) == len(parts):
            return reduce(or_, known)
    return None


def _comparison(expr: Comparison, schema: StructType) -> Column | None:
    left, right = expr.left, expr.right
    if not isinstance(left, Attribute) or not isinstance(right, Constant) or right.value is None:
        return None
    kind = schema[left.column].dataType
    constant = _decimal(right.value, kind) if isinstance(kind, DecimalType) else _plain(left.kind, right)
    if constant is None:
        return None
    compared: Column = COMPARE[expr.operator](column(left.column), constant)
    return compared


def _plain(kind: Kind, right: Constant) -> Column | None:
    """A constant beside a column that is not of decimals."""
    plain = (Kind.INT, Kind.FLOAT, Kind.STRING)
    value = right.value
    if kind not in plain or right.kind not in plain or isinstance(value, Decimal):
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    # Spark compares an integer with a double as doubles, which is not exact for large numbers.
    if kind is not right.kind and isinstance(value, int | float) and abs(value) >= 2**53:
        return None
    return F.lit(value)


def _decimal(value: object, kind: DecimalType) -> Column | None:
    """A constant in the type of the column of decimals: Spark then compares exactly, as we do, and converts nothing."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    units = Fraction(value) * 10**kind.scale
    if units.denominator != 1 or abs(units) >= 10**kind.precision:
        return None
    return F.lit(str(value)).cast(kind)


# ---------------------------------------------------------------------------------------------------- times


def moment_of(local: Column, zone: str = UTC) -> Column:
    """A `timestamp_ntz` as the moment when clocks of the zone show it."""
    date = (F.year(local), F.month(local), F.dayofmonth(local))
    return F.make_timestamp(*date, F.hour(local), F.minute(local), F.date_part(F.lit("SECOND"), local), F.lit(zone))


def time_in_text(text: Column, zone: str | None) -> Column:
    """Text as a time: a moment where there is a zone for text that names none, else a time without a zone, in UTC."""
    zoned = text.rlike(ISO_CLOCK) & text.rlike(ISO_ZONE)
    moment, local = F.try_to_timestamp(text), text.try_cast("timestamp_ntz")
    if zone is not None:
        return F.when(zoned, moment).otherwise(moment_of(local, zone))
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return F.when(zoned, F.timestamp_add("MICROSECOND", F.unix_micros(moment), epoch)).otherwise(local)


def clock_of(df: DataFrame, schema: Schema) -> Column:
    """The earliest time of an event as a timestamp, for Spark's watermark, which all events move.

    So the watermark promises that no event comes that may have happened earlier. What is less than a tick is rounded
    so that a clock is never ahead of its event.
    """
    time, kinds = column(schema.times), dict(df.dtypes)
    how = schema.imprecision if schema.bounds is None else None
    if not schema.axis.timestamp:
        number = time.cast("long") if how is None else time.cast("long") - _error(how, schema, kinds)
        return F.timestamp_micros(F.try_multiply(number, F.lit(int(schema.axis.tick))))
    moment = time if kinds[schema.times] == "timestamp" else moment_of(time)
    if how is None:
        return moment
    if how.error_column is not None and kinds[how.error_column].startswith("interval"):
        return moment - column(how.error_column)
    return F.timestamp_micros(F.unix_micros(moment) - _error(how, schema, kinds))


def _error(how: Imprecision, schema: Schema, kinds: dict[str, str]) -> Column:
    """How many ticks an event may be earlier than its time, rounded up."""
    if how.error_column is None:
        given = F.lit(ceil(how.error))
        kind = column(schema.type)
        return reduce(lambda rest, one: F.when(kind == one[0], F.lit(ceil(one[1]))).otherwise(rest), how.by_type, given)
    number = column(how.error_column)
    if not schema.axis.timestamp:
        return F.ceil(number).cast("long")
    if kinds[how.error_column] in ("tinyint", "smallint", "int", "bigint"):
        return number.cast("long") * SECOND
    return F.ceil(number * SECOND).cast("long")


# ----------------------------------------------------------------------------------------------- Arrow types


def in_utc(schema: pa.Schema) -> pa.Schema:
    """The types as Spark has them: moments have no zone of their own."""
    return pa.schema([pa.field(f.name, _moment_type(f.type, UTC), metadata=f.metadata) for f in schema])


def _moment_type(kind: pa.DataType, zone: str) -> pa.DataType:
    return pa.timestamp("us", zone) if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def shown_in(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The same rows, moments in the zones of these types.

    Nothing else is changed, and nothing but zones is cast: Arrow's cast breaks structs with columns of NULLs.
    """
    for at, field in enumerate(wanted):
        if table.schema.field(at).type != field.type:
            column = table.column(at).combine_chunks()
            shown = _events(column, field.type) if field.name == "events" else _shown(column, field.type)
            table = table.set_column(at, field.name, shown)
    return table


def _events(array: pa.Array, kind: pa.DataType) -> pa.Array:
    fields = [kind.value_type.field(at) for at in range(kind.value_type.num_fields)]
    parts = [_shown(part, field.type) for field, part in zip(fields, array.values.flatten(), strict=True)]
    values = pa.StructArray.from_arrays(parts, names=[field.name for field in fields])
    return pa.ListArray.from_arrays(array.offsets, values)


def _shown(array: pa.Array, kind: pa.DataType) -> pa.Array:
    zone = kind.tz if pa.types.is_timestamp(kind) and pa.types.is_timestamp(array.type) else None
    return array if zone is None else array.cast(_moment_type(array.type, zone))


# ------------------------------------------------------------------------------- times in nanoseconds, of Parquet
#
# pandas writes them, and Spark does not read them. The footers name the columns. Spark reads them as whole numbers and
# divides them by a thousand, which is exact or refused: times are whole microseconds everywhere. Whether a column
# counts from 1970 in UTC or without a zone stays as it is. No setting of the session is changed for longer than it
# takes to read the other columns' types.


def nanosecond_columns(stored: pq.ParquetSchema, file: str) -> dict[str, bool]:
    """The columns of a Parquet file with times in nanoseconds, and whether they count from 1970 in UTC."""
    found = {}
    for leaf in (stored.column(number) for number in range(len(stored))):
        kind = json.loads(leaf.logical_type.to_json())
        if leaf.physical_type == "INT64" and kind["Type"] == "Timestamp" and kind["timeUnit"] == "nanoseconds":
            if leaf.path != leaf.name:
                raise DataError(
                    f"{file}: column '{leaf.path.partition('.')[0]}' has times in nanoseconds inside lists or structs, "
                    "which Spark does not read",
                    hint='write microseconds: coerce_timestamps="us" of pandas and pyarrow',
                )
            found[leaf.name] = bool(kind["isAdjustedToUTC"])
    return found


def schema_with_numbers(spark: SparkSession, path: str, nanoseconds: Mapping[str, bool]) -> StructType:
    """The columns of a Parquet file or folder as Spark reads them, those in nanoseconds as numbers."""
    if not nanoseconds:
        return spark.read.parquet(path).schema
    with _as_numbers(spark):
        return spark.read.parquet(path).schema


def with_times(df: DataFrame, nanoseconds: Mapping[str, bool]) -> DataFrame:
    """The rows with times instead of numbers of nanoseconds."""
    return df.withColumns({name: _time(name, in_utc) for name, in_utc in nanoseconds.items()}) if nanoseconds else df


def epoch_plus(microseconds: Column) -> Column:
    """So many microseconds after 1970 began, as a time without a zone."""
    return F.timestamp_add("MICROSECOND", microseconds, F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))


def _time(name: str, in_utc: bool) -> Column:

    number = column(name)
    micros = F.call_function("div", number, F.lit(1000))
    message = error_text(
        DataError(f"column '{name}' has times that are not whole microseconds: \0 ns", hint=WHOLE_MICROSECONDS)
    )
    text = F.replace(F.lit(message), F.lit("\0"), number.cast("string"))
    whole = F.timestamp_micros(micros) if in_utc else epoch_plus(micros)
    broken = F.raise_error(text).cast("timestamp" if in_utc else "timestamp_ntz")
    return F.when(F.pmod(number, F.lit(1000)) != 0, broken).otherwise(whole)


@contextmanager
def _as_numbers(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(AS_NUMBERS)
    spark.conf.set(AS_NUMBERS, "true")
    try:
        yield
    finally:
        if before == "true":
            spark.conf.set(AS_NUMBERS, before)
        else:
            spark.conf.unset(AS_NUMBERS)
