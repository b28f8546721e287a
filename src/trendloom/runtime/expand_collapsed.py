"""The matches that one row of collapsed trends stands for, batch by batch, as they are read.

The row's events are all that its matches can use. So the kernel that found the row receives these events alone, each
where the row binds it, and finds the matches that the row stands for (`Kernel.unfold`), in bounded memory. A NOT and
EXISTS depend on events that no row holds: such a query needs the stream as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import DataError, OptionError
from trendloom.expr.arrays import Array
from trendloom.expr.decimals import from_text
from trendloom.frontend.tree import Query
from trendloom.io.events import Events, prepare, ticks
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.matches import Matches
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.model.selection import Trends
from trendloom.model.time import Window
from trendloom.optimizer.count_in_pattern import count_in_pattern
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.options import Options
from trendloom.planner.plan import Physical, choose
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.match_rows import Arranged
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import for_queries, load, queries_of
from trendloom.runtime.result_builder import row_batches
from trendloom.runtime.result_columns import VAR

Content = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class RowEvents:
    """The events of one row of collapsed trends, as a caller gives it, and which of its entries are the same event.

    An entry is an event with a variable. An event may be bound to several Kleene variables; events outside them are
    bound once. Events with equal values are not distinguished, and need not be: what one of them can match the others
    can match too, so each Kleene variable has an entry for every one of them.

    `bare`: the events of the entries, without their variables. `rows`: of each entry the row in the stream.
    """

    row: pa.Table
    bare: pa.Table
    variables: list[str]
    copies: list[int]
    rows: Array

    @property
    def names(self) -> Array:
        return np.array(self.variables, object)

    @property
    def matches(self) -> int | None:
        """The number of matches that the row claims to stand for."""
        if "matches" not in self.row.column_names:
            return None
        number = self.row["matches"][0].as_py()
        return from_text(number) if isinstance(number, str) else int(number)

    def window_start(self, time: pa.DataType) -> pa.ChunkedArray:
        if "window_start" not in self.row.column_names:
            raise OptionError("the query has windows, but the row has no column 'window_start'")
        return self.row["window_start"].cast(time)

    def numbered(self, kleene: frozenset[str]) -> RowEvents:
        """Which of the events with equal values each entry is."""
        contents = _contents(self.bare)
        fixed = Counter(c for c, name in zip(contents, self.variables, strict=True) if name not in kleene)
        seen: Counter[tuple[Content, str | None]] = Counter()
        copies = []
        for content, name in zip(contents, self.variables, strict=True):
            key = (content, name if name in kleene else None)
            copies.append(seen[key] + (fixed[content] if name in kleene else 0))
            seen[key] += 1
        first: dict[tuple[Content, int], int] = {}
        rows = [first.setdefault(one, len(first)) for one in zip(contents, copies, strict=True)]
        return replace(self, copies=copies, rows=np.array(rows, np.int64))

    def stream(self) -> pa.Table:
        """The events, each once."""
        return self.bare.take(pa.array(np.unique(self.rows, return_index=True)[1]))

    def found_in(self, events: pa.Table) -> RowEvents:
        """The same events in the stream they come from."""
        missing = [name for name in self.bare.column_names if name not in events.column_names]
        if missing:
            raise DataError(f"the events have no column '{missing[0]}', which those of the row have")
        places: dict[Content, list[int]] = defaultdict(list)
        for at, content in enumerate(_contents(events.select(self.bare.column_names))):
            places[content].append(at)
        rows = []
        for content, copy in zip(_contents(self.bare), self.copies, strict=True):
            if copy >= len(places[content]):
                raise DataError("an event of the row is not in the stream", hint="give the events that the query read")
            rows.append(places[content][copy])
        return replace(self, rows=np.array(rows, np.int64))


def read_row(row: object) -> RowEvents:
    """A row as a dict of `Table.to_pylist()`, or as a table or batch of one row."""
    table = row
    if isinstance(row, dict):
        table = pa.Table.from_pylist([row])
    elif isinstance(row, pa.RecordBatch):
        table = pa.Table.from_batches([row])
    if not isinstance(table, pa.Table) or table.num_rows != 1 or "events" not in table.column_names:
        raise OptionError(
            "expand takes one row of collapsed trends, with its column 'events'",
            hint="a dict of Table.to_pylist(), or Table.slice(n, 1)",
        )
    entries = pa.Table.from_struct_array(table["events"].combine_chunks().flatten())
    return RowEvents(table, entries.drop_columns([VAR]), entries[VAR].to_pylist(), [], np.zeros(0, np.int64))


def _contents(table: pa.Table) -> list[Content]:
    """The values of every row, such that they can be looked up."""
    columns = [[_hashable(value) for value in table[name].to_pylist()] for name in table.column_names]
    return list(zip(*columns, strict=True))


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def expand(text: str, row: object, source: object | None, options: Options) -> Iterator[pa.RecordBatch]:
    """Check the row; then its matches, as RETURN TRENDS gives them, are found as they are read."""
    query = _collapsed_query(queries_of(text, options.query))
    given = read_row(row)
    options = for_queries(options, (query,))
    if source is None:
        events = prepare(given.bare, **options.columns())
        plan = bind(replace(query, returns=Trends.ALL), events.schema)
        given = given.numbered(plan.kleene)
        events = prepare(given.stream(), **options.columns())
    else:
        events = load(source, options)
        plan = bind(replace(query, returns=Trends.ALL), events.schema)
        given = given.numbered(plan.kleene).found_in(events.table)
    physical = plan_query(plan, without=(count_in_pattern, split_by_equality))
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
        self.pattern_spec = physical.pattern_spec
        self.stream = _stream_of(physical.plan, events)
        if (len(self.pattern_spec.scopes) > 1 or self.pattern_spec.hidden) and not from_source:
            looking = "EXISTS needs events that are" if self.pattern_spec.hidden else "a NOT looks at events that are"
            raise OptionError(
                f"{looking} in no match, so in no row",
                hint="give the stream too: expand(text, row, events)",
            )
        unknown = set(given.variables) - {place.variable for place in self.pattern_spec.places if place.scope == 0}
        if unknown:
            raise OptionError(f"the query has no variable '{min(unknown)}', which the row binds")
        whole, self.keys = build_block(physical, self.stream)
        self.block = self._of_row(whole)
        kernel = self._kernel_of_rows()
        self.column = next(column.name for column in kernel.columns if column.counts)
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
        places = self.pattern_spec.places
        words = [np.zeros(len(block), np.uint64) for _ in range(0, len(places), WORD)]
        for position, place in enumerate(places):
            fits = block.members[position]
            if place.scope == 0 and position not in self.pattern_spec.hidden:
                allowed = np.zeros(len(self.stream.table), np.bool_)
                allowed[self.given.rows[self.given.names == place.variable]] = True
                fits = fits[allowed[block.row[fits]]]
            words[position // WORD][fits] |= np.uint64(1 << position % WORD)
        return replace(block, fits=tuple(words), bits=tuple(range(len(places)))).only(kept)

    def _is_row(self, one: Matches) -> bool:
        """Whether a collapsed trend has the row's events, and stands for as many matches."""
        variables = [self.pattern_spec.places[position].variable for position in one.positions]
        found = sorted(zip(self.block.row[one.events].tolist(), variables, strict=True))
        given = sorted(zip(self.given.rows.tolist(), self.given.variables, strict=True))
        return found == given and self.given.matches in (None, int(one.columns[self.column][0]))


def _stream_of(plan: Plan, events: Events) -> Stream:
    assert events.ticks is not None
    kinds = {column.name: column.kind for column in plan.schema.columns}
    return Stream(events.table.select(list(plan.schema.names)), kinds, events.ticks, {plan.schema.type: events.types})
