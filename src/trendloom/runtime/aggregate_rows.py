"""Aggregate rows: from merged measures to the values of RETURN, filtered by HAVING, in the number format asked for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.expr.decimals import as_doubles
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Expr, Group, Total
from trendloom.expr.vectors import Vector, at_scale, from_arrow, is_true, to_arrow
from trendloom.logical.plan import Aggregation, Plan, Value
from trendloom.model.schema import Kind
from trendloom.runtime.partial_aggregates import WINDOW, doubles, scaled_of, total_leaf
from trendloom.runtime.result_columns import EXACT_ON_SPARK, exactly_named, time_array, total_type


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
