"""The matches that one row of collapsed trends stands for, one batch after another, as long as the caller asks.

The row's events are all that its matches can use. So the kernel that found the row is shown these events alone, each
where the row binds it, and asked for the matches that the row stands for (`Kernel.unfold`), in bounded memory.
A NOT and EXISTS look at events that no row holds: such a query needs the stream as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import DataError, OptionError
from trendloom.frontend.tql.tree import Query
from trendloom.io.events import Events, prepare, ticks
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.contract import Kernel
from trendloom.kernels.matching.matches import Matches
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.model.selection import Trends
from trendloom.model.window import Window
from trendloom.optimizer.count_in_pattern import count_in_pattern
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.options import Options
from trendloom.planner.plan import Physical, choose, plan_physically
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.reading import load, queries_of
from trendloom.runtime.result_builder import Arranged, row_batches
from trendloom.runtime.row_events import RowEvents, read_row

Array = np.ndarray[Any, Any]


def expand(text: str, row: object, source: object | None, options: Options) -> Iterator[pa.RecordBatch]:
    """Check the row; then its matches, as RETURN TRENDS gives them, are found as they are read."""
    query = _collapsed_query(queries_of(text, options.query))
    given = read_row(row)
    options = options.for_queries((query,))
    if source is None:
        events = prepare(given.bare, **options.columns())
        plan = bind(replace(query, returns=Trends.ALL), events.schema)
        given = given.numbered(plan.kleene)
        events = prepare(given.stream(), **options.columns())
    else:
        events = load(source, options)
        plan = bind(replace(query, returns=Trends.ALL), events.schema)
        given = given.numbered(plan.kleene).found_in(events.table)
    physical = plan_physically(plan, without=(count_in_pattern, split_by_equality))
    return _RowOfStream(physical, events, given, from_source=source is not None).batches()


def _collapsed_query(queries: tuple[Query, ...]) -> Query:
    if len(queries) > 1:
        names = ", ".join(str(query.name) for query in queries)
        raise OptionError("a row belongs to one query", hint=f"choose with query=: {names}")
    if queries[0].returns is not Trends.COLLAPSED:
        raise OptionError("only rows of RETURN COLLAPSED TRENDS stand for matches that can be expanded")
    return queries[0]


class _RowOfStream:
    """A row, and the stream that holds its events."""

    def __init__(self, physical: Physical, events: Events, given: RowEvents, *, from_source: bool) -> None:
        self.physical, self.given = physical, given
        self.detection = physical.detection
        self.stream = _stream_of(physical.plan, events)
        if (len(self.detection.scopes) > 1 or self.detection.hidden) and not from_source:
            looking = "EXISTS needs events that are" if self.detection.hidden else "a NOT looks at events that are"
            raise OptionError(
                f"{looking} in no match, so in no row",
                hint="give the stream too: expand(text, row, events)",
            )
        unknown = set(given.variables) - {place.variable for place in self.detection.places if place.scope == 0}
        if unknown:
            raise OptionError(f"the query has no variable '{min(unknown)}', which the row binds")
        whole, self.keys = build_block(physical, self.stream)
        self.block = self._of_row(whole)
        kernel = self._kernel_of_rows()
        (self.column,) = kernel.columns
        found = kernel.unfold(self.block, frozenset(given.variables), self._is_row)
        if found is None:
            raise DataError(
                "these events are no row of the query", hint="a row must be as the query gave it, with all its events"
            )
        self.found: Iterator[Matches] = found

    def batches(self) -> Iterator[pa.RecordBatch]:
        shown = Arranged(self.physical, self.stream, self.block, self.keys)
        for found in self.found:
            matches = found if self.start is None else replace(found, window_start=np.full(len(found), self.start))
            yield from (batch for batch, _ in row_batches(shown, matches))

    @cached_property
    def start(self) -> int | None:
        """Where the row's window starts."""
        plan = self.physical.plan
        if not plan.window.sliding:
            return None
        start = self.given.window_start(self.stream.table.schema.field(plan.schema.time).type)
        return int(ticks(start, plan.schema.axis)[0])

    def _kernel_of_rows(self) -> Kernel[Any, Any]:
        """What finds such rows. All events lie in the row's window, so that it bounds nothing any more."""
        plan = replace(self.physical.plan, output=Trends.COLLAPSED)
        return choose(plan if self.start is None else replace(plan, window=Window())).kernel

    def _of_row(self, block: Block) -> Block:
        """The events of the row's partition and window; only the row's own fit positions that it shows."""
        row = np.zeros(len(self.stream.table), np.bool_)
        row[self.given.rows] = True
        mine = np.flatnonzero(row[block.row])
        kept = block.key == (block.key[mine[0]] if len(mine) else -1)
        if self.start is not None:
            assert self.physical.plan.window.within is not None
            kept &= (block.time >= self.start) & (block.time < self.start + self.physical.plan.window.within)
        places = self.detection.places
        words = [np.zeros(len(block), np.uint64) for _ in range(0, len(places), WORD)]
        for position, place in enumerate(places):
            fits = block.members[position]
            if place.scope == 0 and position not in self.detection.hidden:
                allowed = np.zeros(len(self.stream.table), np.bool_)
                allowed[self.given.rows[self.given.names == place.variable]] = True
                fits = fits[allowed[block.row[fits]]]
            words[position // WORD][fits] |= np.uint64(1 << position % WORD)
        return replace(block, fits=tuple(words), bits=tuple(range(len(places)))).only(kept)

    def _is_row(self, one: Matches) -> bool:
        """Whether a collapsed trend has the row's events, and stands for as many matches."""
        variables = [self.detection.places[position].variable for position in one.positions]
        found = sorted(zip(self.block.row[one.events].tolist(), variables, strict=True))
        asked = sorted(zip(self.given.rows.tolist(), self.given.variables, strict=True))
        return found == asked and self.given.matches in (None, int(one.columns[self.column][0]))


def _stream_of(plan: Plan, events: Events) -> Stream:
    assert events.ticks is not None
    kinds = {column.name: column.kind for column in plan.schema.columns}
    return Stream(events.table.select(list(plan.schema.names)), kinds, events.ticks, {plan.schema.type: events.types})
