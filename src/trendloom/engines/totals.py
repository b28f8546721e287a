"""Aggregates over matches, the two-step way: enumerate matches, then add up. The baseline of the one-step kernels.

Each chunk of matches becomes a *partial* table: one row per group and window with a few measures (how many matches, how
many values, their sum, least, greatest). Partials add up in any order, so chunks, tasks and partitions can be merged
however they come. Integer sums are exact: where a chunk could leave 64 bits, Python integers take over; between
chunks they travel as decimal text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.engines.events import Stream
from trendloom.expr.arrays import narrow
from trendloom.expr.nodes import Expr, Total, walk
from trendloom.expr.vectors import Vector, from_arrow, kind_of, to_arrow
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import encode_keys, one_key
from trendloom.kernels.detection.matches import Matches
from trendloom.model.schema import Kind
from trendloom.physical.plan import Physical
from trendloom.plan.logical import Aggregation, Plan

Array = np.ndarray[Any, Any]
WINDOW = "window_start"


@dataclass(frozen=True)
class Measure:
    """One running number per group and window; `name` is its column in partial tables."""

    name: str
    function: str  # matches | count | sum | min | max
    positions: tuple[int, ...] | None
    column: str | None
    kind: Kind


def measures_of(plan: Plan) -> tuple[Measure, ...]:
    """What has to be kept to compute every aggregate of a query."""
    found: dict[str, Measure] = {}
    for total in totals_of(plan):
        for function in NEEDED[total.function]:
            measure = _measure(total, function)
            found[measure.name] = measure
    return tuple(found.values())


NEEDED = {"count": ("count",), "sum": ("sum", "count"), "avg": ("sum", "count"), "min": ("min",), "max": ("max",)}


def totals_of(plan: Plan) -> list[Total]:
    assert isinstance(plan.output, Aggregation)
    exprs: list[Expr] = [value.expr for value in plan.output.values]
    exprs += [plan.output.having] if plan.output.having is not None else []
    return [node for expr in exprs for node in walk(expr) if isinstance(node, Total)]


def _measure(total: Total, function: str) -> Measure:
    if total.positions is None:
        return Measure("matches", "matches", None, None, Kind.INT)
    kind = Kind.INT if function == "count" else Kind.FLOAT if total.function == "avg" else total.kind
    where = "_".join(map(str, total.positions))
    return Measure(f"{function}_{where}_{total.column or ''}", function, total.positions, total.column, kind)


# ------------------------------------------------------------------------------------- one chunk of matches


def chunk_partial(physical: Physical, stream: Stream, block: Block, group_of_key: Array, matches: Matches) -> pa.Table:
    """The measures of a chunk, by group and window. `group_of_key[k]` is a row that holds key k's group values."""
    plan = physical.plan
    groups = [stream.vector(name).take(group_of_key[block.key[matches.first]]) for name in plan.group_by]
    windows = [] if matches.window_start is None else [Vector(Kind.INT, matches.window_start)]
    keys = encode_keys([*windows, *groups]) if windows or groups else one_key(len(matches))
    entry_code = keys.codes[matches.match]
    columns: dict[str, Any] = {
        name: stream.table[name].take(pa.array(group_of_key[block.key[matches.first[keys.rows]]])).combine_chunks()
        for name in plan.group_by
    }
    if matches.window_start is not None:
        columns[WINDOW] = pa.array(matches.window_start[keys.rows])
    for measure in measures_of(plan):
        columns[measure.name] = _add_up(measure, stream, block, matches, entry_code, keys.codes, keys.count)
    return pa.table(columns)


def _add_up(
    measure: Measure, stream: Stream, block: Block, matches: Matches, entry_code: Array, match_code: Array, groups: int
) -> pa.Array:
    if measure.positions is None:
        return _exact_text(np.bincount(match_code, minlength=groups))
    table = np.zeros(int(matches.positions.max(initial=0)) + 1, np.bool_)
    table[[p for p in measure.positions if p < len(table)]] = True
    entries = np.flatnonzero(table[matches.positions])
    code = entry_code[entries]
    if measure.column is None:
        return _exact_text(np.bincount(code, minlength=groups))
    values = stream.vector(measure.column).take(block.row[matches.events[entries]])
    if values.valid is not None:
        code, values = code[values.valid], values.take(np.flatnonzero(values.valid))
    return _by_code(measure, values, code, groups)


