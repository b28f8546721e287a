"""Ways to answer the queries of a workload, each from the same table to the same rows; and their kernels alone.

*One by one*: a call for each query. *Unshared*: one workload, read and sorted once, the kernel that each query has when
it is alone. *Swept apart*: one block for all queries, of which each has a sweep of its own; what is faster than that,
sharing has gained, and not another kernel. *A-Seq*: see `sharing_baselines`. *Two steps*: matches are found and then
counted. *Shared*: the engine as it is.

    python -m benchmarks.sharing.contenders CASE CONTENDER    # the case as JSON: prints the peak memory of a run
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

import trendloom as tl
from benchmarks.baselines.sharing import (
    ArrangedEvents,
    PrefixCounts,
    arrange_events,
    count_by_prefixes,
    rows_of_prefixes,
)
from benchmarks.cases.sharing import OVERLAPS, STREAMS, SharingWorkload, StreamOfTypes, sharing_workload
from benchmarks.harness.memory import peak_while, run_apart
from benchmarks.harness.planned import planned as planned_alone
from trendloom.engines import local
from trendloom.engines.answers import Answer, table_of
from trendloom.frontend.tree import Query
from trendloom.io.events import Events
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import Totals
from trendloom.kernels.shared.kernel import SharedKernel
from trendloom.logical.bind import bind
from trendloom.logical.plan import Workload
from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.optimizer import optimize_workload
from trendloom.options import Options
from trendloom.planner.plan import Physical
from trendloom.planner.sharing.groups import SharedGroup, SharingQuestion, Way, question_of, with_queries_apart
from trendloom.planner.sharing.queries import counted_query
from trendloom.planner.workload import PhysicalWorkload, QueryGroup, group_of_one
from trendloom.runtime.blocks import Shared, Stream, build_block
from trendloom.runtime.parallel import Run
from trendloom.runtime.planning import plan_query, planned
from trendloom.runtime.reading import for_queries, load_needed, queries_of
from trendloom.runtime.statistics import statistics_of_stream
from trendloom.runtime.task import GroupResults
from trendloom.runtime.warnings import Ties

ONE_BY_ONE, UNSHARED, SWEPT_APART = "one by one", "unshared", "swept apart"
A_SEQ, TWO_STEPS, SHARED = "A-Seq", "two steps", "shared"
WARM_UP = 20_000
"""Events per window of the run that loads and compiles, before memory is measured."""


@dataclass(frozen=True)
class SharingCase:
    """A stream and a workload by their parameters, and how many threads may work."""

    stream: str = "taxi"
    per_window: int = 200_000
    windows: float = 2.0
    queries: int = 20
    length: int = 10
    overlap: float = OVERLAPS["high"]
    place: str = "beginning"
    families: int = 1
    windows_open: int = 10
    values: str = ""
    threads: int = 1

    def describe(self) -> str:
        """The stream with the thousands of events of a window, the workload, and the values asked for."""
        values = f", {self.values}" if self.values else ""
        return f"{self.stream} {self.per_window // 1000}k, {self.contest.workload.describe()}{values}"

    @cached_property
    def contest(self) -> Contest:
        stream = STREAMS[self.stream](self.per_window, self.windows)
        workload = sharing_workload(
            stream,
            self.queries,
            self.length,
            overlap=self.overlap,
            place=self.place,
            families=self.families,
            windows_open=self.windows_open,
            values=self.values,
        )
        return Contest(stream, workload, self.threads)


@dataclass(frozen=True, eq=False)
class Contest:
    """The contenders. Each is a function without arguments that gives a table of all rows."""

    stream: StreamOfTypes
    workload: SharingWorkload
    threads: int = 1

    @property
    def table(self) -> pa.Table:
        return self.stream.table

    def contenders(self) -> dict[str, Callable[[], pa.Table]]:
        """Those that end in any case."""
        found = {ONE_BY_ONE: self.one_by_one, UNSHARED: self.unshared}
        if self.counts_alone:
            found |= {SWEPT_APART: self.swept_apart, A_SEQ: self.a_seq}
        return {who: quietly(work) for who, work in (found | {SHARED: self.shared}).items()}

    @property
    def counts_alone(self) -> bool:
        """Whether queries ask for COUNT(*) and nothing else, as A-Seq is written here."""
        return self.workload.aggregates == "COUNT(*)"

    def one_by_one(self) -> pa.Table:
        queries = self.workload.queries()
        tables = {name: tl.run(query, self.table, threads=self.threads) for name, query in queries.items()}
        return _joined(tables)

    def shared(self) -> pa.Table:
        return tl.run(self.workload.text(), self.table, threads=self.threads)

    def unshared(self) -> pa.Table:
        queries, options = self.parse()
        events = load_needed(queries, self.table, options)
        plans, shared = self._planned_apart(queries, events)
        return table_of([Answer(one.plan, self._rows(one, events, shared)) for one in plans])

    def swept_apart(self) -> pa.Table:
        queries, options = self.parse()
        events = load_needed(queries, self.table, options)
        return self.answered(_with_sweeps_apart(planned(queries, events.schema)), events)

    def answered(self, workload: PhysicalWorkload, events: Events) -> pa.Table:
        """The rows of a workload, with its groups as they are."""
        shared = Shared(workload.optimized.shared_attributes)
        rows: dict[int, Any] = {}
        for group in workload.groups:
            results = self._results(group, events, shared)
            rows |= {number: local.rows(results, query) for query, number in enumerate(group.members)}
        return table_of([Answer(one.plan, rows[at]) for at, one in enumerate(workload.queries)])

    def a_seq(self) -> pa.Table:
        events = arrange_events(self.table, self.workload.key)
        return rows_of_prefixes(count_by_prefixes(events, self.workload), events, self.workload)

    def two_steps(self) -> pa.Table:
        """Matches of every query are found one by one, and counted when they are all there."""
        queries, options = self.parse()
        events = load_needed(queries, self.table, options)
        tables = {}
        for name, query in self.workload.queries().items():
            batches = local.run(planned_alone(query, self.table).enumerating, events, threads=self.threads)
            tables[name] = pa.Table.from_batches(list(batches))
        return _joined(tables)

    # ------------------------------------------------------------------------------------------------- phases

    def parse(self) -> tuple[tuple[Query, ...], Options]:
        queries = queries_of(self.workload.text())
        return queries, for_queries(Options(threads=self.threads), queries)

    def read(self) -> Events:
        queries, options = self.parse()
        return load_needed(queries, self.table, options)

    def plan(self) -> PhysicalWorkload:
        """From the text to executable plans, with what queries share."""
        return planned(self.parse()[0], self.events.schema, statistics=statistics_of_stream(self.events))

    @cached_property
    def events(self) -> Events:
        return self.read()

    def phases(self) -> dict[str, Callable[[], Any]]:
        """What comes before the kernels of the shared workload."""
        return {"parse": self.parse, "parse and plan": self.plan, "parse and read": self.read}

    def _planned_apart(self, queries: Iterable[Query], events: Events) -> tuple[tuple[Physical, ...], Shared]:
        """The plans of the queries, and what they read and sort together; nobody looks for common parts."""
        plans = tuple(plan_query(bind(query, events.schema)) for query in queries)
        return plans, Shared(optimize_workload(Workload(tuple(one.plan for one in plans))).shared_attributes)

    def _rows(self, physical: Physical, events: Events, shared: Shared) -> Any:
        return local.rows(self._results(group_of_one(physical), events, shared), 0)

    def _results(self, group: QueryGroup, events: Events, shared: Shared) -> GroupResults:
        def stream() -> Stream:
            return local.stream_of(group, events, _ignore_ties, shared, self.threads)

        return local.results_of(group, stream)

    # ------------------------------------------------------------------------------------------------ kernels

    def kernels(self) -> dict[str, Callable[[], Any]]:
        """From sorted events to totals: what is left when everything is read, planned and sorted."""
        queries, _ = self.parse()
        plans, shared = self._planned_apart(queries, self.events)
        apart = [self._kernel_alone(one, shared) for one in plans]
        found: dict[str, Callable[[], Any]] = {
            UNSHARED: lambda: [work() for work in apart],
            SHARED: self.kernels_together(self.plan(), apart, shared),
        }
        if self.counts_alone:
            found[SWEPT_APART] = self.kernels_together(_with_sweeps_apart(self.plan()), apart, shared)
            arranged = self.arranged
            found[A_SEQ] = lambda: count_by_prefixes(arranged, self.workload)
        return {who: quietly(work) for who, work in found.items()}

    @cached_property
    def arranged(self) -> ArrangedEvents:
        return arrange_events(self.table, self.workload.key)

    def prefix_counts(self) -> PrefixCounts:
        return count_by_prefixes(self.arranged, self.workload)

    def _kernel_alone(self, physical: Physical, shared: Shared) -> Callable[[], list[Totals]]:
        stream = local.stream_of(physical, self.events, shared=shared, threads=self.threads)
        block, _ = build_block(physical.in_numbers("exact"), stream)
        return lambda: list(Run(physical.in_numbers("exact").kernel, block, self.threads).results())

    def kernels_together(
        self, workload: PhysicalWorkload, apart: list[Callable[[], list[Totals]]], shared: Shared
    ) -> Callable[[], Any]:
        """Kernels of groups of queries; queries of no group, or with too large numbers, have their own."""
        groups = [(group, self._block_of(group, shared)) for group in workload.groups if len(group.members) > 1]

        def work() -> list[Any]:
            totals: dict[int, Totals | None] = {}
            for group, block in groups:
                assert isinstance(group.kernel, SharedKernel)
                totals |= zip(group.members, group.kernel.totals(block), strict=True)
            rest = [alone() for at, alone in enumerate(apart) if totals.get(at) is None]
            return [one for one in totals.values() if one is not None] + rest

        return work

    def _block_of(self, group: QueryGroup, shared: Shared) -> Block:
        stream = local.stream_of(group, self.events, shared=shared, threads=self.threads)
        return build_block(group, stream)[0]

    def alone_after_all(self) -> int:
        """How many queries have numbers that are too large for the kernel of their group."""
        shared = Shared()
        return sum(
            sum(one is None for one in group.kernel.totals(self._block_of(group, shared)))
            for group in self.plan().groups
            if isinstance(group.kernel, SharedKernel)
        )


@dataclass(frozen=True)
class SweepsApart(SharedKernel):
    """The same block for all queries, and a sweep for each."""

    def totals(self, block: Block) -> Sequence[Totals | None]:
        return [kernel.totals(block)[0] for kernel in self.kernels]

    @cached_property
    def kernels(self) -> tuple[SharedKernel, ...]:
        return tuple(SharedKernel((query,), self.asked) for query in self.queries)


def _with_sweeps_apart(workload: PhysicalWorkload) -> PhysicalWorkload:
    """The same queries; each that could be swept together with others has a sweep of its own."""
    return with_kernels(workload, lambda question: SweepsApart(question.queries, question.event_filters))


def with_kernels(
    workload: PhysicalWorkload,
    kernel: Callable[[SharingQuestion], SharedKernel],
    statistics: StatisticsOf = nothing_known,
) -> PhysicalWorkload:
    """The same queries; those that can be swept together are, by a kernel, whatever else might be faster."""
    return replace(workload, shared_groups=tuple(_groups(workload, kernel, statistics)))


def _groups(
    workload: PhysicalWorkload, kernel: Callable[[SharingQuestion], SharedKernel], statistics: StatisticsOf
) -> Iterator[SharedGroup]:
    for keys in workload.key_sets:
        queries = {number: workload.queries[number] for number in keys.members}
        counted = {n: query for n, query in queries.items() if counted_query(query, {}) is not None}
        if counted:
            some = list(counted.values())
            question = question_of(some, keys.attributes, statistics(workload.queries[keys.members[0]].plan))
            shared = with_queries_apart(kernel(question), some)
            yield SharedGroup(tuple(counted), question, shared, (Way("as demanded"),), 0)


def _ignore_ties(_ties: Ties) -> None:
    """These streams have equal times by intention: they are counted, and nobody is warned."""


def quietly(work: Callable[[], Any]) -> Callable[[], Any]:
    """The same without warnings of equal times, which these streams have."""

    def done() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()

    return done


def _joined(tables: dict[str, pa.Table]) -> pa.Table:
    named = [table.add_column(0, "query", pa.repeat(name, len(table))) for name, table in tables.items()]
    return pa.concat_tables(named, promote_options="permissive")


def modulo_words(table: pa.Table) -> pa.Table:
    """The same rows with COUNT(*) modulo 2⁶⁴; rows where that is 0 are left out."""
    counts = table["COUNT(*)"]
    if pa.types.is_integer(counts.type):
        words = counts.to_numpy().astype(np.uint64)
    else:
        words = np.array([int(one) % 2**64 for one in counts.to_pylist()], np.uint64)
    at = table.column_names.index("COUNT(*)")
    return table.set_column(at, "COUNT(*)", pa.array(words)).filter(pa.array(words != 0))


# -------------------------------------------------------------------------------------------------- memory


def peak_of(case: SharingCase, who: str) -> int:
    """Bytes that a contender needs at most, over those of the process with its events, in a process of its own."""
    return int(run_apart("sharing.contenders", json.dumps(asdict(case)), who))


def watch_memory(case: SharingCase, who: str) -> int:
    """The same in this process."""
    replace(case, per_window=WARM_UP).contest.contenders()[who]()  # load and compile
    return peak_while(case.contest.contenders()[who])


if __name__ == "__main__":
    print(watch_memory(SharingCase(**json.loads(sys.argv[1])), sys.argv[2]))
