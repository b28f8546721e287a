"""Queries in this process: read once, planned together; columns, keys and sorted events are shared among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import pyarrow as pa

from trendloom.engines import local
from trendloom.engines.answers import Answer, Watch
from trendloom.engines.columnar.equal_times import Ties, warning_of_ties
from trendloom.engines.columnar.events import Shared
from trendloom.engines.looking.passed import ask_passed
from trendloom.engines.options import Options
from trendloom.engines.planning import planned
from trendloom.engines.reading import load_needed
from trendloom.errors import QueryWarning
from trendloom.io.events import Events
from trendloom.kernels.compiled import hearing
from trendloom.lang.tree import Query
from trendloom.physical.plan import Physical


def answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """What reading the events brought up, and the answers; rows are computed when they are read."""
    events = load_needed(queries, source, options)
    workload = planned(queries, events.schema, options.limits)
    shared = Shared(workload.optimized.shared_attributes)
    both = zip(workload.bound, workload.queries, strict=True)
    return events.warnings, [
        Answer(one.plan, _rows(one, events, options, watch, shared), ask_passed(plan, events)) for plan, one in both
    ]


def _rows(
    physical: Physical, events: Events, options: Options, watch: Watch, shared: Shared
) -> Iterator[pa.RecordBatch]:
    def tied(ties: Ties) -> None:
        warning = warning_of_ties(physical.plan, ties)
        if warning is not None:
            watch.warn(warning, physical.plan.name)

    with nullcontext() if watch.compiling is None else hearing(watch.compiling):
        yield from local.run(
            physical,
            events,
            numeric=options.numeric,
            limit=options.limit,
            progress=watch.progress,
            unsorted=watch.unsorted,
            foreseen=watch.foreseen,
            tied=tied,
            beforehand=watch.beforehand,
            threads=options.threads,
            shared=shared,
        )
