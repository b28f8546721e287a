"""Ask the reference evaluator about a stream that is written down in a line.

`a1 b2(x=3,y='q') a2p` is an A at time 1, a B at time 2 with attributes, another A at time 2: letters (the type), the
time, and perhaps letters to tell apart events of one time. With imprecise time, `a1~5` is an A somewhere in [1, 5].
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Column, Kind, Schema
from trendloom.reference.evaluate import evaluate
from trendloom.reference.stream import Row

EVENT = re.compile(r"((?:([A-Za-z]+?)(-?\d+)(?:~(-?\d+))?)([a-z]*))(?:\((.*?)\))?(?:\s+|$)")
KINDS = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.STRING}

Events = list[dict[str, object]]


@dataclass(frozen=True)
class Answer:
    plan: Plan
    rows: list[Row]
    events: Events

    @property
    def trends(self) -> list[str]:
        """The names of the events of every row."""
        return [" ".join(str(self.events[number]["id"]) for number, _ in row.events or ()) for row in self.rows]

    @property
    def variables(self) -> list[str]:
        return [" ".join(variable for _, variable in row.events or ()) for row in self.rows]

    @property
    def values(self) -> list[tuple[object, ...]]:
        return [row.values or () for row in self.rows]

    @property
    def value(self) -> object:
        """The one value of an aggregate without groups; None where there is no row."""
        return self.rows[0].values[0] if self.rows and self.rows[0].values else None


def read_stream(text: str) -> Events:
    found = list(EVENT.finditer(text))
    assert "".join(match.group(0) for match in found) == text, f"cannot read {text!r}"
    events: Events = []
    for name, kind, low, high, _, attributes in (match.groups() for match in found):
        given = re.findall(r"(\w+)=('[^']*'|[^,]+)", attributes or "")
        times = {"time": int(low)} if high is None else {"time_low": int(low), "time_high": int(high)}
        event: dict[str, object] = {"id": name, "type": kind.upper(), **times}
        event.update((key, float("nan") if value == "nan" else ast.literal_eval(value)) for key, value in given)
        events.append(event)
    return events


def schema_of(events: Events, order: tuple[str, ...] = ()) -> Schema:
    columns = []
    for name in dict.fromkeys(name for event in events for name in event):
        kinds = {KINDS[type(event[name])] for event in events if event.get(name) is not None}
        columns.append(Column(name, Kind.FLOAT if len(kinds) > 1 else next(iter(kinds), Kind.NULL)))
    imprecise = any("time_low" in event for event in events)
    imprecision = Imprecision("time_low", "time_high") if imprecise else None
    return Schema(tuple(columns), imprecision=imprecision, order=order)


@pytest.fixture
def ask() -> Callable[..., Answer]:
    def ask(query: str, stream: str, *, prune: bool = True, order: tuple[str, ...] = ()) -> Answer:
        events = read_stream(stream)
        plan = bind(parse_query(query), schema_of(events, order))
        return Answer(plan, evaluate(plan, events, prune=prune), events)

    return ask
