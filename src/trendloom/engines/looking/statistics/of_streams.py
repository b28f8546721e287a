"""What is quickly known of events at hand, for all queries of a workload: types, times, and keys of a sample.

Cost: one pass over the types and the times; for each set of partition attributes the keys of a sample.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from trendloom.engines.columnar.events import Stream, key_codes
from trendloom.engines.looking.statistics.from_events import by_type, sampled_rows, spread_of
from trendloom.io.events import Events
from trendloom.plan.logical import Plan
from trendloom.plan.statistics import KeySpread, Origin, Statistics, StatisticsOf
from trendloom.plan.workload import Attributes

MOST_KEYS = 1 << 14
"""Events of which keys are looked at."""


def statistics_of_stream(events: Events) -> StatisticsOf:
    """The statistics of any bound query over these events, as far as it takes no time worth mentioning."""
    total = len(events.types)
    kinds = {column.name: column.kind for column in events.schema.columns}
    rows = sampled_rows(total, MOST_KEYS)

    @cache
    def types() -> dict[str, float]:
        return {name: float(count) for name, count in by_type(events.types)}

    @cache
    def bounds() -> tuple[int, int] | tuple[None, None]:
        if events.ticks is None or not total:
            return None, None
        return int(events.ticks.min()), int(events.ticks.max())

    @cache
    def spread(attributes: Attributes) -> KeySpread:
        table = events.table.select(list(attributes)).take(rows)
        return spread_of(key_codes(attributes, Stream(table, kinds, np.zeros(len(rows), np.int64))).codes, total)

    def known(plan: Plan) -> Statistics:
        keys = {plan.partition: spread(plan.partition)} if plan.partition else {}
        first, last = bounds()
        return Statistics(Origin.EVENTS, total, total, types(), first, last, keys)

    return known