def _by_code(measure: Measure, values: Vector, code: Array, groups: int) -> pa.Array:
    """One measure per code over values without NULL."""
    if measure.function == "count":
        return _exact_text(np.bincount(code, minlength=groups))
    if measure.function == "sum":
        if values.values.dtype == np.float64:
            return pa.array(_float_sums(values.values, code, groups))
        return _exact_text(_exact_sums(values.values, code, groups))
    order = np.argsort(code, kind="stable")
    present, starts = np.unique(code[order], return_index=True)
    best = np.minimum if measure.function == "min" else np.maximum
    extreme = np.zeros(groups, values.values.dtype)
    if len(present):
        extreme[present] = best.reduceat(values.values[order], starts)
    found = np.zeros(groups, np.bool_)
    found[present] = True
    return to_arrow(Vector(values.kind, extreme, found, values.dictionary))


def _exact_sums(values: Array, code: Array, groups: int) -> Array:
    most = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
    if most * max(len(values), 1) >= 2**62:
        values = values.astype(object)
    sums = np.zeros(groups, values.dtype)
    np.add.at(sums, code, values)
    return sums


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


def _exact_text(values: Array) -> pa.Array:
    return pa.array([str(int(value)) for value in values.tolist()], pa.string())


# ------------------------------------------------------------------------------------------------- merging


def merge_partials(plan: Plan, partials: Sequence[pa.Table]) -> pa.Table:
    """One row per group and window out of many partial tables."""
    if len(partials) == 1 and partials[0].num_rows <= 1:
        return partials[0]
    table = pa.concat_tables(partials, promote_options="permissive")
    names = [name for name in (WINDOW, *plan.group_by) if name in table.column_names]
    vectors = [from_arrow(table[name], kind_of(table[name].type)) for name in names]
    keys = encode_keys(vectors) if names else one_key(table.num_rows)
    columns: dict[str, Any] = {name: table[name].take(pa.array(keys.rows)).combine_chunks() for name in names}
    for measure in measures_of(plan):
        columns[measure.name] = _merge(measure, table[measure.name], keys.codes, keys.count)
    return pa.table(columns)


def _merge(measure: Measure, column: pa.ChunkedArray, code: Array, groups: int) -> pa.Array:
    if pa.types.is_string(column.type) and measure.function in ("matches", "count", "sum"):
        return _exact_text(_exact_sums(_integers(column).values, code, groups))
    values = from_arrow(column, kind_of(column.type))
    if values.kind is Kind.NULL:
        return pa.nulls(groups)
    if values.valid is not None:
        code, values = code[values.valid], values.take(np.flatnonzero(values.valid))
    return _by_code(measure, values, code, groups)


# ------------------------------------------------------------------------------------------------- results


def total_leaf(table: pa.Table, total: Total) -> Vector:
    """The value of an aggregate over matches, per row of a merged partial table."""
    if total.positions is None or total.function == "count":
        return _integers(table[_measure(total, "count").name])
    if total.function in ("min", "max"):
        column = table[_measure(total, total.function).name]
        return from_arrow(column, total.kind if total.kind is not Kind.NULL else kind_of(column.type))
    count = _integers(table[_measure(total, "count").name])
    some = np.array([c > 0 for c in count.values.tolist()], np.bool_)
    column = table[_measure(total, "sum").name]
    added = _integers(column) if pa.types.is_string(column.type) else from_arrow(column, Kind.FLOAT)
    if total.function == "sum":
        return Vector(total.kind, added.values, some if added.valid is None else some & added.valid)
    pairs = zip(added.values.tolist(), count.values.tolist(), strict=True)
    means = np.array([value / n if n else 0.0 for value, n in pairs], np.float64)
    return Vector(Kind.FLOAT, means, some & ~np.isnan(means))


def _integers(column: pa.ChunkedArray) -> Vector:
    values = np.empty(len(column), dtype=object)
    values[:] = [int(text) for text in column.to_pylist()]
    return Vector(Kind.INT, narrow(values, None))
