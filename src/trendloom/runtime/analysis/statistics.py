"""Statistics of events at hand: of all where they are few, else of a sample that is the same in every run.

The sample is made of stretches of neighbouring rows that lie evenly over the stream, because what comes next to what is
part of the question. The times that events span are taken from all of them.
Cost: O(sample · log sample) for each column that the query reads, and one pass over the times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.io.events import Events, ticks
from trendloom.io.parquet import ParquetFiles
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import tests_hold
from trendloom.kernels.columns.keys import encode_keys
from trendloom.logical.plan import Attributes, Plan, Projection
from trendloom.logical.statistics import KeySpread, Origin, Statistics, StatisticsOf
from trendloom.model.schema import Kind, Schema
from trendloom.optimizer import optimize
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.optimizer.prune_scan import scan_needed_columns
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.planner.adjacency import neighbours_of
from trendloom.planner.plan import choose
from trendloom.runtime.analysis.position_counts import of_type
from trendloom.runtime.blocks import Stream, build_block, key_codes

MOST_EVENTS = 1 << 17
STRETCHES = 64


def statistics_of_events(plan: Plan, events: Events, most: int = MOST_EVENTS) -> Statistics:
    """Statistics for a bound query over its stream, of at most so many events."""
    rows, total = sampled_rows(len(events.types), most), len(events.types)
    scale = total / max(len(rows), 1)
    whole = len(rows) == total
    origin = Origin.EVENTS if whole else Origin.SAMPLE
    types = {name: count * scale for name, count in by_type(events.types.take(rows))}
    if events.ticks is None:
        return Statistics(origin, total, types)
    search = choose(_matching(optimize(plan)))
    stream = _stream(search.plan, plan, events, rows)
    block, _ = build_block(search, stream)
    first, last = (int(events.ticks.min()), int(events.ticks.max())) if total else (None, None)
    return Statistics(
        origin,
        total,
        types,
        first,
        last,
        keys={
            names: spread_of(key_codes(names, stream).codes, total)
            for names in {search.plan.keys, plan.partition, plan.group_by}
            if names
        },
        values={name: spread_of(codes, total).distinct for name, codes in _columns(search.plan, stream)},
        domains={
            (kind, column): domain_of(kind, column, stream.table, events.types.take(rows), types, stream.kinds)
            for kind, column in compared_values(plan)
        },
        relevant=len(block) * scale,
        fitting={position: len(members) * scale for position, members in enumerate(block.members)},
        passing=dict(_passing(block, neighbours_of(search.pattern_spec).conditions)),
    )


def _matching(plan: Plan) -> Plan:
    """An optimized plan without what is made of its matches, with the columns that conditions and keys read."""
    bare = replace(plan, output=Projection(()), group_by=(), ranking=None, hidden=frozenset(), confidence=None)
    return scan_needed_columns(bare)


def sampled_rows(total: int, most: int) -> Array:
    """All rows, or stretches of them, evenly spread: `most` in all."""
    if total <= most:
        return np.arange(total)
    stretches = min(STRETCHES, most)
    length = most // stretches
    begins = np.linspace(0, total - length, stretches).astype(np.int64)
    return (begins[:, None] + np.arange(length)).reshape(-1)  # none overlap: they begin at least a length apart


def distinct_in_all(counts: Array, total: int) -> float:
    """How many distinct values a stream has of which a sample has these counts (Chao's estimator).

    d + f1·(f1-1) / 2(f2+1), where f1 values were seen once and f2 twice: a lower bound in expectation, and close to
    the number where values are about equally frequent.
    """
    seen = counts[counts > 0]
    if seen.sum() >= total:
        return float(len(seen))
    once, twice = int((seen == 1).sum()), int((seen == 2).sum())
    return min(len(seen) + once * (once - 1) / (2 * (twice + 1)), float(total))


def spread_of(codes: Array, total: int) -> KeySpread:
    """How events spread over keys, of which a sample has these codes."""
    counts = np.bincount(codes[codes >= 0])
    if not counts.sum():
        return KeySpread(0.0)
    known = (codes >= 0).sum() / len(codes)
    return KeySpread(distinct_in_all(counts, round(total * known)), float(counts.max() / counts.sum()))


def domain_of(
    kind: str, column: str, some: pa.Table, types: Vector, totals: Mapping[str, float], kinds: Mapping[str, Kind]
) -> float:
    """How many values a column has in the events of a type, by some rows; `totals`: events of each type in all."""
    codes = key_codes((column,), Stream(some, kinds, np.zeros(len(some), np.int64))).codes
    return spread_of(codes[of_type(types, kind)], round(totals.get(kind, 0.0))).distinct


def by_type(types: Vector) -> Iterator[tuple[str, int]]:
    """How many events there are of each type."""
    if types.dictionary is None:
        return
    values = types.values if types.valid is None else types.values[types.valid]
    counts = np.bincount(values, minlength=len(types.dictionary))
    yield from ((str(name), int(count)) for name, count in zip(types.dictionary, counts, strict=True) if count)


def _stream(search: Plan, plan: Plan, events: Events, rows: Array) -> Stream:
    """The sample, with the columns that matching and grouping read."""
    assert events.ticks is not None
    kinds = {column.name: column.kind for column in plan.schema.columns}
    names = [*search.scan.columns, *(name for name in plan.group_by if name not in search.scan.columns)]
    table = events.table.select(names).take(pa.array(rows))
    return Stream(table, kinds, events.ticks[rows], {plan.schema.type: events.types.take(rows)})


def _columns(plan: Plan, stream: Stream) -> Iterator[tuple[str, Array]]:
    """The columns that are compared, as codes."""
    for name in plan.scan.columns:
        if name not in (plan.schema.time, plan.schema.type) and stream.kinds[name] not in (Kind.OTHER, Kind.NULL):
            yield name, encode_keys([stream.vector(name)]).codes


def _passing(
    block: Block, conditions: dict[tuple[int, int], tuple[Any, ...]]
) -> Iterator[tuple[tuple[int, int], float]]:
    """The share of successive candidates that pass the conditions between them, where there are any."""
    for (first, second), tests in conditions.items():
        earlier, candidates = block.members[first], block.members[second]
        at = np.searchsorted(candidates, block.tie_end[earlier])
        there = at < len(candidates)
        earlier, later = earlier[there], candidates[at[there]]
        same = block.key[earlier] == block.key[later]
        if same.any():
            yield (first, second), float(tests_hold(tests, block, earlier[same], later[same]).mean())


# What is quickly known of events at hand, for all queries of a workload: types, times, and keys of a sample.
#
# Cost: one pass over the types and the times; for each set of partition attributes the keys of a sample.


MOST_KEYS = 1 << 14
"""Events of which keys are looked at."""


def spread_in(table: pa.Table, attributes: Attributes, kinds: Mapping[str, Kind]) -> KeySpread:
    """How the rows of a table spread over the values of some columns, of which a sample is looked at."""
    rows = sampled_rows(len(table), MOST_KEYS)
    some = table.select(list(attributes)).take(rows)
    return spread_of(key_codes(attributes, Stream(some, kinds, np.zeros(len(rows), np.int64))).codes, len(table))


def statistics_of_stream(events: Events) -> StatisticsOf:
    """The statistics of any bound query over these events, as far as it takes no time worth mentioning."""
    total = len(events.types)
    kinds = {column.name: column.kind for column in events.schema.columns}

    @cache
    def types() -> dict[str, float]:
        return {name: float(count) for name, count in by_type(events.types)}

    @cache
    def bounds() -> tuple[int, int] | tuple[None, None]:
        if events.ticks is None or not total:
            return None, None
        return int(events.ticks.min()), int(events.ticks.max())

    @cache
    def domain(kind: str, column: str) -> float:
        rows = sampled_rows(total, MOST_KEYS)
        return domain_of(
            kind, column, events.table.select([column]).take(rows), events.types.take(rows), types(), kinds
        )

    @cache
    def spread(attributes: Attributes) -> KeySpread:
        return spread_in(events.table, attributes, kinds)

    def known(plan: Plan) -> Statistics:
        plan = split_by_equality(plan)
        attributes = plan.keys
        keys = {attributes: spread(attributes)} if attributes else {}
        first, last = bounds()
        domains = {(kind, column): domain(kind, column) for kind, column in compared_values(plan)}
        return Statistics(Origin.EVENTS, total, types(), first, last, keys, domains=domains)

    return known


# Statistics of Parquet files without reading a row: what the footers say of row groups.
#
# How many events there are is always known; times and types only where every row group tells.
# Cost: O(row groups · columns), and nothing is read that opening the files has not read.


def statistics_of_footers(files: ParquetFiles, schema: Schema) -> Statistics:
    """What the footers tell of a stream."""
    bounds = _times(files, schema)
    return Statistics(
        Origin.FOOTERS,
        files.rows,
        _types(files, schema.type),
        first=None if bounds is None else bounds[0],
        last=None if bounds is None else bounds[1],
    )


def _groups(files: ParquetFiles, name: str) -> Iterator[tuple[int, Any]]:
    """For every row group with rows how many it has, and the statistics of a column in it (None: there are none)."""
    for footer in files.footers:
        for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
            if group.num_rows:
                leaves = {group.column(at).path_in_schema: at for at in range(group.num_columns)}
                yield group.num_rows, group.column(leaves[name]).statistics if name in leaves else None


def _times(files: ParquetFiles, schema: Schema) -> tuple[int, int] | None:
    found = [statistics for _, statistics in _groups(files, schema.time)]
    if not found or schema.imprecise or any(one is None or not one.has_min_max for one in found):
        return None
    ends = [min(one.min for one in found), max(one.max for one in found)]
    try:
        times = pa.chunked_array([pa.array(ends, files.columns.field(schema.time).type)])
        first, last = ticks(times, schema.axis).tolist()
    except pa.ArrowException:  # text, or not whole microseconds: whoever reads the rows says so better
        return None
    return first, last


def _types(files: ParquetFiles, name: str) -> dict[str, float]:
    """Events of each type, where all events of a row group are of one; {}: they are not, or nobody tells."""
    counts: dict[str, float] = {}
    if name in files.keys:
        for footer, key in zip(files.footers, files.keys[name], strict=True):
            counts[str(key)] = counts.get(str(key), 0.0) + footer.num_rows
        return counts
    for rows, one in _groups(files, name):
        if one is None or not one.has_min_max or one.min != one.max or not one.has_null_count or one.null_count:
            return {}
        counts[str(one.min)] = counts.get(str(one.min), 0.0) + rows
    return counts
