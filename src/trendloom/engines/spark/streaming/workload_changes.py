"""A workload that changes while its stream runs: by its text, or because its events are no longer what they were.

Both are a restart between two batches on the same checkpoint (`service`): the manifest there holds which queries go on
with their state, which begin afresh and since when, and which are gone. What cannot be taken is refused before the
stream is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import TYPE_CHECKING, Any

from trendloom.engines.spark.streaming.checkpoint import manifest_of
from trendloom.engines.spark.streaming.stream import LivePlan, StreamSettings, open_live, plan_live
from trendloom.errors import QueryNote, TrendloomError
from trendloom.options import Options
from trendloom.planner.sharing.groups import SharingQuestion
from trendloom.runtime.reading import for_queries
from trendloom.runtime.warnings import Warn, report_warnings
from trendloom.streaming.statistics import Figures, figures_at
from trendloom.streaming.workload_diff import Queries, WorkloadDiff, take_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trendloom.engines.spark.archive import LiveArchiver

FACTOR = 2.0
"""How many times as large or small a share must have become."""
LEAST_SHARE = 0.05
"""Types that are rarer than this, before and after, do not count."""
LEAST_EVENTS = 10_000
LEAST_BATCHES = 20
"""How long a stretch is, in events and batches, before it is compared: a stream is renewed at most once in it."""


@dataclass(frozen=True)
class WorkloadWatch:
    """Callbacks: for warnings, and for a changed text that was refused."""

    warn: Warn
    refused: Callable[[TrendloomError], None]


@dataclass
class ChangingWorkload:
    """Queries over a stream of events. `look`: reads their text anew, where it may change."""

    events: DataFrame
    options: Options
    setting: StreamSettings
    checkpoint: str
    queries: Queries
    watch: WorkloadWatch
    look: Callable[[], str] | None = None
    last_seen: str = ""  # the text, or the error, of the last look
    plan: LivePlan = field(init=False)
    rows: DataFrame = field(init=False)
    drift: DriftWatch = field(init=False)
    waiting: str | None = None  # a text that takes effect if the next look finds the same
    pending: LivePlan | None = None
    searching: Thread | None = None
    archiver: LiveArchiver | None = None

    def first_rows(self) -> DataFrame:
        """Plan the workload and note it down in its checkpoint."""
        known = figures_at(self.checkpoint)
        self.drift = DriftWatch(known, known)
        plan = self._planned(self.queries, known)
        report_warnings(plan.frame.warnings, plan.workload.bound, self.watch.warn)
        return self._opened(plan)

    def is_due(self, figures: Figures) -> bool:
        """Whether the text has changed in a way that can be taken, or another plan is better."""
        text = self._changed_text()
        if text is not None:
            self._take(text)
        if self.pending is None and len(self.queries) > 1:
            self._plan_anew(figures)
        if self.pending is None and self.searching is not None and not self.searching.is_alive():
            self._take_better()
        return self.pending is not None

    def rows_after_restart(self) -> DataFrame:
        """The rows of the pending plan."""
        plan, self.pending = self.pending, None
        assert plan is not None
        try:
            return self._opened(plan)
        except TrendloomError as error:
            self.watch.refused(error)
            return self.rows

    # ------------------------------------------------------------------------------------------------ the text

    def _changed_text(self) -> str | TrendloomError | None:
        """The changed text, once two looks in a row have found the same: a file may be being written."""
        if self.look is None:
            return None
        found: str | TrendloomError
        try:
            found = self.look()
        except TrendloomError as error:
            found = error
        waiting, self.waiting = self.waiting, str(found)
        if str(found) == self.last_seen or str(found) != waiting:
            return None
        self.last_seen = str(found)
        return found

    def _take(self, text: str | TrendloomError) -> None:
        if isinstance(text, TrendloomError):
            self.watch.refused(text)
            return
        taken = take_queries(text, self.queries, self._check)
        for error in taken.refused:
            self.watch.refused(error)
        if taken.changes(self.queries):
            self.pending = self._planned(taken.queries, self.drift.known)
            self._report_changes(taken, self.pending)

    def _check(self, queries: Queries) -> None:
        """Refuse queries that do not bind, cannot run live, or do not fit each other or the checkpoint."""
        plan = self._planned(queries, self.drift.known)
        manifest_of(self.checkpoint, plan.streaming_queries, self.setting.buckets, self.setting.delay)

    def _report_changes(self, taken: WorkloadDiff, plan: LivePlan) -> None:
        added = {query.name for query in taken.added_to(self.queries)}
        report_warnings((), [one for one in plan.workload.bound if one.name in added], self.watch.warn)
        for query in taken.removed_from(self.queries):
            whose = "the query" if query.name is None else f"query '{query.name}'"
            self.watch.warn(QueryNote(f"{whose} is removed: its open windows are not given out"), None)

    # ---------------------------------------------------------------------------------------------- the plan

    def _plan_anew(self, figures: Figures) -> None:
        """Choose a plan by the events of late, where they have drifted; the same plan need not be started again."""
        drifted = self.drift.drifted_to(figures)
        if drifted is None:
            return
        self._swap(self._planned(self.queries, drifted), "events come at other rates: the workload is planned again")

    def _take_better(self) -> None:
        """Swap in the plan that the search has found, if it is another one."""
        self.searching = None
        better = self._planned(self.queries, self.drift.known, search=True)
        self._swap(better, "a better plan was found: the workload goes on with it")

    def _swap(self, plan: LivePlan, note: str) -> None:
        """Go on with another plan for the same queries; the same one need not be started again."""
        before, after = ([query.fingerprint for query in one.streaming_queries] for one in (self.plan, plan))
        if before == after and _ways(plan) != _ways(self.plan):
            self.pending = plan
            self.watch.warn(QueryNote(note), None)

    def _search_on(self) -> None:
        """Search for a better plan while the stream runs, where the search before it was limited."""
        questions = [one.question for one in self.plan.workload.shared_groups if not one.question.search.best]
        if questions:
            self.searching = Thread(target=_search, args=(questions,), daemon=True)
            self.searching.start()

    def _planned(self, queries: Queries, figures: Figures, *, search: bool = False) -> LivePlan:
        return plan_live(self.events, queries, for_queries(self.options, queries), figures, search=search)

    def _opened(self, plan: LivePlan) -> DataFrame:
        passing = plan
        if self.archiver is not None:
            passing = replace(plan, frame=replace(plan.frame, df=self.archiver.of_events(plan)))
        rows, news = open_live(passing, self.setting, self.checkpoint)
        self.rows = rows if self.archiver is None else self.archiver.of_rows(rows)
        self.plan, self.queries = plan, tuple(one.query for one in plan.workload.bound)
        self._search_on()
        for note in news:
            self.watch.warn(note, None)
        return self.rows


def _search(questions: list[SharingQuestion]) -> None:
    """Search to the end; the planner keeps the result for the next plan."""
    for question in questions:
        _ = question.without_limit.search


def _ways(plan: LivePlan) -> list[object]:
    """The groups of queries that a plan answers together, and how."""
    groups = plan.workload.shared_groups
    return [(group.members, group.kernel.backwards, group.kernel.segments) for group in groups]


# --------------------------------------------------------------------------------------------------------------- drift


@dataclass
class DriftWatch:
    """Compares a stream with the figures of its plan (`known`); `counted`: totals at the last comparison.

    Drift: types of events come at other rates than those that the plan was made with. Figures add up over the life of
    a stream, so they change ever more slowly. What counts is the stretch since the last comparison: the share of each
    type among all, beside its share in the figures of the plan. Answers do not depend on it.
    """

    known: Figures
    counted: Figures

    def drifted_to(self, newest: Figures) -> Figures | None:
        """The figures of the last stretch, if it is long enough and unlike the plan's; a new stretch then begins."""
        stretch = stretch_of(self.counted, newest)
        if newest.batch - self.counted.batch < LEAST_BATCHES or stretch.events < LEAST_EVENTS:
            return None
        self.counted = newest
        if not has_drifted(self.known, stretch):
            return None
        self.known = stretch
        return stretch


def has_drifted(known: Figures, recent: Figures) -> bool:
    """Whether any type that matters is much more, or much less, of the events than it was."""
    if not known.events:
        return bool(recent.events)
    common = known.types.keys() & recent.types.keys()
    before, after = (sum(figures.types[name] for name in common) for figures in (known, recent))
    if not before or not after:
        return False
    shares = (sorted((known.types[name] / before, recent.types[name] / after)) for name in common)
    return any(high >= LEAST_SHARE and high >= FACTOR * low for low, high in shares)


def stretch_of(earlier: Figures, newest: Figures) -> Figures:
    """The figures after `earlier`. Of keys and values the most in any batch is kept."""
    return Figures(
        newest.batch,
        newest.events - earlier.events,
        newest.first if earlier.last is None else earlier.last,
        newest.last,
        _less(newest.types, earlier.types),
        newest.keys,
        _less(newest.fitting, earlier.fitting),
        newest.domains,
    )


def _less(newest: Mapping[Any, int], earlier: Mapping[Any, int]) -> dict[Any, int]:
    return {one: count - earlier.get(one, 0) for one, count in newest.items()}
