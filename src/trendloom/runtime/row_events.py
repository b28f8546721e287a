"""The events of one row of collapsed trends, as a caller hands it back: which of its entries are the same event.

An entry is an event with a variable. An event may be bound to several Kleene variables; events outside them are bound
once. Events with equal values cannot be told apart, and need not be: what one of them can do the others can do too, so
each Kleene variable has an entry for every one of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import DataError, OptionError
from trendloom.model.numbers import from_text
from trendloom.runtime.result_columns import VAR

Array = np.ndarray[Any, Any]
Content = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class RowEvents:
    """`bare`: the events of the entries, without their variables. `rows`: of each entry the row in the stream."""

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
