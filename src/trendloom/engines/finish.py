"""Aggregate rows: from merged measures to the values of RETURN, filtered by HAVING, in the number format asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.engines.partials import WINDOW, doubles, scaled_of, total_leaf
from trendloom.engines.results import EXACT_ON_SPARK, time_array, total_type
from trendloom.errors import RunError, option
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Expr, Group, Total
from trendloom.expr.vectors import Vector, from_arrow, is_true, to_arrow
from trendloom.io.text import EXACT
from trendloom.model.numbers import exact_array
from trendloom.model.schema import Kind
from trendloom.plan.logical import Aggregation, Plan, Value

Array = np.ndarray[Any, Any]


def finish_aggregates(plan: Plan, schema: pa.Schema, merged: pa.Table, numeric: str, *, spark: bool) -> pa.Table:
    """The rows of an aggregating query, ordered by window and group."""
    assert isinstance(plan.output, Aggregation)

    def leaf(expr: Expr) -> Vector:
        if isinstance(expr, Total):
            return total_leaf(merged, expr)
        assert isinstance(expr, Group)
        return from_arrow(merged[expr.column], expr.kind)

    if plan.output.having is not None:
        kept = np.broadcast_to(is_true(evaluate(plan.output.having, leaf)), merged.num_rows)
        merged = merged.filter(pa.array(kept))
    names = [name for name in (WINDOW, *plan.group_by) if name in merged.column_names]
    if names:
        merged = merged.take(pc.sort_indices(merged, [(name, "ascending") for name in names]))
    columns: dict[str, Any] = {name: merged[name].combine_chunks() for name in plan.group_by}
    if plan.window.sliding:
        assert plan.window.within is not None
        start = merged[WINDOW].to_numpy()
        time_type = schema.field(plan.schema.time).type
        columns["window_start"] = time_array(start, time_type)
        columns["window_end"] = time_array(start + plan.window.within, time_type)
    for value in plan.output.values:
        column = _scaled_column(value, merged, numeric)
        if column is None:
            vector = evaluate(value.expr, leaf).broadcast(merged.num_rows)
            column = _column(value, vector, plan, schema, numeric, spark, merged)
        columns[value.name] = column
    exact = {value.name for value in plan.output.values if value.kind is Kind.INT}
    fields = [
        pa.field(name, array.type, metadata=EXACT if name in exact and pa.types.is_string(array.type) else None)
        for name, array in columns.items()
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _scaled_column(value: Value, merged: pa.Table, numeric: str) -> pa.Array | None:
    """COUNT or SUM as a double or logarithm, straight from mantissa and exponent; None where it is no such thing."""
    if not (isinstance(value.expr, Total) and value.expr.function in ("count", "sum")):
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
        if value.kind is Kind.INT:
            vector = Vector(Kind.FLOAT, _doubles(vector.values), vector.valid)
        return to_arrow(vector, wanted)
    if vector.values.dtype == np.int64:
        column = pa.array(vector.values, mask=None if vector.valid is None else ~vector.valid)
        return column.cast(EXACT_ON_SPARK) if spark else column
    exact = vector.to_list()
    if not spark:
        return exact_array(exact)
    for row, number in enumerate(exact):
        if number is not None and abs(number) >= 10**38:
            raise beyond_decimal(plan, value.name, merged, row)
    return exact_array(exact).cast(EXACT_ON_SPARK)


def beyond_decimal(plan: Plan, name: str, groups: pa.Table, row: int) -> RunError:
    """The refusal of a number that Spark's decimals cannot hold; `groups` has its group and window in a row."""
    return RunError(
        f"{name} does not fit DECIMAL(38,0) in {_where(plan, groups, row)}",
        hint=f"use {option('numeric', 'float')} or {option('numeric', 'log')}",
    )


def _doubles(values: Array) -> Array:
    """Integers as doubles; infinity where they are beyond them."""

    def nearest(value: int) -> float:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    return np.array([nearest(value) for value in values.tolist()], np.float64)


def _where(plan: Plan, merged: pa.Table, row: int) -> str:
    parts = [f"{name} = {merged[name][row].as_py()!r}" for name in plan.group_by]
    if plan.window.sliding:
        parts.append(f"the window that starts at {merged[WINDOW][row].as_py()}")
    return ", ".join(parts) or "the whole stream"


def _logarithms(value: Value, vector: Vector) -> pa.Array:
    """Base-10 logarithms; a zero is NULL, a negative sum an error."""
    found: list[float | None] = []
    for number in vector.to_list():
        _refuse_negative(value, number is not None and number < 0)
        found.append(None if not number else math.log10(number))
    return pa.array(found, pa.float64())


def _refuse_negative(value: Value, negative: bool) -> None:
    if negative:
        raise RunError(
            f"{value.name} is negative: it has no logarithm",
            hint=f"use {option('numeric', 'exact')} or {option('numeric', 'float')}",
        )
