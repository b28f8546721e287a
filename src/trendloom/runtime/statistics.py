"""Statistics of events in memory: of all where they are few, else of a sample that is the same in every run.

The sample is made of stretches of neighbouring rows that lie evenly over the stream, because what comes next to what is
part of the question. The times that events span are taken from all of them.
Cost: O(sample · log sample) for each column that the query reads, and one pass over the times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.vectors import Vector, is_true
from trendloom.io.events import Events, ticks
from trendloom.io.parquet import ParquetFiles
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import tests_hold
from trendloom.kernels.columns.keys import encode_keys
from trendloom.logical.display import show_component, show_expression
from trendloom.logical.plan import Attributes, Plan, Projection
from trendloom.logical.statistics import KeySpread, Origin, Statistics, StatisticsOf
from trendloom.model.schema import Kind, Schema
from trendloom.optimizer import optimize
from trendloom.optimizer.count_in_pattern import count_in_pattern
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.optimizer.prune_scan import scan_needed_columns
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.pattern.algebra import Atom, Negation, Pattern, parts
from trendloom.planner.adjacency import neighbours_of
from trendloom.planner.plan import choose
from trendloom.runtime.blocks import Stream, build_block, key_codes

MOST_EVENTS = 1 << 17
STRETCHES = 64
MOST_KEYS = 1 << 14
"""Events whose keys are sampled for all queries of a workload."""


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
    stream = stream_of(search.plan, events, plan.group_by, rows)
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
    """An optimized plan without output, with the columns that conditions and keys read."""
    return scan_needed_columns(_without_output(plan))


def _without_output(plan: Plan) -> Plan:
    return replace(plan, output=Projection(()), group_by=(), ranking=None, hidden=frozenset(), confidence=None)


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
    codes = _codes((column,), some, kinds)
    return spread_of(codes[of_type(types, kind)], round(totals.get(kind, 0.0))).distinct


def by_type(types: Vector) -> Iterator[tuple[str, int]]:
    """How many events there are of each type."""
    if types.dictionary is None:
        return
    values = types.values if types.valid is None else types.values[types.valid]
    counts = np.bincount(values, minlength=len(types.dictionary))
    yield from ((str(name), int(count)) for name, count in zip(types.dictionary, counts, strict=True) if count)


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


# --------------------------------------------------------------------------- of all queries of a workload, quickly
#
# Types, times, and keys of a sample. Cost: one pass over the types and the times; for each set of partition attributes
# the keys of a sample.


def spread_in(table: pa.Table, attributes: Attributes, kinds: Mapping[str, Kind]) -> KeySpread:
    """How the rows of a table spread over the values of some columns, by a sample of them."""
    rows = sampled_rows(len(table), MOST_KEYS)
    return spread_of(_codes(attributes, table.select(list(attributes)).take(rows), kinds), len(table))


def _codes(attributes: Attributes, table: pa.Table, kinds: Mapping[str, Kind]) -> Array:
    """The codes of the rows of a table by some columns."""
    return key_codes(attributes, Stream(table, kinds, np.zeros(len(table), np.int64))).codes


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


# ----------------------------------------------------------------- of Parquet files, by the footers of row groups
#
# The number of events is always known; times and types only where every row group has statistics.
# Cost: O(row groups · columns), and nothing is read that opening the files has not read.


def statistics_of_footers(files: ParquetFiles, schema: Schema) -> Statistics:
    """Statistics of a stream as far as footers have them."""
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
    except pa.ArrowException:  # text, or not whole microseconds: reading the rows gives the better error
        return None
    return first, last


def _types(files: ParquetFiles, name: str) -> dict[str, float]:
    """Events of each type, where all events of a row group are of one; {}: they are not, or it is not known."""
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


# -------------------------------------------------------------- events that pass the conditions of a position alone
#
# The first explanation of a result without matches. Cost: one vectorised pass per condition. No event is sorted, and
# nothing is matched.


@dataclass(frozen=True)
class Passed:
    """One position: events of its type, how many pass each condition alone, and how many pass all of them.

    `negated`: the NOT around it, 0 for a position of the pattern itself.
    """

    atom: Atom
    negated: int
    of_type: int
    alone: tuple[tuple[str, int], ...]
    passing: int

    @property
    def component(self) -> str:
        return show_component(self.atom.type, self.atom.variable)


def matching_alone(plan: Plan) -> Plan:
    """The plan of a query without output, optimized, with the columns that conditions read.

    Positions and partitions are those of the query as it was written.
    """
    return optimize(_without_output(plan), without=(count_in_pattern, split_by_equality))


def stream_of(plan: Plan, events: Events, more: tuple[str, ...] = (), rows: Array | None = None) -> Stream:
    """Some rows (None: all) of the events, with the columns that matching reads, and `more`.

    Where times are imprecise they are left out.
    """
    kinds = {column.name: column.kind for column in plan.schema.columns}
    table, types = events.table.select(list(dict.fromkeys([*plan.scan.columns, *more]))), events.types
    ticks = np.zeros(len(types), np.int64) if events.ticks is None else events.ticks
    if rows is not None:
        table, types, ticks = table.take(pa.array(rows)), types.take(rows), ticks[rows]
    return Stream(table, kinds, ticks, {plan.schema.type: types})


def passed_events(plan: Plan, stream: Stream) -> Iterator[Passed]:
    """Every position of an optimized plan, in the order of the pattern."""
    keyed = np.ones(len(stream.ticks), np.bool_)
    for name in plan.partition:
        valid = stream.vector(name).valid
        keyed &= True if valid is None else valid
    types = stream.vector(plan.schema.type)
    for atom, scope in atoms_of(plan.pattern):
        mine = keyed & of_type(types, atom.type)
        passing, alone = mine, []
        for expr in (expr for position, expr in plan.filters if position == atom.position):
            good = mine & is_true(evaluate(expr, stream.leaf))
            alone.append((show_expression(expr, plan.schema.axis), int(good.sum())))
            passing = passing & good
        yield Passed(atom, scope, int(mine.sum()), tuple(alone), int(passing.sum()))


def atoms_of(pattern: Pattern, scope: int = 0) -> Iterator[tuple[Atom, int]]:
    """The atoms from left to right, each with the NOT around it."""
    if isinstance(pattern, Atom):
        yield pattern, scope
    for part in parts(pattern):
        yield from atoms_of(part, part.scope if isinstance(part, Negation) else scope)


def of_type(types: Vector, name: str) -> Array:
    """Which events are of a type."""
    if types.dictionary is None or not len(types.dictionary):
        return np.zeros(len(types.values), np.bool_)
    found: Array = (types.dictionary == name)[types.values]
    return found if types.valid is None else found & types.valid


def describe_passed(plan: Plan, events: Events) -> str:
    """For one line: how many events of each position pass the conditions on them alone."""
    plan = matching_alone(plan)
    passed = passed_events(plan, stream_of(plan, events))
    return in_one_line(plan, {one.atom.position: (one.passing, one.of_type) for one in passed})


def describe_passed_later(plan: Plan, events: Events) -> Callable[[], str] | None:
    """A function that computes the same; None where times are imprecise."""
    return None if plan.schema.imprecise else partial(describe_passed, plan, events)


def in_one_line(plan: Plan, found: dict[int, tuple[int, int]]) -> str:
    """For every position of the pattern how many events pass, of how many."""
    shown = []
    for atom, negated in atoms_of(plan.pattern):
        if not negated:
            passing, of_type = found.get(atom.position, (0, 0))
            shown.append(f"{passing:,} of {of_type:,} {show_component(atom.type, atom.variable)}")
    return ", ".join(dict.fromkeys(shown))
