"""Aggregates over matches, the two-step way: enumerate matches, then add up. What the one-step kernels are measured by.

Each chunk of matches becomes a partial table (`partials`). Where matches are only likely, expected values are added up,
as doubles. Integer sums are exact: where a chunk could leave 64 bits, Python integers take over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError, option
from trendloom.expr.decimals import as_doubles
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.widening import doubles_as_amounts
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys, encode_keys, one_key
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.measures import Measure
from trendloom.model.schema import Kind
from trendloom.planner.aggregation import measures_of
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream
from trendloom.runtime.partial_aggregates import WINDOW, amount_columns, by_code, exact_column

Array = np.ndarray[Any, Any]

SUMS = ("matches", "count", "sum")
"""Measures that are sums over matches."""


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
        if matches.chances is None:
            columns[measure.name] = _add_up(measure, stream, block, matches, entry_code, keys.codes, keys.count)
        else:
            columns |= _expect(measure, stream, block, matches, keys)
    return pa.table(columns)


def _expect(measure: Measure, stream: Stream, block: Block, matches: Matches, keys: Keys) -> dict[str, pa.Array]:
    """The expected value of a measure: each match counts as much as it is likely. Zero if it is not a sum."""
    assert matches.chances is not None
    if measure.function not in SUMS:
        return amount_columns(measure.name, doubles_as_amounts(np.zeros(keys.count)))
    match, weight = np.arange(len(matches)), matches.chances.confidence
    if measure.positions is not None:
        entries = np.flatnonzero(np.isin(matches.positions, measure.positions))
        match = matches.match[entries]
        weight = weight[match]
        if measure.column is not None:
            values = stream.vector(measure.column).take(block.row[matches.events[entries]])
            known = slice(None) if values.valid is None else values.valid
            numbers = as_doubles(values.values, values.scale) if measure.function == "sum" else np.ones(len(entries))
            match, weight = match[known], (weight * numbers)[known]
    sums = np.bincount(keys.codes[match], weights=weight, minlength=keys.count)
    return amount_columns(measure.name, doubles_as_amounts(sums))


def _add_up(
    measure: Measure, stream: Stream, block: Block, matches: Matches, entry_code: Array, match_code: Array, groups: int
) -> pa.Array:
    if measure.positions is None:
        return exact_column(np.bincount(match_code, minlength=groups))
    table = np.zeros(int(matches.positions.max(initial=0)) + 1, np.bool_)
    table[[p for p in measure.positions if p < len(table)]] = True
    entries = np.flatnonzero(table[matches.positions])
    code = entry_code[entries]
    if measure.column is None:
        return exact_column(np.bincount(code, minlength=groups))
    values = stream.vector(measure.column).take(block.row[matches.events[entries]])
    if values.valid is not None:
        code, values = code[values.valid], values.take(np.flatnonzero(values.valid))
    return by_code(measure, values, code, groups)


def check_limit(physical: Physical, matches: int) -> None:
    """Refuse to enumerate for ever."""
    if matches > physical.limits.trends:
        raise RunError(
            f"more than {physical.limits.trends:,} matches to enumerate for an aggregate ({physical.chosen.why})",
            hint="use a smaller WITHIN, more selective predicates, or predicates on adjacent events (NEXT); "
            f"{option('max_trends')} allows more",
        )
