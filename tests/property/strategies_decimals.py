"""Random cases over decimals: those of the other strategies, with columns turned into decimals and numbers into tenths.

Three flavours. *tenths*: x and y are small decimals with two and four digits after the point, so that 0.1 + 0.2 meets
0.3; *wide*: they differ in digits that no double holds and no 64-bit integer counts; *beside doubles*: x is a decimal
and y stays a double. k, by which streams are cut, is always wide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.property.strategies import ARROW, Case, Knobs, Row, cases
from tests.property.strategies_aggregates import Aimed, aimed

from trendloom.io.events import prepare
from trendloom.model.schema import Schema

FLAVOURS = ("tenths", "wide", "beside doubles")
FAR = 1234567890123456789
NUMBER = re.compile(r"(?<![\w.\[])(?<!% )(\d+)(?![\w.\]])")
"""A whole number in a condition: not a part of a name, of an index or of a decimal, and not the divisor of %."""


@dataclass(frozen=True)
class DecimalCase:
    query: str
    events: tuple[Row, ...]
    flavour: str

    @property
    def arrow(self) -> pa.Schema:
        return arrow_of(self.flavour)

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(list(self.events), schema=self.arrow)


def arrow_of(flavour: str) -> pa.Schema:
    """The columns of a flavour."""
    narrow = flavour != "wide"
    types = {"x": pa.decimal128(9 if narrow else 38, 2), "y": pa.decimal128(38, 4), "k": pa.decimal128(38, 2)}
    if flavour == "beside doubles":
        del types["y"]
    return pa.schema([field.with_type(types.get(field.name, field.type)) for field in ARROW])


def schema_of(arrow: pa.Schema) -> Schema:
    return prepare(arrow.empty_table()).schema


def in_decimals(events: Sequence[Row], flavour: str) -> tuple[Row, ...]:
    """The same events with decimals for their numbers."""
    return tuple({name: _in_decimals(name, value, flavour) for name, value in row.items()} for row in events)


def _in_decimals(name: str, value: Any, flavour: str) -> Any:
    if value is None or name not in ("x", "y", "k") or (name == "y" and flavour == "beside doubles"):
        return value
    tenths = Decimal(value) / 10
    if name == "k":
        return FAR + tenths / 10
    return tenths if flavour != "wide" else tenths / 10 + (FAR if value >= 0 else -FAR)


def in_tenths(query: str) -> str:
    """The query with tenths for the whole numbers of its conditions."""
    lines = query.splitlines()
    wanted = ("WHERE ", "HAVING ")
    return "\n".join(NUMBER.sub(r"0.\1", line) if line.startswith(wanted) else line for line in lines)


@st.composite
def decimal_cases(draw: st.DrawFn, knobs: Aimed | Knobs) -> DecimalCase:
    """A random query over a random stream of decimals."""
    case: Case = draw(aimed(knobs) if isinstance(knobs, Aimed) else cases(knobs))
    flavour = draw(st.sampled_from(FLAVOURS))
    query = in_tenths(case.query) if draw(st.booleans()) else case.query
    return DecimalCase(query, in_decimals(case.events, flavour), flavour)
