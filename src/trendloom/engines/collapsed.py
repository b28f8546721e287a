"""Collapsed trends as rows: `matches`, exact integers of any size, and a place for events that have no order.

A union may hold many events that have no order. They are listed by their values, so that the order of the input does
not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.engines.events import Stream
from trendloom.errors import RunError, option
from trendloom.expr.vectors import Vector, from_list
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.ties import value_ranks
from trendloom.kernels.detection.matches import Matches
from trendloom.kernels.detection.spec import Place
from trendloom.model.numbers import exact_array, to_text
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]


def number_of_matches(numbers: Array, exact: pa.DataType) -> pa.Array:
    """Integers as a column of the type given; one that does not fit is refused."""
    if pa.types.is_string(exact):
        return pa.array([to_text(int(number)) for number in numbers], exact)
    if numbers.dtype == np.int64:
        return pa.array(numbers).cast(exact)
    if pa.types.is_decimal(exact) and max(numbers, default=0) >= 10**exact.precision:
        raise RunError(
            f"a row stands for more matches than DECIMAL({exact.precision},0) can hold",
            hint=f"use a smaller window or more selective predicates, {option('engine', 'local')}, where numbers are "
            f"as wide as they need, or COUNT(*) with {option('numeric', 'log')}",
        )
    return exact_array(numbers.tolist()).cast(exact)


def width_of(numbers: Array) -> pa.DataType:
    """The narrowest type that holds all of them."""
    most = [] if numbers.dtype == np.int64 else [max(numbers, default=0)]
    return exact_array(most).type


# ---------------------------------------------------------------------------------- events without an order


def by_content(matches: Matches, stream: Stream, block: Block, places: tuple[Place, ...]) -> Matches:
    """The same rows, events of one instant ordered by their values, then by variable. O(entries with such events)."""
    tie = block.tie_start[matches.events]
    tied = np.flatnonzero(block.tie_end[matches.events] - tie > 1)
    if not len(tied):
        return matches
    events, positions = matches.events[tied], matches.positions[tied]
    names = [place.variable for place in places]
    variable = np.array([sorted(set(names)).index(name) for name in names])[positions]
    order = np.lexsort((events, variable, _ranks(stream, block, events), tie[tied], matches.match[tied]))
    changed = replace(matches, events=matches.events.copy(), positions=matches.positions.copy())
    changed.events[tied], changed.positions[tied] = events[order], positions[order]
    return changed


def _ranks(stream: Stream, block: Block, events: Array) -> Array:
    """Numbers that order events by their values, column by column; equal events have equal numbers."""
    different, of = np.unique(events, return_inverse=True)
    ranks = value_ranks(list(_columns(stream, block.row[different])))
    return ranks[of.reshape(-1)]


def _columns(stream: Stream, rows: Array) -> Iterator[Vector]:
    for name in stream.table.column_names:
        if stream.kinds[name] is Kind.OTHER:
            texts = [repr(value) for value in stream.table[name].take(pa.array(rows)).to_pylist()]
            yield from_list(texts, Kind.STRING)
        else:
            yield stream.vector(name).take(rows)
