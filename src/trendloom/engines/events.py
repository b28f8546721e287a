"""From a table of events to a block: encode keys, find which positions each event fits, sort by key and time.

One pass over each column that the query needs. Events that fit no position are dropped before sorting, unless the
semantics is contiguous, where they stand in the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, columns
from trendloom.expr.vectors import Vector, from_arrow, is_true
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys, encode_keys, one_key
from trendloom.kernels.columns.sort import sort_by_key_and_time
from trendloom.model.schema import Kind
from trendloom.physical.plan import Physical

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Stream:
    """The events of one task: the table, and its columns as vectors, converted when first asked for."""

    table: pa.Table
    kinds: Mapping[str, Kind]
    ticks: Array

    @cached_property
    def _vectors(self) -> dict[str, Vector]:
        return {}

    def vector(self, name: str) -> Vector:
        if name not in self._vectors:
            self._vectors[name] = from_arrow(self.table[name], self.kinds[name])
        return self._vectors[name]

    def leaf(self, expr: Expr) -> Vector:
        """A column of the table, whatever event of a match it is read from."""
        assert isinstance(expr, Attribute)
        return self.vector(expr.column)


def build_block(physical: Physical, stream: Stream) -> tuple[Block, Keys]:
    """The sorted block of a stream and the codes of its keys (key k of the block has code k)."""
    plan = physical.plan
    keys = _keys(physical, stream)
    fits = _fits(physical, stream)
    kept = keys.codes >= 0 if keys.valid is not None else None
    if plan.scan.types is not None:
        some = np.zeros(len(stream.ticks), np.bool_)
        for mask in {id(mask): mask for mask in fits}.values():
            some |= mask
        kept = some if kept is None else kept & some
    rows = None if kept is None or kept.all() else np.flatnonzero(kept)
    codes, ticks = _taken(keys.codes, rows), _taken(stream.ticks, rows)
    order = sort_by_key_and_time(codes, ticks, max(keys.count, 1))
    rows = order if rows is None else rows if order is None else rows[order]
    sizes = np.bincount(codes, minlength=keys.count) if keys.count else np.zeros(0, np.int64)
    sorted_fits: dict[int, Array] = {}
    for mask in fits:
        if id(mask) not in sorted_fits:
            sorted_fits[id(mask)] = np.flatnonzero(_taken(mask, rows))
    block = Block(
        key_starts=np.r_[0, np.cumsum(sizes)].astype(np.int64),
        time=_taken(stream.ticks, rows),
        row=np.arange(len(stream.ticks)) if rows is None else rows,
        columns={name: _taken_vector(stream.vector(name), rows) for name in _rule_columns(physical)},
        members=tuple(sorted_fits[id(mask)] for mask in fits),
    )
    return block, keys


def _taken(values: Array, rows: Array | None) -> Array:
    return values if rows is None else values[rows]


def _taken_vector(vector: Vector, rows: Array | None) -> Vector:
    return vector if rows is None else vector.take(rows)


def _keys(physical: Physical, stream: Stream) -> Keys:
    partition = physical.plan.partition
    if not partition:
        return one_key(len(stream.ticks))
    return encode_keys([stream.vector(name) for name in partition])


def _fits(physical: Physical, stream: Stream) -> list[Array]:
    """For every position which events fit it; positions with the same test share one array."""
    plan, found = physical.plan, []
    known: dict[tuple[str, tuple[Expr, ...]], Array] = {}
    for position, place in enumerate(physical.choice.detection.places):
        tests = tuple(expr for where, expr in plan.filters if where == position)
        key = (place.type, tests)
        if key not in known:
            known[key] = _mask(place.type, tests, stream, plan.schema.type)
        found.append(known[key])
    return found


def _mask(name: str, tests: tuple[Expr, ...], stream: Stream, type_column: str) -> Array:
    mask = _of_type(stream.vector(type_column), name)
    for test in tests:
        mask = mask & is_true(evaluate(test, stream.leaf))
    return mask


def _of_type(types: Vector, name: str) -> Array:
    if types.dictionary is None:
        return np.zeros(len(types), np.bool_)
    code = int(np.searchsorted(types.dictionary, name))
    if code == len(types.dictionary) or types.dictionary[code] != name:
        return np.zeros(len(types), np.bool_)
    mask = types.values == code
    return mask if types.valid is None else mask & types.valid


def _rule_columns(physical: Physical) -> list[str]:
    """The columns that kernels compare."""
    rules = [rule.expr for scope in physical.choice.detection.scopes for rule in scope.rules]
    return sorted(set().union(*(columns(expr) for expr in rules))) if rules else []


