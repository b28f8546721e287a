"""What is quickly known of events at hand, for all queries of a workload: types, times, and keys of a sample.

Cost: one pass over the types and the times; for each set of partition attributes the keys of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa

from trendloom.io.events import Events
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import KeySpread, Origin, Statistics, StatisticsOf
from trendloom.logical.workload import Attributes
from trendloom.model.schema import Kind
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.runtime.analysis.statistics import by_type, domain_of, sampled_rows, spread_of
from trendloom.runtime.blocks import Stream, key_codes

MOST_KEYS = 1 << 14
"""Events of which keys are looked at."""


def spread_in(table: pa.Table, attributes: Attributes, kinds: Mapping[str, Kind]) -> KeySpread:
    """How the rows of a table spread over the values of some columns, of which a sample is looked at."""
    rows = sampled_rows(len(table), MOST_KEYS)
    some = table.select(list(attributes)).take(rows)
    return spread_of(key_codes(attributes, Stream(some, kinds, np.zeros(len(rows), np.int64))).codes, len(table))


def statistics_of_stream(events: Events) -> StatisticsOf:
    """The statistics of any bound query over these events, as far as it takes no time worth mentioning."""
    total = len(events.types)
    kinds = {column.name: column.kind for column in events.schema.columns}

    @cache
    def types() -> dict[str, float]:
        return {name: float(count) for name, count in by_type(events.types)}

    @cache
    def bounds() -> tuple[int, int] | tuple[None, None]:
        if events.ticks is None or not total:
            return None, None
        return int(events.ticks.min()), int(events.ticks.max())

    @cache
    def domain(kind: str, column: str) -> float:
        rows = sampled_rows(total, MOST_KEYS)
        return domain_of(
            kind, column, events.table.select([column]).take(rows), events.types.take(rows), types(), kinds
        )

    @cache
    def spread(attributes: Attributes) -> KeySpread:
        return spread_in(events.table, attributes, kinds)

    def known(plan: Plan) -> Statistics:
        plan = split_by_equality(plan)
        attributes = plan.keys
        keys = {attributes: spread(attributes)} if attributes else {}
        first, last = bounds()
        domains = {(kind, column): domain(kind, column) for kind, column in compared_values(plan)}
        return Statistics(Origin.EVENTS, total, total, types(), first, last, keys, domains=domains)

    return known
