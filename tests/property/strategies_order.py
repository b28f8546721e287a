"""Cases full of equal times, and columns that order them: some order all, some leave ties; NULLs among the values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from hypothesis import strategies as st
from tests.property.strategies import Case, Knobs, Row, cases, to_table
from tests.property.strategies_aggregates import Aimed, aimed

Order = tuple[str, ...]

ORDERS: tuple[Order, ...] = (("x",), ("y",), ("g", "x"), ("x", "y"), ("k",), ("type", "x"), ("id",), ("g", "id"))
"""The last two order all events."""


@dataclass(frozen=True)
class OrderedCase:
    """A query and a stream with the columns that order its equal times."""

    query: str
    events: tuple[Row, ...]
    order: Order

    def table(self) -> pa.Table:
        return to_table(self.events)

    def shuffled(self) -> pa.Table:
        return to_table(self.events[::-1])


@st.composite
def ordered_cases(draw: st.DrawFn, knobs: Knobs | Aimed, orders: tuple[Order, ...] = ORDERS) -> OrderedCase:
    case: Case = draw(aimed(knobs) if isinstance(knobs, Aimed) else cases(knobs))
    length, order = draw(st.sampled_from([2, 3, 5])), draw(st.sampled_from(orders))
    return OrderedCase(case.query, crowded(case.events, length), order)


def crowded(events: tuple[Row, ...], length: int) -> tuple[Row, ...]:
    """The events with times so coarse that many are equal."""
    return tuple({**event, "time": event["time"] // length} for event in events)


def spread(case: OrderedCase) -> OrderedCase:
    """The same events, each at a time of its own, in the order that `order` gives them; it must order them all."""
    places = sorted(case.events, key=lambda e: (e["time"], *((e[n] is not None, e[n] or 0) for n in case.order)))
    at = {event["id"]: place for place, event in enumerate(places)}
    return replace(case, events=tuple({**event, "time": at[event["id"]]} for event in case.events), order=())
