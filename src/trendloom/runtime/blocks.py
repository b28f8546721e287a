"""From a table of events to a block: encode keys, find which positions each event fits, sort by key and time.

One pass over each column that the query needs. Events that fit no position are dropped before sorting, unless the
semantics is contiguous, where they stand in the way. Events of equal key and time are put in order by the columns that
the stream names for that, if it does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import DataError
from trendloom.expr.arrays import Array, in_slices, slices_of, taken
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, of_any_event, walk
from trendloom.expr.vectors import Vector, from_arrow, from_list, is_true
from trendloom.io.events import ticks, without_nan
from trendloom.io.intervals import intervals_of
from trendloom.kernels.columns.block import WORD, Block, Standing, with_intervals
from trendloom.kernels.columns.keys import Keys, code_short_texts, encode_keys, one_key
from trendloom.kernels.columns.sort import distribute, order_ties, sorted_times, value_ranks
from trendloom.logical.plan import Attributes, Plan
from trendloom.model.imprecision import Intervals
from trendloom.model.schema import Kind, Schema
from trendloom.planner.plan import EventFilter, Physical
from trendloom.planner.workload import QueryGroup
from trendloom.runtime.warnings import Tied, ties_of

Picked = tuple[Array | None, Array, Array]
"""Rows sorted by key and time (None: all, as they are), their times, and how many each key has."""


@dataclass(frozen=True, eq=False)
class Shared:
    """What several queries over one stream have in common, each made once: columns, keys, and events sorted by them.

    `masks`: which events pass the conditions of a filter, in the order in which the query sees them.
    `often`: partition attributes that more than one query has. For these all events and the columns that queries look
    at are sorted once, and a query picks its own out of them in order; for others a query sorts only the events that it
    needs.
    """

    often: frozenset[Attributes] = frozenset()
    vectors: dict[str, Vector] = field(default_factory=dict)
    keys: dict[Attributes, Keys] = field(default_factory=dict)
    masks: dict[Hashable, Array] = field(default_factory=dict)
    sorted: dict[Attributes, SortedEvents] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Stream:
    """The events of one task: the table, and its columns as vectors, converted when first read.

    `tied` receives how many events of the query have equal times, when they are sorted. `threads`: how many may share
    the work of sorting them. `intervals`: where times are imprecise; `ticks` are then the earliest times.
    """

    table: pa.Table
    kinds: Mapping[str, Kind]
    ticks: Array
    vectors: dict[str, Vector] = field(default_factory=dict)
    tied: Tied | None = None
    shared: Shared = field(default_factory=Shared)
    threads: int = 1
    intervals: Intervals | None = None

    def vector(self, name: str) -> Vector:
        if name not in self.vectors:
            self.vectors[name] = from_arrow(self.table[name], self.kinds[name], self.threads, code_short_texts)
        return self.vectors[name]

    @cached_property
    def whole_columns(self) -> list[pa.Array]:
        """The columns of the table in one piece each, from which single rows are taken faster."""
        joined = (column.combine_chunks() for column in self.table.columns)
        return [one if isinstance(one, pa.Array) else pa.concat_arrays(one.chunks) for one in joined]

    def content_ranks(self, rows: Array) -> Array:
        """Numbers that order some events by all that they hold; equal events have equal numbers."""
        different, of = np.unique(rows, return_inverse=True)
        return value_ranks(list(self._contents(different)))[of.reshape(-1)]

    def _contents(self, rows: Array) -> Iterator[Vector]:
        """All that some events hold, column by column, in a form that can be sorted."""
        for name in self.table.column_names:
            if self.kinds[name] is Kind.OTHER:
                texts = [repr(value) for value in self.table[name].take(pa.array(rows)).to_pylist()]
                yield from_list(texts, Kind.STRING)
            else:
                yield self.vector(name).take(rows)

    def leaf(self, expr: Expr) -> Vector:
        """A column of the table, whatever event of a match it is read from."""
        assert isinstance(expr, Attribute)
        return self.vector(expr.column)


@dataclass(frozen=True, eq=False)
class SortedEvents:
    """All events of a stream that have a key, sorted: their rows (None: as they are), times, how many each key has.

    `order`: the attributes that make the keys.
    Columns are sorted when they are first read.
    """

    stream: Stream
    order: Attributes
    rows: Array | None
    times: Array
    sizes: Array
    vectors: dict[str, Vector] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        return self.stream.threads

    @property
    def shared(self) -> Shared:
        return self.stream.shared

    def vector(self, name: str) -> Vector:
        if name not in self.vectors:
            self.vectors[name] = _taken_vector(self.stream.vector(name), self.rows, self.threads)
        return self.vectors[name]

    def leaf(self, expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return self.vector(expr.column)


def stream_of_table(plan: Plan, table: pa.Table, tied: Tied | None = None) -> Stream:
    """The events of a table, which may have more columns than the stream's own: those hold integers."""
    table = without_nan(table)
    kinds = dict.fromkeys(table.column_names, Kind.INT) | {one.name: one.kind for one in plan.schema.columns}
    if plan.schema.imprecise:
        intervals = intervals_of(table, plan.schema, numbered=False)
        return Stream(table, kinds, intervals.low, intervals=intervals)
    times = table[plan.schema.time]
    if times.null_count:
        raise DataError(
            f"{times.null_count} of {len(times)} events in a task have no time", hint="remove them, or give them a time"
        )
    return Stream(table, kinds, ticks(times, plan.schema.axis), tied=tied)


