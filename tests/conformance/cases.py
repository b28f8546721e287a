"""Case files: a query, events, and the rows that every engine must give.

`cases.json` and `imprecise.json` are the worked examples of the papers; `decisions.json` holds one case for each
decision of the language and for each bug that was found. In `expected`, `ids` stands for the `id`s of a match's events
in time order, a pair of numbers for a fraction. Rows come in any order, unless the case says `ordered`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.property.compare import canonical

HERE = Path(__file__).parent
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    name: str
    source: str  # where the expected rows come from
    query: str
    events: list[Row]
    expected: list[Row]
    note: str = ""
    options: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)  # Arrow types of columns that JSON cannot tell
    ordered: bool = False

    @property
    def imprecise(self) -> bool:
        return any("time_low" in event for event in self.events)

    def table(self) -> pa.Table:
        """The events; a column that is NULL in every row keeps no type."""
        names = dict.fromkeys(name for event in self.events for name in event)
        return pa.table({name: self._column([event.get(name) for event in self.events], name) for name in names})

    def _column(self, values: list[Any], name: str) -> pa.Array:
        kind = self.columns.get(name)
        as_text = any(isinstance(value, str) for value in values)
        return pa.array(values).cast(kind) if kind and as_text else pa.array(values, kind)

    def run_options(self) -> dict[str, str]:
        bounds = {"time_low": "time_low", "time_high": "time_high"} if self.imprecise else {}
        return {**bounds, **self.options}


def read_cases(name: str) -> list[Case]:
    return [Case(**entry) for entry in json.loads((HERE / name).read_text())]


def shown(case: Case, rows: list[Row]) -> list[Any]:
    """Rows as they are compared: matches by the ids of their events, numbers by value."""
    found = [canonical(_plain(row)) for row in rows]
    return found if case.ordered else sorted(found)


def _plain(row: Row) -> Row:
    plain = {name: value for name, value in row.items() if name != "events"}
    if "confidence" in row and isinstance(row["confidence"], list):
        plain["confidence"] = row["confidence"][0] / row["confidence"][1]
    if "events" in row:
        plain["ids"] = [event["id"] for event in row["events"]]
    return plain
