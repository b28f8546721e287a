"""A query on a live stream: its kernel, how its results become rows, and what its state depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError
from trendloom.frontend.tql.printer import write
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import FROM_EVENTS, Kernel
from trendloom.kernels.contract.aggregates import Totals
from trendloom.kernels.contract.matches import Matches
from trendloom.logical.bind import bind
from trendloom.logical.bind.patterns import bind_pattern
from trendloom.model.selection import Trends
from trendloom.optimizer import Rule
from trendloom.optimizer.count_in_pattern import count_in_pattern
from trendloom.optimizer.flatten_sequences import flatten_sequences
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.planner.live import live_kernel, refuse_early
from trendloom.planner.measures import measures_of
from trendloom.planner.plan import Physical
from trendloom.runtime.aggregates import finish_aggregates, merge_partials
from trendloom.runtime.match_rows import Arranged
from trendloom.runtime.planning import plan_query
from trendloom.runtime.result_builder import BOUND, bound_events, merge_ranked, partial_table, row_batches
from trendloom.runtime.result_columns import aggregate_schema, fitted, row_schema

STATE_WITHOUT = (flatten_sequences, count_in_pattern, split_by_equality)
"""Rules by which the state of a query is another one; checkpoints that were made before them go on without them."""
MOST_ENTRIES = 50_000_000
"""Events in all matches of one query, bucket and batch."""


@dataclass(frozen=True)
class StreamingQuery:
    """`schema`: the columns of the events that are kept. `name`: that of the query, empty if it has none.

    `early`: rows of windows that are still open are returned, too, whenever events arrive for them. `generation`:
    how often the query was taken out of the workload and put back; state of an earlier one is of no use.
    `since`: the query was added to a stream under way, and has seen every event from this tick on; None: all events.
    `grouped`: its events are kept, and its results found, together with those of others.
    """

    name: str
    physical: Physical
    schema: pa.Schema
    numeric: str
    kernel: Kernel[Any, Any]
    early: bool = False
    generation: int = 0
    since: int | None = None
    grouped: bool = False

    @property
    def whole_from(self) -> int | None:
        """The first tick at which a window, or a match without windows, may begin and be whole; None: any.

        A match that begins there depends on no event before `since`. A window holds all that matters to it. Without
        windows a match depends on later events only; where a NOT or a longer trend may begin before it, that is by less
        than WITHIN.
        """
        if self.since is None:
            return None
        window = self.physical.plan.window
        since = self.since + self.kernel.emission.slack  # what seems to be earlier was not seen, and may be as late
        if window.slide is not None:
            return -(-since // window.slide) * window.slide
        return since + (window.within or 0 if self._looks_back else 0)

    @property
    def _looks_back(self) -> bool:
        output = self.physical.plan.output
        return len(self.physical.pattern_spec.scopes) > 1 or output in (Trends.COMPLETE, Trends.COLLAPSED)

    @property
    def adds_up(self) -> bool:
        """Whether a group has several partitions, so that buckets give parts of results that others add up."""
        plan = self.physical.plan
        return self.physical.aggregates and set(plan.keys) != set(plan.group_by)

    @property
    def in_parts(self) -> bool:
        """Whether results of buckets are combined: parts of groups are added up, or the best of each ranked again."""
        return self.adds_up or self.physical.plan.ranks_across_keys

    @property
    def result(self) -> pa.Schema:
        """The columns of result rows."""
        plan = self.physical.plan
        if self.physical.aggregates:
            return aggregate_schema(plan, self.schema, self.numeric)
        return row_schema(self.physical, self.schema)

    @cached_property
    def fingerprint(self) -> str:
        """The same for queries that can go on with each other's state: what may differ is RETURN and HAVING."""
        return self._fingerprint(self.kernel.family)

    @cached_property
    def continued(self) -> frozenset[str]:
        """The fingerprints of all states it can go on with.

        Aggregates whose state is the events of open windows may have been added up by another family of kernels.
        """
        alike = self.physical.aggregates and self.kernel.emission.pane is None
        return frozenset(map(self._fingerprint, FROM_EVENTS if alike else (self.kernel.family,)))

    def _fingerprint(self, family: str) -> str:
        plan = self.physical.plan
        query = replace(plan.query, name=None, having=None, returns=Trends.ALL)
        parts: list[object] = [write(query), [[f.name, str(f.type)] for f in self.schema], plan.schema.time]
        parts += [plan.schema.type, str(plan.schema.axis), family, str(self.kernel.emission)]
        parts += [list(plan.schema.order)] if plan.schema.order else []
        parts += [["split", *plan.split]] if plan.split else []
        positions = len(self.physical.pattern_spec.places)
        parts += [["positions", positions]] if positions != len(bind_pattern(plan.query.pattern).atoms) else []
        parts += [f"zone {plan.schema.zone}"] if plan.schema.zone is not None else []
        parts += [repr(plan.schema.imprecision)] if plan.schema.imprecision is not None else []
        if self.kernel.emission.pane is not None:
            parts += [self.numeric, sorted(measure.name for measure in measures_of(plan))]
            decimals = sorted({m.column for m in measures_of(plan) if m.column and plan.schema.scale(m.column)})
            parts += [["exact", *decimals]] if decimals else []  # earlier versions added them up as doubles
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    def rows(self, shown: Arranged, results: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        """Results of the kernel as rows, or as parts where buckets have parts only; none that might lack events."""
        results = self._whole(shown.block, results)
        if not self.physical.aggregates:
            size = 0
            for matches in results:
                size = self._refuse_floods(size + len(matches.events))
                yield from self._of_matches(shown, matches)
            return
        whole = partial_table(shown, results)
        if whole is None:
            return
        if self.adds_up:
            yield from whole.combine_chunks().to_batches()
        else:
            yield from self.finished(whole)

    def _of_matches(self, shown: Arranged, matches: Matches) -> Iterator[pa.RecordBatch]:
        """Rows per match; those that are to be ranked together with others come with their events."""
        for batch, some in row_batches(shown, matches):
            if self.in_parts:
                yield batch.append_column(BOUND, bound_events(shown, some))
            else:
                yield batch

    def joined(self, parts: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Rows of all that buckets have found."""
        if self.adds_up:
            yield from self.finished(merge_partials(self.physical.plan, parts))
        else:
            found = merge_ranked(self.physical, pa.concat_tables(parts)).combine_chunks().to_batches()
            yield from (fitted(batch, self.result) for batch in found)

    def _whole(self, block: Block, results: Iterator[Any]) -> Iterator[Any]:
        """The results that begin late enough to be whole."""
        whole_from = self.whole_from
        if whole_from is None:
            yield from results
            return
        for found in results:
            begins = found.start if isinstance(found, Totals) else found.window_start
            begins = block.time[found.first] if begins is None else begins
            whole = begins >= whole_from
            yield found if whole.all() else found.take(np.flatnonzero(whole))

    def _refuse_floods(self, size: int) -> int:
        """Refuse more events than a batch can have in a bounded time, and than fit Spark's columns."""
        if size > MOST_ENTRIES:
            raise RunError(
                f"more than {MOST_ENTRIES:,} events in the matches of one step of the live stream",
                hint="use a smaller WITHIN, more partition attributes or conditions; COUNT(*) needs no list of matches",
            )
        return size

    def finished(self, whole: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows of groups that are all there."""
        found = finish_aggregates(self.physical.plan, self.schema, whole, self.numeric, spark=True)
        yield from found.cast(self.result).combine_chunks().to_batches()


def streaming_query_of(physical: Physical, schema: pa.Schema, numeric: str, *, early: bool = False) -> StreamingQuery:
    """The streaming query of a planned one over events with these columns; what cannot run live is refused."""
    scanned = pa.schema([schema.field(name) for name in physical.plan.scan.columns])
    if early:
        # of keys that are apart, groups are added up only when a window ends
        physical = _without(physical, (split_by_equality,)) if physical.plan.split else physical
        refuse_early(physical)
    physical = physical.in_numbers(numeric)
    return StreamingQuery(physical.plan.name or "", physical, scanned, numeric, live_kernel(physical), early)


def as_before_rules(streaming_query: StreamingQuery) -> StreamingQuery:
    """The same query without the rules that make its state another one."""
    physical = _without(streaming_query.physical, STATE_WITHOUT).in_numbers(streaming_query.numeric)
    return replace(streaming_query, physical=physical, kernel=live_kernel(physical))


def _without(physical: Physical, rules: tuple[Rule, ...]) -> Physical:
    plan = bind(physical.plan.query, physical.plan.schema)
    return plan_query(plan, physical.limits, without=rules)
