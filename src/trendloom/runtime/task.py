"""One columnar call: a table of events in, result batches out. The local engine makes one, Spark one per task."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Total
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract import Expected, Failed, OnProgress
from trendloom.kernels.contract.aggregates import Totals, Widening
from trendloom.kernels.contract.matches import Matches, join
from trendloom.logical.plan import Aggregation
from trendloom.planner.plan import Physical
from trendloom.planner.workload import QueryGroup, group_of_one
from trendloom.runtime.aggregates import WINDOW, beyond_decimal
from trendloom.runtime.blocks import Stream, build_block, key_codes
from trendloom.runtime.limits import budget_of, naming_the_way_out, refuse_floods, too_many
from trendloom.runtime.match_rows import Arranged, order_of, order_of_added, width_of
from trendloom.runtime.parallel import Run
from trendloom.runtime.result_builder import Keep, Progress, partial_table, row_batches
from trendloom.runtime.result_columns import EXACT_ON_SPARK, empty_batch, row_schema

DECIMAL_BITS = 127
"""A number with more bits has more than 38 digits."""
FIRST_ENTRIES = 1 << 21
"""Entries of matches that are found before matches are counted: a small result is faster to enumerate."""

MoreColumns = Callable[[Arranged, Matches], Mapping[str, pa.Array]]
"""Columns that are added to rows, by name."""
KeepMatches = Callable[[Matches], Matches]
Result = Totals | Matches | Failed


def show(physical: Physical, stream: Stream) -> Arranged:
    """Sort the events for the kernel."""
    return Arranged(physical, stream, *build_block(physical, stream))


@dataclass(frozen=True)
class RowCallbacks:
    """Callbacks of `rows`. `progress`: with the number of matches so far. `foreseen`: with the expected number, before
    many matches are found. `unsorted`: where rows are not in order, because they do not fit in memory.
    """

    progress: Progress | None = None
    foreseen: Callable[[Expected], None] | None = None
    unsorted: Callable[[], None] | None = None


_NO_CALLBACKS = RowCallbacks()


def rows(
    shown: Arranged, *, limit: int | None = None, more: MoreColumns | None = None, ordered: bool = True,
    exact: pa.DataType | None = EXACT_ON_SPARK, keep: KeepMatches | None = None,
    callbacks: RowCallbacks = _NO_CALLBACKS,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Rows per match, `ordered` where they fit in memory; `limit` stops the search.

    `more` makes columns that come after those of the rows, by which they are sorted or ranked later. `exact`: the type
    of further columns; None: as wide as they need, and a batch without rows comes first. `keep` picks the ranked
    matches to return where others belong to another task. More matches than allowed are refused.
    """
    physical, stream = shown.physical, shown.stream
    budget = budget_of(physical)
    ranking = physical.plan.ranking
    cut = None
    if ranking is not None:
        ordered, cut, limit = True, limit, None  # the first rows are those with the best ranks
    found = _first(_checked(shown, limit, callbacks), limit, callbacks.progress)
    added = physical.kernel.columns
    if exact is None and not any(column.counts for column in added):
        exact = EXACT_ON_SPARK
        yield empty_batch(row_schema(physical, stream.table.schema, exact))
    most = None if exact is None or ranking is not None else budget.held
    held, all_there = _up_to(found, most) if ordered or limit else ([], False)
    if exact is None:
        exact = width_of([some.columns[column.name] for some in held for column in added if column.counts])
        yield empty_batch(row_schema(physical, stream.table.schema, exact))

    def batches(matches: Matches, order: Array | None = None) -> Iterator[pa.RecordBatch]:
        for batch, some in row_batches(shown, matches, exact, budget.batched(stream.table), order):
            yield batch if more is None else _with_columns(batch, more(shown, some))

    if all_there:
        matches = join(held)
        held.clear()
        if keep is not None and len(matches):
            matches = keep(matches)
        order = _order(shown, matches) if len(matches) else None
        if cut is not None:
            order = (np.arange(len(matches)) if order is None else order)[:cut]
        yield from batches(matches, order)
        return
    if callbacks.unsorted is not None:
        callbacks.unsorted()
    for matches in _chained(held, found):
        yield from batches(matches)


def _order(shown: Arranged, matches: Matches) -> Array | None:
    """The order in which rows are returned; None: as they are."""
    plan, added = shown.physical.plan, shown.physical.kernel.columns
    if plan.ranking is not None or any(column.sorts for column in added):
        overall = plan.ranking is not None and plan.ranking.overall
        return order_of_added(shown.block, matches, added, overall=overall)
    return order_of(shown.block, matches, plan.window, _partitions(shown))


def _partitions(shown: Arranged) -> Array | None:
    """The number of each key's partition, in the order of their values; None where every key is a partition."""
    plan = shown.physical.plan
    return key_codes(plan.partition, shown.stream).codes[shown.keys.rows] if plan.split else None


def _first(found: Iterator[Matches], limit: int | None, progress: Progress | None) -> Iterator[Matches]:
    """The first matches, all without a limit; the search stops with them."""
    count = 0
    for matches in found:
        some = matches if limit is None else matches.part(0, min(len(matches), limit - count))
        count += len(some)
        if progress is not None:
            progress(count)
        yield some
        if limit is not None and count >= limit:
            return