def build_block(group: QueryGroup | Physical, stream: Stream, keys: Keys | None = None) -> tuple[Block, Keys]:
    """The sorted block of a stream and the codes of its keys (key k of the block has code k).

    `keys`: the codes of the rows, where others have numbered them.
    """
    plan, bits = group.plan, dict[EventFilter, int]()
    which = tuple(bits.setdefault(one, len(bits)) for one in group.filters)
    often = keys is None and plan.keys in stream.shared.often
    keys = key_codes(plan.keys, stream) if keys is None else keys
    source = _all_sorted(plan.keys, stream, keys) if often else stream
    fits = _fits(list(bits), source, plan.schema.type)
    some = None if group.reads_all else _fitting(fits, stream.threads)
    if isinstance(source, SortedEvents):
        places, (rows, ticks, sizes) = _picked(source, some)
    else:
        rows, ticks, sizes = _sorted(stream, keys, some)
        places = rows
    found, instants = _ordered(plan, stream, keys.codes, ticks, rows)
    if found is not rows:  # columns are taken from the stream, whose rows are known
        source, rows, places = stream, found, found
        fits = _fits(list(bits), stream, plan.schema.type)
    block = Block(
        key_starts=np.r_[0, np.cumsum(sizes)].astype(np.int64),
        time=ticks,
        row=np.arange(len(stream.ticks)) if rows is None else rows,
        columns={name: _taken_vector(source.vector(name), places, stream.threads) for name in group.columns},
        fits=tuple(_taken(words, places, stream.threads) for words in fits),
        bits=which,
        instants=instants,
        standing=None if plan.ranking is None else standing_of(plan, stream),
    )
    if plan.schema.imprecision is not None:
        assert stream.intervals is not None
        return with_intervals(block, stream.intervals, plan.schema.imprecision.grain), keys
    if stream.tied is not None:
        stream.tied(ties_of(block))
    return block, keys


def _sorted(stream: Stream, keys: Keys, some: Array | None) -> Picked:
    """Some of the rows (None: all) that have a key."""
    if keys.count:
        found = distribute(keys.codes, stream.ticks, some, keys.count, stream.threads)
        if found is not None:
            return found.rows, found.times, found.sizes
    kept = keys.codes >= 0 if keys.valid is not None else None
    if some is not None:
        kept = some if kept is None else kept & some
    rows = None if kept is None or kept.all() else np.flatnonzero(kept)
    codes, times = _taken(keys.codes, rows), _taken(stream.ticks, rows)
    order, times = sorted_times(codes, times, max(keys.count, 1))
    sizes = np.bincount(codes, minlength=keys.count) if keys.count else np.zeros(0, np.int64)
    return order if rows is None else _taken(rows, order), times, sizes


