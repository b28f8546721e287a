"""Aggregates: partial results, as tables that add up in any order, and the rows that are computed from them in the end.

One row per group and window, one column per measure:

- exact integers are int64, or decimal text where one does not fit; sums of decimals are integers in units of their last
  digit;
- other sums are mantissa · 2^exponent, the exponent in a column of its own, so that no size is too large (`EXPONENT`);
- sums of doubles in the two-step way are plain doubles;
- MIN and MAX are values of their column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array, in_one, narrow
from trendloom.expr.decimals import as_doubles, decimals, from_text, to_text
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Expr, Group, Total
from trendloom.expr.vectors import Vector, at_scale, from_arrow, is_true, kind_of, to_arrow
from trendloom.kernels.columns.keys import encode_keys, one_key
from trendloom.kernels.contract.aggregates import Amounts, Measure
from trendloom.logical.plan import Aggregation, Plan, Value
from trendloom.model.schema import Kind
from trendloom.planner.measures import measure_of, measures_of
from trendloom.runtime.result_columns import EXACT_ON_SPARK, exactly_named, time_array, total_type

WINDOW = "window_start"
EXPONENT = " exponent"
MOST_BITS = 1 << 22
"""Bits up to which a scaled number takes part in arithmetic as an integer."""


# ------------------------------------------------------------------------------------------------ columns


def exact_column(values: Array) -> pa.Array:
    """Exact integers: int64 where all fit, else decimals of 38 digits, else decimal text."""
    if values.dtype == np.int64:
        return pa.array(values)
    listed = values.tolist()
    if len(listed) and min(listed) > -(10**38) and max(listed) < 10**38:
        return decimals(listed, EXACT_ON_SPARK)
    return pa.array([to_text(value) for value in listed], pa.string())


def amount_columns(name: str, amounts: Amounts) -> dict[str, pa.Array]:
    """A linear measure as columns."""
    if amounts.exponent is None:
        return {name: exact_column(amounts.values)}
    return {name: pa.array(amounts.values), name + EXPONENT: pa.array(amounts.exponent)}


def integers(column: pa.ChunkedArray) -> Array:
    """Exact integers out of a column: int64 or Python integers."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    if pa.types.is_decimal(column.type):
        return narrow(_of_decimals(in_one(column)), None)
    values = np.empty(len(column), dtype=object)
    values[:] = [from_text(text) for text in column.to_pylist()]
    return narrow(values, None)


def _of_decimals(column: pa.Array) -> Array:
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset : column.offset + len(column)]
    found: Array = words[:, 0].view(np.uint64).astype(object) + (words[:, 1].astype(object) << 64)
    return found


# ------------------------------------------------------------------------------------------------- merging


def merge_partials(plan: Plan, partials: Sequence[pa.Table]) -> pa.Table:
    """One row per group and window out of many partial tables."""
    if len(partials) == 1 and partials[0].num_rows <= 1:
        return partials[0]
    table = pa.concat_tables(_alike(plan, partials), promote_options="permissive")
    names = [name for name in (WINDOW, *plan.group_by) if name in table.column_names]
    vectors = [from_arrow(table[name], kind_of(table[name].type)) for name in names]
    keys = encode_keys(vectors) if names else one_key(table.num_rows)
    columns: dict[str, Any] = {name: table[name].take(pa.array(keys.rows)).combine_chunks() for name in names}
    for measure in measures_of(plan):
        columns |= _merge(measure, table, keys.codes, keys.count)
    return pa.table(columns)


def _is_exact(measure: Measure, table: pa.Table) -> bool:
    """Whether a measure is a sum of exact integers there."""
    linear = measure.function in ("matches", "count", "sum") and measure.name + EXPONENT not in table.column_names
    return linear and not pa.types.is_floating(table[measure.name].type)