def _up_to(found: Iterator[Matches], most: int | None) -> tuple[list[Matches], bool]:
    """Matches until they have more entries than may be held, and whether that is all of them."""
    held, size = [], 0
    for matches in found:
        held.append(matches)
        size += len(matches.events)
        if most is not None and size > most:
            return held, False
    return held, True


def _checked(shown: Arranged, limit: int | None, callbacks: RowCallbacks) -> Iterator[Matches]:
    """The matches; too many are refused, before they are found or when there are too many."""
    physical, foreseen = shown.physical, callbacks.foreseen
    run = Run(physical.kernel, shown.block, shown.stream.threads)

    def check_expected(beforehand: bool) -> None:
        expected = run.expected(beforehand=beforehand)
        refuse_floods(physical, expected, limited=limit is not None)
        if expected is not None and foreseen is not None and limit is None and expected.stoppable:
            foreseen(expected)

    check_expected(True)
    found = run.results()
    if limit is not None:
        yield from found
        return
    first, all_there = _up_to(found, FIRST_ENTRIES)
    if not all_there:
        check_expected(False)
    count = 0
    for matches in _chained(first, found):
        count += len(matches)
        if count > physical.limits.trends:
            raise too_many(physical, f"more than {physical.limits.trends:,}")
        yield matches


def _chained(first: list[Matches], more: Iterator[Matches]) -> Iterator[Matches]:
    while first:
        yield first.pop(0)
    yield from more


def _with_columns(batch: pa.RecordBatch, more: Mapping[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, *more.values()], [*batch.schema.names, *more])


def partial(
    physical: Physical, stream: Stream, *, numeric: str = "exact", keep: Keep | None = None, decimals: bool = False
) -> pa.Table | None:
    """The measures of a single aggregating query over this stream; see `GroupResults.partial`."""
    group = group_of_one(physical.in_numbers(numeric))
    return GroupResults(group, stream, decimals=decimals).partial(0, keep=keep)


class GroupResults:
    """The results of a group of queries over a stream, by query.

    The events are read and sorted, and the kernel runs, when results of any query are first read; those of the other
    queries are kept until they are read. `on_progress` is called before long numbers are computed. `decimals`: results
    are Spark's, so a number of matches that they cannot hold is refused before it is computed.
    """

    def __init__(
        self,
        group: QueryGroup,
        stream: Stream | Callable[[], Stream],
        *,
        on_progress: OnProgress | None = None,
        decimals: bool = False,
    ) -> None:
        self.group, self._stream = group, stream
        self._on_progress = self._refuse_wide if decimals else on_progress
        self._sorted: tuple[Block, Keys] | None = None
        self._results: Iterator[Result] | None = None
        self._waiting: list[deque[Result]] = [deque() for _ in group.queries]
        self._error: Exception | None = None

    @property
    def stream(self) -> Stream:
        if not isinstance(self._stream, Stream):
            self._stream = self._stream()
        return self._stream

    @property
    def sorted(self) -> tuple[Block, Keys]:
        """The events as the kernel sees them."""
        if self._sorted is None:
            self._sorted = build_block(self.group, self.stream)
        return self._sorted

    def arranged(self, query: int) -> Arranged:
        """The same for the rows of a query."""
        return Arranged(self.group.queries[query], self.stream, *self.sorted)

    def of(self, query: int) -> Iterator[Totals | Matches]:
        """The results of a query; raises what was refused of it."""
        waiting = self._waiting[query]
        while True:
            while waiting:
                found = waiting.popleft()
                if isinstance(found, Failed):
                    raise found.error
                yield found
            following = self._next()
            if following is None:
                return
            self._waiting[following.query].append(following)

    def _next(self) -> Result | None:
        """The next result of any query; an error of the kernel is one of all queries."""
        if self._error is not None:
            raise self._error
        try:
            if self._results is None:
                block, _ = self.sorted
                self._results = Run(self.group.kernel, block, self.stream.threads).results(self._on_progress)
            return next(self._results, None)
        except Exception as error:
            self._error = error
            raise

    def partial(self, query: int, *, progress: Progress | None = None, keep: Keep | None = None) -> pa.Table | None:
        """The measures of an aggregating query; None where there is no match.

        `keep` picks the results to return where others belong to another task.
        """
        with naming_the_way_out():
            return partial_table(self.arranged(query), self.of(query), keep=keep, progress=progress)

    def _refuse_wide(self, found: object) -> None:
        """Refuse numbers of matches beyond Spark's decimals, where the rows give them away as they are."""
        if not isinstance(found, Widening) or found.matches <= DECIMAL_BITS:
            return
        plan, (_, keys) = self.group.queries[found.query].plan, self.sorted
        assert isinstance(plan.output, Aggregation)
        counts = [v for v in plan.output.values if isinstance(v.expr, Total) and v.expr.positions is None]
        if counts and plan.output.having is None:
            row = pa.array([int(keys.rows[found.key])])
            groups = {name: self.stream.table[name].take(row) for name in plan.group_by}
            raise beyond_decimal(plan, counts[0], pa.table({WINDOW: [found.start], **groups}), 0)