def _all_sorted(partition: Attributes, stream: Stream, keys: Keys) -> SortedEvents:
    """All events by these attributes, sorted once for all queries."""
    known = stream.shared.sorted
    if partition not in known:
        known[partition] = SortedEvents(stream, partition, *_sorted(stream, keys, None))
    return replace(known[partition], stream=stream)  # another query reads other columns


def _picked(events: SortedEvents, some: Array | None) -> tuple[Array | None, Picked]:
    """Some of the sorted events (None: all): where they are among these, and what `_sorted` would give for them."""
    if some is None or some.all():
        return None, (events.rows, events.times, events.sizes)
    places = np.flatnonzero(some)
    rows = places if events.rows is None else taken(events.rows, places, events.threads)
    sizes = np.diff(np.searchsorted(places, np.r_[0, np.cumsum(events.sizes)]))
    return places, (rows, taken(events.times, places, events.threads), sizes)


def _ordered(
    plan: Plan, stream: Stream, codes: Array, time: Array, rows: Array | None
) -> tuple[Array | None, Array | None]:
    """The rows, events of equal key and time in order, and the instants; `time` is that of the rows as they are."""
    if not plan.schema.order:
        return rows, None
    all_rows = np.arange(len(stream.ticks)) if rows is None else rows
    found = order_ties(codes[all_rows], time, all_rows, [stream.vector(name) for name in plan.schema.order])
    return (rows, None) if found is None else found


def standing_of(plan: Plan, stream: Stream) -> Standing:
    """How events of all keys stand to each other; only those that are needed are compared."""

    def moments(rows: Array) -> Array:
        if not plan.schema.order:
            return stream.ticks[rows]
        columns = [Vector(Kind.INT, stream.ticks), *(stream.vector(name) for name in plan.schema.order)]
        return value_ranks([column.take(rows) for column in columns])

    return Standing(moments, stream.content_ranks)


def _taken(values: Array, rows: Array | None, threads: int = 1) -> Array:
    return values if rows is None else taken(values, rows, threads)


def _taken_vector(vector: Vector, rows: Array | None, threads: int) -> Vector:
    if rows is None:
        return vector
    valid = None if vector.valid is None else taken(vector.valid, rows, threads)
    return replace(vector, values=taken(vector.values, rows, threads), valid=valid)


def key_codes(partition: tuple[str, ...], stream: Stream) -> Keys:
    """The codes of the rows by the columns that partition them."""
    if not partition:
        return one_key(len(stream.table))
    known = stream.shared.keys
    if partition not in known:
        known[partition] = encode_keys([stream.vector(name) for name in partition], stream.threads)
    return known[partition]


def _fits(filters: list[EventFilter], stream: Stream | SortedEvents, type_column: str) -> list[Array]:
    """Per event a set of bits, one for each filter, in words."""
    words = [filters[at : at + WORD] for at in range(0, max(len(filters), 1), WORD)]
    types = stream.vector(type_column)
    return [_word_of_fits(some, stream, types) for some in words]


def _word_of_fits(tests_of: list[EventFilter], stream: Stream | SortedEvents, types: Vector) -> Array:
    word, shares = _word(len(tests_of)), bool(stream.shared.often)
    for part in (part for _, tests in tests_of for expr in tests for part in walk(expr)):
        if isinstance(part, Attribute):
            stream.vector(part.column)  # converted once, before threads read it

    def test(low: int, high: int) -> Array:
        def leaf(expr: Expr) -> Vector:
            return stream.leaf(expr).part(low, high)

        some = types.part(low, high)
        fits = _by_type({name: bit for bit, (name, tests) in enumerate(tests_of) if not tests}, some, word)
        for bit, (name, tests) in enumerate(tests_of):
            if bit in known:
                fits |= known[bit][low:high].astype(word) << word(bit)
            elif tests:
                fits |= _mask(name, tests, some, leaf).astype(word) << word(bit)
        return fits

    known = {bit: _shared_mask(one, stream, types) for bit, one in enumerate(tests_of) if one[1] and shares}
    return _tested(test, len(types), word, stream.threads)