def _alike(plan: Plan, tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Exact integers as text where tables differ in how they write them."""
    found = list(tables)
    for measure in measures_of(plan):
        if _is_exact(measure, found[0]) and len({table[measure.name].type for table in found}) > 1:
            at = found[0].column_names.index(measure.name)
            found = [table.set_column(at, measure.name, table[measure.name].cast(pa.string())) for table in found]
    return found


def _merge(measure: Measure, table: pa.Table, code: Array, groups: int) -> dict[str, pa.Array]:
    name, column = measure.name, table[measure.name]
    if name + EXPONENT in table.column_names:
        exponent = table[name + EXPONENT].to_numpy()
        return amount_columns(name, _scaled_sums(column.to_numpy(), exponent, code, groups))
    if _is_exact(measure, table):
        return {name: exact_column(exact_sums(integers(column), code, groups))}
    values = from_arrow(column, kind_of(column.type))
    if values.kind is Kind.NULL:
        return {name: pa.nulls(groups)}
    if values.valid is not None:
        code, values = code[values.valid], values.take(np.flatnonzero(values.valid))
    return {name: by_code(measure, values, code, groups)}


def by_code(measure: Measure, values: Vector, code: Array, groups: int) -> pa.Array:
    """One measure per code over values without NULL."""
    if measure.function == "count":
        return exact_column(np.bincount(code, minlength=groups))
    if measure.function == "sum":
        if values.values.dtype == np.float64:
            return pa.array(_float_sums(values.values, code, groups))
        return exact_column(exact_sums(values.values, code, groups))
    order = np.argsort(code, kind="stable")
    present, starts = np.unique(code[order], return_index=True)
    best = np.minimum if measure.function == "min" else np.maximum
    extreme = np.zeros(groups, values.values.dtype)
    if len(present):
        extreme[present] = best.reduceat(values.values[order], starts)
    found = np.zeros(groups, np.bool_)
    found[present] = True
    return to_arrow(replace(values, values=extreme, valid=found))


def exact_sums(values: Array, code: Array, groups: int) -> Array:
    """Sums of integers per code; Python integers where 64 bits could be too few."""
    most = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
    if most * max(len(values), 1) >= 2**62:
        values = values.astype(object)
    sums = np.zeros(groups, values.dtype)
    np.add.at(sums, code, values)
    return narrow(sums, None) if sums.dtype == object else sums


def _scaled_sums(mantissa: Array, exponent: Array, code: Array, groups: int) -> Amounts:
    """Sums of mantissa · 2^exponent per code, at the greatest exponent of each."""
    greatest = np.full(groups, np.iinfo(np.int64).min)
    np.maximum.at(greatest, code[mantissa != 0], exponent[mantissa != 0])
    greatest[greatest == np.iinfo(np.int64).min] = 0
    shift = np.where(mantissa != 0, exponent - greatest[code], 0)
    sums = np.zeros(groups)
    np.add.at(sums, code, np.ldexp(mantissa, np.maximum(shift, -1100).astype(np.int32)))
    fraction, more = np.frexp(sums)
    return Amounts(fraction, np.where(fraction != 0, greatest + more, 0))


def _float_sums(values: Array, code: Array, groups: int) -> Array:
    """Sums per group, each rounded once (`math.fsum`) where that is cheap, else pairwise by NumPy."""
    if len(values) > 100_000:
        return np.bincount(code, weights=values, minlength=groups)
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(groups + 1))
    ordered = values[order].tolist()
    return np.array([_fsum(ordered[a:b]) for a, b in pairwise(bounds)], np.float64)


def _fsum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)


# ------------------------------------------------------------------------------------------------- results


def total_leaf(table: pa.Table, total: Total, scale: int = 0) -> Vector:
    """The value of an aggregate over matches, per row of a merged partial table.

    `scale`: the digits after the point of the values it is taken of.
    """
    if total.positions is None or total.function == "count":
        return _linear(table, measure_of(total, "count"), None)
    if total.function in ("min", "max"):
        column = table[measure_of(total, total.function).name]
        return from_arrow(column, total.kind if total.kind is not Kind.NULL else kind_of(column.type))
    counted = _counted(table, total)
    if total.function == "sum":
        return _linear(table, measure_of(total, "sum"), counted, scale)
    return _average(table, total, counted, scale)


def scaled_of(table: pa.Table, total: Total) -> tuple[Array, Array, Array | None] | None:
    """COUNT or SUM as mantissa, exponent and where it is known, if the table holds it so."""
    measure = measure_of(total, "count" if total.positions is None else total.function)
    if measure.name + EXPONENT not in table.column_names:
        return None
    known = _counted(table, total) if total.function == "sum" else None
    return table[measure.name].to_numpy(), table[measure.name + EXPONENT].to_numpy(), known


def doubles(mantissa: Array, exponent: Array) -> Array:
    """Scaled numbers as doubles; infinity where they are beyond them."""
    with np.errstate(over="ignore"):
        found: Array = np.ldexp(mantissa, np.clip(exponent, -5000, 5000).astype(np.int32))
    return found


def _counted(table: pa.Table, total: Total) -> Array:
    """Where there is a value at all."""
    name = measure_of(total, "count").name
    if name + EXPONENT in table.column_names:
        return np.asarray(table[name].to_numpy() != 0)
    return np.asarray(integers(table[name]) != 0, np.bool_)


def _linear(table: pa.Table, measure: Measure, known: Array | None, scale: int = 0) -> Vector:
    column = table[measure.name]
    if measure.name + EXPONENT not in table.column_names:
        if pa.types.is_floating(column.type):
            plain = from_arrow(column, Kind.FLOAT)
            valid = plain.valid if known is None else known if plain.valid is None else known & plain.valid
            return Vector(measure.kind, plain.values, valid)
        return Vector(measure.kind, integers(column), known, scale=scale)
    mantissa, exponent = column.to_numpy(), table[measure.name + EXPONENT].to_numpy()
    if measure.kind in (Kind.FLOAT, Kind.DECIMAL):
        return Vector(Kind.FLOAT, doubles(mantissa, exponent), known)
    return Vector(measure.kind, _whole(measure, mantissa, exponent), known)


def _whole(measure: Measure, mantissa: Array, exponent: Array) -> Array:
    """Scaled numbers as integers, for arithmetic on aggregates."""
    if len(exponent) and int(exponent.max()) > MOST_BITS:
        raise RunError(
            f"an aggregate has more than {MOST_BITS:,} bits: too large for arithmetic, HAVING or averages",
            hint=f"return the aggregate by itself ({option('numeric', 'log')}), or use a smaller window",
        )
    found = np.empty(len(mantissa), object)
    parts = zip(mantissa.tolist(), exponent.tolist(), strict=True)
    found[:] = [round(math.ldexp(m, e)) if e < 1000 else int(math.ldexp(m, 53)) << (e - 53) for m, e in parts]
    return narrow(found, None)


def _average(table: pa.Table, total: Total, counted: Array, scale: int) -> Vector:
    sums, counts = (_parts(table, measure_of(total, function)) for function in ("sum", "count"))
    if isinstance(sums, list) and isinstance(counts, list):
        pairs = zip(sums, counts, strict=True)
        means = np.array([value / (n * 10**scale) if n else 0.0 for value, n in pairs], np.float64)
    else:
        (top, up), (bottom, down) = _frexp(sums), _frexp(counts)
        means = doubles(top / np.where(counted, bottom, 1.0), np.where(counted, up - down, 0))
    return Vector(Kind.FLOAT, means, counted & ~np.isnan(means))


def _parts(table: pa.Table, measure: Measure) -> list[Any] | tuple[Array, Array]:
    """A linear measure as Python numbers, or as mantissa and exponent."""
    column = table[measure.name]
    if measure.name + EXPONENT in table.column_names:
        return column.to_numpy(), table[measure.name + EXPONENT].to_numpy()
    if pa.types.is_floating(column.type):
        return [math.nan if value is None else value for value in column.to_pylist()]
    listed: list[Any] = integers(column).tolist()
    return listed


def _frexp(parts: list[Any] | tuple[Array, Array]) -> tuple[Array, Array]:
    if isinstance(parts, tuple):
        return parts
    found = [_frexp_of(value) for value in parts]
    return np.array([m for m, _ in found], np.float64), np.array([e for _, e in found], np.int64)


def _frexp_of(value: float) -> tuple[float, int]:
    if isinstance(value, int) and abs(value) >= 2**1000:
        shift = value.bit_length() - 64
        mantissa, exponent = math.frexp(float(value >> shift))
        return mantissa, exponent + shift
    return math.frexp(value)


# ---------------------------------------------------------- rows: the values of RETURN, filtered by HAVING


def finish_aggregates(plan: Plan, schema: pa.Schema, merged: pa.Table, numeric: str, *, spark: bool) -> pa.Table:
    """The rows of an aggregating query, ordered by window and group."""
    assert isinstance(plan.output, Aggregation)

    def leaf(expr: Expr) -> Vector:
        if isinstance(expr, Total):
            return total_leaf(merged, expr, plan.schema.scale(expr.column))
        assert isinstance(expr, Group)
        return from_arrow(merged[expr.column], expr.kind)

    if plan.output.having is not None:
        kept = np.broadcast_to(is_true(evaluate(plan.output.having, leaf)), merged.num_rows)
        merged = merged.filter(pa.array(kept))
    names = [name for name in (WINDOW, *plan.group_by) if name in merged.column_names]
    if names:
        plain = pa.table({name: _decoded(merged[name]) for name in names})
        merged = merged.take(pc.sort_indices(plain, [(name, "ascending") for name in names]))
    columns: dict[str, Any] = {name: merged[name].combine_chunks() for name in plan.group_by}
    if plan.window.sliding:
        assert plan.window.within is not None
        start = merged[WINDOW].to_numpy()
        time_type = schema.field(plan.schema.times).type
        columns["window_start"] = time_array(start, time_type)
        columns["window_end"] = time_array(start + plan.window.within, time_type)
    for value in plan.output.values:
        column = _scaled_column(value, merged, numeric)
        if column is None:
            vector = evaluate(value.expr, leaf).broadcast(merged.num_rows)
            column = _column(value, vector, plan, schema, numeric, spark, merged)
        columns[value.name] = column
    return exactly_named(columns, [value.name for value in plan.output.values if value.kind.exact])


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow sorts by the values of dictionaries only where they are strings."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _scaled_column(value: Value, merged: pa.Table, numeric: str) -> pa.Array | None:
    """COUNT, SUM or PROBABILITY as a double or logarithm, straight from mantissa and exponent; None: something else."""
    if not (isinstance(value.expr, Total) and value.expr.function in ("count", "sum", "probability")):
        return None
    scaled = scaled_of(merged, value.expr)
    if scaled is None:
        return None
    mantissa, exponent, known = scaled
    if numeric == "log":
        _refuse_negative(value, bool((mantissa < 0).any()))
        known = mantissa > 0
        return pa.array(_log10(np.where(known, mantissa, 1.0), exponent), mask=~known)
    return pa.array(doubles(mantissa, exponent), mask=None if known is None else ~known)


def _log10(mantissa: Array, exponent: Array) -> Array:
    """The logarithm of the double where there is one, else of mantissa and exponent apart."""
    fits = np.abs(exponent) < 1000
    plain = np.log10(np.where(fits, doubles(mantissa, np.where(fits, exponent, 0)), 1.0))
    found: Array = np.where(fits, plain, np.log10(mantissa) + exponent * math.log10(2))
    return found


def _column(
    value: Value, vector: Vector, plan: Plan, schema: pa.Schema, numeric: str, spark: bool, merged: pa.Table
) -> pa.Array:
    counted = isinstance(value.expr, Total) and value.expr.function in ("count", "sum")
    if numeric == "log" and counted:
        return _logarithms(value, vector)
    wanted = total_type(value, plan, schema, numeric)
    if wanted is not None:
        if value.kind.exact and pa.types.is_floating(wanted):
            vector = Vector(Kind.FLOAT, _doubles(vector), vector.valid)
        return to_arrow(vector, wanted)
    vector = at_scale(vector, value.scale)
    if spark:
        _refuse_wide(value, vector, plan, merged)
    column = to_arrow(vector)
    return column.cast(EXACT_ON_SPARK) if spark and value.kind is Kind.INT else column


def _refuse_wide(value: Value, vector: Vector, plan: Plan, merged: pa.Table) -> None:
    """Spark's decimals end at 38 digits."""
    if vector.values.dtype == np.int64:
        return
    wide = np.abs(vector.values) >= 10**38
    beyond = np.flatnonzero(wide if vector.valid is None else wide & vector.valid)
    if len(beyond):
        raise beyond_decimal(plan, value, merged, int(beyond[0]))


def beyond_decimal(plan: Plan, value: Value, groups: pa.Table, row: int) -> RunError:
    """The refusal of a number that Spark's decimals cannot hold; `groups` has its group and window in a row."""
    return RunError(
        f"{value.name} does not fit DECIMAL(38,{value.scale}) in {_where(plan, groups, row)}",
        hint=f"use {option('numeric', 'float')} or {option('numeric', 'log')}",
    )


def _doubles(vector: Vector) -> Array:
    """Integers and decimals as doubles; infinity where they are beyond them."""
    if vector.values.dtype == np.float64:
        return vector.values
    found = as_doubles(vector.values, vector.scale)
    beyond = np.isnan(found)
    found[beyond] = np.where(vector.values[beyond] > 0, math.inf, -math.inf)
    return found


def _where(plan: Plan, merged: pa.Table, row: int) -> str:
    parts = [f"{name} = {merged[name][row].as_py()!r}" for name in plan.group_by]
    if plan.window.sliding:
        parts.append(f"the window that starts at {merged[WINDOW][row].as_py()}")
    return ", ".join(parts) or "the whole stream"


def _logarithms(value: Value, vector: Vector) -> pa.Array:
    """Base-10 logarithms; a zero is NULL, a negative sum an error."""
    found: list[float | None] = []
    for number in replace(vector, scale=0).to_list():
        _refuse_negative(value, number is not None and number < 0)
        found.append(None if not number else math.log10(number) - vector.scale)
    return pa.array(found, pa.float64())


def _refuse_negative(value: Value, negative: bool) -> None:
    if negative:
        raise RunError(
            f"{value.name} is negative: it has no logarithm",
            hint=f"use {option('numeric', 'exact')} or {option('numeric', 'float')}",
        )
