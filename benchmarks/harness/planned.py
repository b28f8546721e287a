"""From a query and a table to what a kernel is given: the plan, the sorted block, the spans.

The kernels are measured on exactly what the engine hands them, so a benchmark plans its query like the engine does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from trendloom.frontend.tql.parser import parse
from trendloom.io.events import prepare as prepare_events
from trendloom.kernels.aggregate import measures as jobs
from trendloom.kernels.aggregate.measures import Addends, Spans, spans_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.logical.bind import bind
from trendloom.optimizer import CostedRule, Rule, optimize
from trendloom.planner.algorithms import two_steps
from trendloom.planner.plan import Physical, choose
from trendloom.planner.request import Choice, PlanningRequest
from trendloom.runtime import task
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.statistics import statistics_of_stream


@dataclass(frozen=True, eq=False)
class Planned:
    """A query over a table, ready to be run at any level."""

    physical: Physical
    stream: Stream

    @property
    def spec(self) -> AggregationSpec:
        found = self.physical.kernel.aggregation
        assert found is not None
        return found

    @cached_property
    def block(self) -> Block:
        return build_block(self.physical, self.stream)[0]

    @cached_property
    def spans(self) -> Spans:
        pattern_spec = self.spec.pattern_spec
        return spans_of(self.block, pattern_spec.window, pattern_spec.scopes[0].template.minimal_length)

    @cached_property
    def addends(self) -> Addends:
        """For COUNT(*) alone: no measures that ride along."""
        return jobs.prepare(self.spec, self.block, [], [])

    @property
    def enumerating(self) -> Physical:
        """The same plan in two steps: matches are found one by one and then added up."""
        found = two_steps.consider(PlanningRequest(self.physical.plan, self.physical.pattern_spec))
        assert isinstance(found, Choice)
        return replace(self.physical, chosen=found)

    def partial(self, *, two_steps: bool = False, numeric: str = "exact") -> pa.Table | None:
        """The aggregates as the engine computes them in one task."""
        physical = self.enumerating if two_steps else self.physical
        return task.partial(physical, self.stream, numeric=numeric)


def planned(text: str, table: pa.Table, without: Collection[Rule | CostedRule] = ()) -> Planned:
    """Plan a query over a table of events, by what is quickly known of them; `without`: rules to leave out."""
    events = prepare_events(table)
    (query,) = parse(text)
    bound = bind(query, events.schema)
    physical = choose(optimize(bound, statistics_of_stream(events)(bound), without))
    plan = physical.plan
    assert events.ticks is not None
    kinds = {column.name: column.kind for column in plan.schema.columns}
    columns = events.table.select(list(plan.scan.columns))
    return Planned(physical, Stream(columns, kinds, events.ticks, {plan.schema.type: events.types}))
