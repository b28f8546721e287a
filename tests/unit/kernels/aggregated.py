"""From the text of a query to what the aggregation kernels are given, for their tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts, Totals
from trendloom.logical.bind import bind
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

SCHEMA = pa.schema(
    [("type", pa.string()), ("time", pa.int64()), ("x", pa.int64()), ("f", pa.float64()), ("k", pa.string())]
)


@dataclass(frozen=True)
class Query:
    """A planned query; its aggregates are computed in one step."""

    physical: Physical

    @property
    def spec(self) -> AggregationSpec:
        found = self.physical.kernel.aggregation
        assert found is not None
        return found

    def block(self, rows: list[dict[str, Any]]) -> tuple[Block, Keys, pa.Table]:
        """The block of a stream, the codes of its keys, and the events."""
        events = prepare(pa.Table.from_pylist(rows, schema=SCHEMA))
        plan = self.physical.plan
        kinds = {column.name: column.kind for column in plan.schema.columns}
        assert events.ticks is not None
        stream = Stream(events.table.select(list(plan.scan.columns)), kinds, events.ticks)
        return *build_block(self.physical, stream), events.table


def planned(text: str) -> Query:
    events = prepare(SCHEMA.empty_table())
    physical = plan_query(bind(parse_query(text), events.schema))
    assert physical.kernel.aggregation is not None
    return Query(physical)


def values(totals: Totals, names: list[str]) -> dict[tuple[str, int], list[Any]]:
    """Results by key and window; scaled numbers as rounded doubles. `names[k]` is the name of key k."""
    found = {}
    for row in range(len(totals)):
        listed: list[Any] = []
        for _, value in sorted(totals.values.items()):
            if not isinstance(value, Amounts):
                listed.append(value.take(np.array([row])).to_list()[0])
            elif value.exponent is None:
                listed.append(int(value.values[row]))
            else:
                listed.append(round(float(np.ldexp(value.values[row], int(value.exponent[row]))), 6))
        key = (names[int(totals.key[row])], int(totals.start[row]))
        assert key not in found
        found[key] = listed
    return found