def _shared_mask(event_filter: EventFilter, stream: Stream | SortedEvents, types: Vector) -> Array:
    """Which events pass a filter; that of several queries is tested once."""
    name, tests = event_filter
    order = stream.order if isinstance(stream, SortedEvents) else None
    key = (order, name, tuple(map(of_any_event, tests)))
    masks = stream.shared.masks
    if key not in masks:

        def test(low: int, high: int) -> Array:
            return _mask(name, tests, types.part(low, high), lambda expr: stream.leaf(expr).part(low, high))

        masks[key] = _tested(test, len(types), np.bool_, stream.threads)
    return masks[key]


def _fitting(fits: list[Array], threads: int) -> Array:
    """Which events fit a position."""

    def test(low: int, high: int) -> Array:
        found: Array = np.logical_or.reduce([words[low:high] != 0 for words in fits])
        return found

    return _tested(test, len(fits[0]), np.bool_, threads)


def _tested(test: Callable[[int, int], Array], rows: int, dtype: type[np.generic], threads: int) -> Array:
    """What a test finds for all rows, slice by slice."""
    if len(slices_of(rows, threads)) == 1:
        return test(0, rows)
    found = np.empty(rows, dtype)

    def fill(low: int, high: int) -> None:
        found[low:high] = test(low, high)

    in_slices(fill, rows, threads)
    return found


def _by_type(bits: dict[str, int], types: Vector, word: type[np.unsignedinteger[Any]]) -> Array:
    """The bits of tests of a type alone: one look-up per event."""
    if types.dictionary is None:
        return np.zeros(len(types), word)
    table = np.zeros(len(types.dictionary), word)
    for name, bit in bits.items():
        table |= (types.dictionary == name).astype(word) << word(bit)
    fits: Array = table[types.values]
    return fits if types.valid is None else np.where(types.valid, fits, word(0))


def _word(bits: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest integers with that many bits."""
    return next(word for word in (np.uint8, np.uint16, np.uint32, np.uint64) if bits <= np.iinfo(word).bits)


def _mask(name: str, tests: tuple[Expr, ...], types: Vector, leaf: Callable[[Expr], Vector]) -> Array:
    mask = _by_type({name: 0}, types, np.uint8).astype(np.bool_)
    for test in tests:
        mask = mask & is_true(evaluate(test, leaf))
    return mask


# ------------------------------------------------------------------------------------- times of live streams
#
# Where times are imprecise, the earliest that each event may have had.


def has_time(events: pa.Table, schema: Schema) -> Array:
    """Which events have a time, or all columns that bound it."""
    found: Array = np.logical_and.reduce([np.asarray(events[name].is_valid()) for name in schema.said_in])
    return found


def earliest_times(events: pa.Table, schema: Schema) -> Array:
    """The ticks of events that all have a time."""
    if schema.imprecise:
        return intervals_of(events, schema, numbered=False).low
    return ticks(events[schema.time], schema.axis)


def since_grain(tick: int, schema: Schema) -> int:
    """A watermark in whole grains: an event that begins no earlier is still no earlier when its time is floored."""
    grain = 1 if schema.imprecision is None else schema.imprecision.grain
    return tick // grain * grain


def at_grain(tick: int, schema: Schema) -> int:
    """The least watermark that is so many ticks even in whole grains."""
    grain = 1 if schema.imprecision is None else schema.imprecision.grain
    return -(-tick // grain) * grain
