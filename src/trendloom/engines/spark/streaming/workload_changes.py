"""A workload that changes while its stream runs: by its text, or because its events are no longer what they were.

Both are a restart between two batches on the same checkpoint (`service`): the manifest there says which queries go on
with their state, which begin afresh and since when, and which are gone. What cannot be taken is refused before the
stream is stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from trendloom.engines.spark.streaming.checkpoint import agreement_of
from trendloom.engines.spark.streaming.detect import LivePlan, open_live, plan_live
from trendloom.engines.spark.streaming.drift import DriftWatch
from trendloom.engines.spark.streaming.settings import Setting
from trendloom.engines.spark.streaming.sinks import Sink
from trendloom.errors import QueryNote, TrendloomError
from trendloom.options import Options
from trendloom.planner.sharing import SharingQuestion
from trendloom.runtime.warnings import Warn, tell_warnings
from trendloom.streaming.statistics import Figures, figures_at
from trendloom.streaming.workload_diff import Queries, Taken, take_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class WorkloadWatch:
    """What a caller wants to hear of a workload: warnings and notes, and what of a changed text was refused."""

    warn: Warn
    refused: Callable[[TrendloomError], None]


class Passage(Protocol):
    """What all events and all rows of a stream pass on their way, and come out of as they were."""

    def of_events(self, plan: LivePlan) -> DataFrame:
        """The events of a planned workload; raises what makes the workload impossible, before anything is touched."""
        ...

    def of_rows(self, rows: DataFrame) -> DataFrame:
        """The rows of the workload whose events passed last."""
        ...

    def sink(self, sink: Sink) -> Sink:
        """The sink of the stream, which also sees to what passed in a batch."""
        ...

    def close(self) -> None:
        """The stream has ended."""
        ...


@dataclass
class ChangingWorkload:
    """Queries over a stream of events. `look`: reads their text anew, where it may change."""

    events: DataFrame
    options: Options
    setting: Setting
    checkpoint: str
    queries: Queries
    watch: WorkloadWatch
    look: Callable[[], str] | None = None
    heeded: str = ""  # the text, or the error, that was looked at last
    plan: LivePlan = field(init=False)
    rows: DataFrame = field(init=False)
    drift: DriftWatch = field(init=False)
    waiting: str | None = None  # a text that is taken if the next look finds the same
    pending: LivePlan | None = None
    searching: Thread | None = None
    passage: Passage | None = None

    def first_rows(self) -> DataFrame:
        """Plan the workload and note it down in its checkpoint."""
        known = figures_at(self.checkpoint)
        self.drift = DriftWatch(known, known)
        plan = self._planned(self.queries, known)
        tell_warnings(plan.frame.warnings, plan.workload.bound, self.watch.warn)
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

    def renewed_rows(self) -> DataFrame:
        """The rows of what is pending."""
        plan, self.pending = self.pending, None
        assert plan is not None
        try:
            return self._opened(plan)
        except TrendloomError as error:
            self.watch.refused(error)
            return self.rows

    # ------------------------------------------------------------------------------------------------ the text

    def _changed_text(self) -> str | TrendloomError | None:
        """What the text has become, once two looks in a row have found the same: it may be being written."""
        if self.look is None:
            return None
        found: str | TrendloomError
        try:
            found = self.look()
        except TrendloomError as error:
            found = error
        waiting, self.waiting = self.waiting, str(found)
        if str(found) == self.heeded or str(found) != waiting:
            return None
        self.heeded = str(found)
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
            self._tell(taken, self.pending)

    def _check(self, queries: Queries) -> None:
        """Refuse queries that do not bind, cannot be served, or do not fit each other or the checkpoint."""
        plan = self._planned(queries, self.drift.known)
        agreement_of(self.checkpoint, plan.flows, self.setting.buckets, self.setting.delay)

    def _tell(self, taken: Taken, plan: LivePlan) -> None:
        added = {query.name for query in taken.added_to(self.queries)}
        tell_warnings((), [one for one in plan.workload.bound if one.name in added], self.watch.warn)
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
        self._swap(
            self._planned(self.queries, self.drift.known), "a better plan was found: the workload goes on with it"
        )

    def _swap(self, plan: LivePlan, note: str) -> None:
        """Go on with another plan for the same queries; the same one need not be started again."""
        same_state = [flow.fingerprint for flow in plan.flows] == [flow.fingerprint for flow in self.plan.flows]
        if same_state and _ways(plan) != _ways(self.plan):
            self.pending = plan
            self.watch.warn(QueryNote(note), None)

    def _search_on(self) -> None:
        """Go on looking for a better plan where the search ran out of time, while the stream runs."""
        questions = [group.question for group in self.plan.workload.together if group.question.is_open]
        if questions:
            self.searching = Thread(target=_search, args=(questions,), daemon=True)
            self.searching.start()

    def _planned(self, queries: Queries, figures: Figures) -> LivePlan:
        return plan_live(self.events, queries, self.options.for_queries(queries), figures)

    def _opened(self, plan: LivePlan) -> DataFrame:
        passing = plan
        if self.passage is not None:
            passing = replace(plan, frame=replace(plan.frame, df=self.passage.of_events(plan)))
        rows, news = open_live(passing, self.setting, self.checkpoint)
        self.rows = rows if self.passage is None else self.passage.of_rows(rows)
        self.plan, self.queries = plan, tuple(one.query for one in plan.workload.bound)
        self._search_on()
        for note in news:
            self.watch.warn(note, None)
        return self.rows


def _search(questions: list[SharingQuestion]) -> None:
    for question in questions:
        question.search_on()


def _ways(plan: LivePlan) -> list[object]:
    """How a plan answers queries together."""
    groups = plan.workload.together
    return [(group.members, group.kernel.backwards, group.kernel.segments) for group in groups]
