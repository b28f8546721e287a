"""What a live stream counts of its events while it reads them, for the statistics of later plans.

Spark observes the counts in the same pass; they come with its report of the batch, each under a name that says what it
is about. Cost: a comparison for each event and type, set of keys, tested position and compared column; there are at
most `MOST` of each.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from trendloom.model.schema import Schema
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.pattern.algebra import atoms
from trendloom.streaming.partition_groups import StreamPartitionGroup
from trendloom.streaming.statistics import Figures
from trendloom.streaming.streaming_query import StreamingQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

FIGURES = "trendloom_figures"
"""The name under which they are observed."""
MOST = 50
EVENTS, FIRST, LAST, TYPE, KEYS, FITTING, DOMAIN = "events", "first", "last", "type", "keys", "fitting", "domain"


def observed_figures(
    df: DataFrame, partition_groups: tuple[StreamPartitionGroup, ...], schema: Schema, emission: str
) -> list[Column]:
    """What to observe of the events; `emission`: the column of their times as timestamps."""
    from pyspark.sql import functions as F

    from trendloom.engines.spark.columns import column
    from trendloom.engines.spark.tasks import key_columns

    def named(found: Column, *what: object) -> Column:
        return found.alias(json.dumps(what))

    streaming_queries = [
        streaming_query for partition_group in partition_groups for streaming_query in partition_group.streaming_queries
    ]
    moment = F.unix_micros(column(emission))
    kind = column(schema.type)
    types = sorted(
        {atom.type for streaming_query in streaming_queries for atom in atoms(streaming_query.physical.plan.pattern)}
    )
    sets = sorted({partition_group.attributes for partition_group in partition_groups if partition_group.attributes})
    fitting = [one for streaming_query in streaming_queries for one in _position_tests(streaming_query, df.schema)]
    compared = sorted(
        {one for streaming_query in streaming_queries for one in compared_values(streaming_query.physical.plan)}
    )
    return [
        named(F.count(F.lit(1)), EVENTS),
        named(F.min(moment), FIRST),
        named(F.max(moment), LAST),
        *(named(F.count_if(kind == name), TYPE, name) for name in types[:MOST]),
        *(named(F.approx_count_distinct(F.xxhash64(*key_columns(df, one))), KEYS, one) for one in sets[:MOST]),
        *(named(F.count_if((kind == name) & test), FITTING, *which) for which, name, test in fitting[:MOST]),
        *(
            named(F.approx_count_distinct(F.when(kind == of, column(name))), DOMAIN, of, name)
            for of, name in compared[:MOST]
        ),
    ]


def _position_tests(streaming_query: StreamingQuery, schema: StructType) -> list[tuple[tuple[str, int], str, Column]]:
    """The positions of a query with conditions that Spark can test: whose, of which type, the test."""
    from trendloom.engines.spark.columns import exact_test

    plan = streaming_query.physical.plan
    found = []
    for atom in atoms(plan.pattern):
        tests = [exact_test(expr, schema) for position, expr in plan.filters if position == atom.position]
        known = [test for test in tests if test is not None]
        if tests and len(known) == len(tests):
            found.append(((streaming_query.name, atom.position), atom.type, reduce(and_, known)))
    return found


def figures_of(batch: int, observed: dict[str, Any]) -> Figures:
    """The figures of one batch, as Spark reports them."""
    told = [(json.loads(name), value) for name, value in observed.items()]
    plain = {what[0]: value for what, value in told if len(what) == 1}
    return Figures(
        batch,
        int(plain.get(EVENTS) or 0),
        plain.get(FIRST),
        plain.get(LAST),
        {what[1]: int(value) for what, value in told if what[0] == TYPE},
        {tuple(what[1]): int(value) for what, value in told if what[0] == KEYS},
        {(what[1], what[2]): int(value) for what, value in told if what[0] == FITTING},
        {(what[1], what[2]): int(value) for what, value in told if what[0] == DOMAIN},
    )
