"""Queries in this process: read once, planned together; columns, keys and sorted events are shared among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial

import pyarrow as pa

from trendloom.engines import local
from trendloom.engines.answers import Answer, Watch
from trendloom.errors import QueryWarning
from trendloom.frontend.tql.tree import Query
from trendloom.io.events import Events
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract.totals import Totals
from trendloom.kernels.jit.compiled import hearing
from trendloom.logical.statistics import UNKNOWN, StatisticsOf
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.options import Options
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.analysis.position_counts import ask_passed
from trendloom.runtime.analysis.statistics import statistics_of_stream
from trendloom.runtime.blocks import Shared, Stream
from trendloom.runtime.equal_times import Tied, Ties, warning_of_ties
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import load_needed
from trendloom.runtime.task import TogetherResults


def answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """What reading the events brought up, and the answers; rows are computed when they are read."""
    events = load_needed(queries, source, options)
    known = statistics_of_stream(events)
    workload = planned(queries, events.schema, options.limits, known if len(queries) > 1 else _if_compared(known))
    shared = Shared(workload.optimized.shared_attributes)
    together = _together(workload, events, options, watch, shared)
    both = zip(workload.bound, workload.queries, strict=True)
    return events.warnings, [
        Answer(one.plan, _rows(one, events, options, watch, shared, together.get(number)), ask_passed(plan, events))
        for number, (plan, one) in enumerate(both)
    ]


def _if_compared(known: StatisticsOf) -> StatisticsOf:
    """What is known, for queries whose plans depend on the values that they compare."""
    return lambda plan: known(plan) if compared_values(split_by_equality(plan)) else UNKNOWN


def _together(
    workload: PhysicalWorkload, events: Events, options: Options, watch: Watch, shared: Shared
) -> dict[int, local.Together]:
    """By query how to get its results, where it is answered together with others."""
    found: dict[int, local.Together] = {}
    for group in workload.together:
        results = TogetherResults(group.in_numbers(options.numeric), workload.queries[group.members[0]].plan)
        names = workload.named(group.members, 3)
        stream = partial(local.stream_of_columns, workload.scan.columns, workload.bound[0], events, shared=shared)
        tied = _warning_of_ties(workload.queries[group.members[0]], watch, names)
        for number in group.members:
            found[number] = partial(_results, results, number, partial(stream, tied=tied))
    return found


def _results(
    results: TogetherResults, number: int, stream: Callable[..., Stream], threads: int
) -> tuple[Block, Keys, Totals] | None:
    return results.of(number, stream(threads=threads))


def _warning_of_ties(physical: Physical, watch: Watch, name: str | None) -> Tied:
    def tied(ties: Ties) -> None:
        warning = warning_of_ties(physical.plan, ties)
        if warning is not None:
            watch.warn(warning, name)

    return tied


def _rows(
    physical: Physical, events: Events, options: Options, watch: Watch, shared: Shared, together: local.Together | None
) -> Iterator[pa.RecordBatch]:
    with nullcontext() if watch.compiling is None else hearing(watch.compiling):
        yield from local.run(
            physical,
            events,
            numeric=options.numeric,
            limit=options.limit,
            progress=watch.progress,
            unsorted=watch.unsorted,
            foreseen=watch.foreseen,
            tied=_warning_of_ties(physical, watch, physical.plan.name),
            beforehand=watch.beforehand,
            threads=options.threads,
            shared=shared,
            together=together,
        )
