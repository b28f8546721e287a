"""When a running workload is planned again: by a text that has settled, or by events that have drifted. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from trendloom.engines.spark.streaming import workload_changes as changing
from trendloom.engines.spark.streaming.stream import StreamSettings
from trendloom.engines.spark.streaming.workload_changes import (
    LEAST_BATCHES,
    LEAST_EVENTS,
    ChangingWorkload,
    WorkloadWatch,
)
from trendloom.errors import BindError, OptionError, TrendloomError
from trendloom.frontend.tql.parser import parse
from trendloom.options import Options
from trendloom.streaming.statistics import Figures, keep_figures
from trendloom.streaming.workload_diff import Queries

A = "QUERY a: PATTERN SEQ(A, B) WITHIN 5\n"
B = "QUERY b: PATTERN SEQ(B, C) WITHIN 5\n"
BAD = "QUERY bad: PATTERN SEQ(B, C) WITHIN 5\n"
MANY = LEAST_EVENTS


class Searching:
    """A question whose search may have been limited."""

    def __init__(self) -> None:
        self.search = SimpleNamespace(best=True, segments="")

    @property
    def without_limit(self) -> SimpleNamespace:
        return SimpleNamespace(search=SimpleNamespace(best=True, segments="better"))


@dataclass
class Trial:
    """A workload over no stream, with plans that say of themselves what they were made with."""

    texts: Iterator[str | TrendloomError] = field(default_factory=lambda: iter(()))
    said: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    opened: list[list[str | None]] = field(default_factory=list)
    state: Callable[[Figures], str] = lambda _: "the same"
    failing: bool = False
    question: Searching = field(default_factory=Searching)

    def look(self) -> str:
        found = next(self.texts)
        if isinstance(found, TrendloomError):
            raise found
        return found

    def plan_live(self, _events: object, queries: Queries, _options: Options, figures: Figures, *, search: bool) -> Any:
        if any(query.name == "bad" for query in queries):
            raise BindError("it does not bind")
        rates = "many A" if figures.types.get("A", 0) > figures.types.get("B", 0) else "many B"
        bound = tuple(SimpleNamespace(query=query, name=query.name, warnings=()) for query in queries)
        kernel = SimpleNamespace(backwards=rates, segments="better" if search else "")
        question = SimpleNamespace(search=SimpleNamespace(best=True)) if search else self.question
        group = SimpleNamespace(members=(0,), kernel=kernel, question=question)
        workload = SimpleNamespace(bound=bound, shared_groups=[group])
        streaming_queries = [SimpleNamespace(fingerprint=self.state(figures)) for _ in queries]
        return SimpleNamespace(
            workload=workload, streaming_queries=streaming_queries, frame=SimpleNamespace(warnings=())
        )

    def open_live(self, plan: Any, *_: object) -> tuple[str, tuple[()]]:
        if self.failing:
            raise OptionError("the checkpoint has changed")
        self.opened.append([one.name for one in plan.workload.bound])
        return f"rows {len(self.opened)}", ()


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    found = Trial()
    monkeypatch.setattr(changing, "plan_live", found.plan_live)
    monkeypatch.setattr(changing, "open_live", found.open_live)
    monkeypatch.setattr(changing, "manifest_of", lambda *_: None)
    return found


def started(trial: Trial, text: str, place: Any, *texts: str | TrendloomError) -> ChangingWorkload:
    keep_figures(figures({"A": 10, "B": 20}, 0), str(place))
    trial.texts = iter(texts)
    watch = WorkloadWatch(lambda note, _: trial.said.append(str(note)), lambda error: trial.refused.append(str(error)))
    workload = ChangingWorkload(
        None, Options(), StreamSettings("1 second", 1), str(place), parse(text), watch,  # type: ignore[arg-type]
        look=trial.look if texts else None, last_seen=text,
    )  # fmt: skip
    assert workload.first_rows() == "rows 1"  # type: ignore[comparison-overlap]
    return workload


def figures(types: dict[str, int], batch: int) -> Figures:
    return Figures(batch, sum(types.values()), 0, 10**6, types)


def dues(workload: ChangingWorkload, looks: int) -> list[bool]:
    return [workload.is_due(Figures()) for _ in range(looks)]


def test_a_text_is_taken_when_two_looks_find_the_same(trial: Trial, tmp_path: Any) -> None:
    half = A + "QUERY b: PATTERN SEQ("
    workload = started(trial, A, tmp_path, A, half, A + B, A + B)
    assert dues(workload, 4) == [False, False, False, True]
    assert trial.refused == []
    assert workload.rows_after_restart() == "rows 2"  # type: ignore[comparison-overlap]
    assert trial.opened == [["a"], ["a", "b"]]


def test_what_is_refused_is_told_once_and_needs_no_restart(trial: Trial, tmp_path: Any) -> None:
    workload = started(trial, A, tmp_path, A + BAD, A + BAD, A + BAD, A + BAD)
    assert dues(workload, 4) == [False] * 4
    assert trial.refused == ["it does not bind"]


def test_a_file_that_is_gone_and_comes_back_as_it_was(trial: Trial, tmp_path: Any) -> None:
    gone = OptionError("there is no query file")
    workload = started(trial, A, tmp_path, gone, gone, A, A, A)
    assert dues(workload, 5) == [False] * 5
    assert trial.refused == ["there is no query file"]


def test_a_removed_query_is_told(trial: Trial, tmp_path: Any) -> None:
    workload = started(trial, A + B, tmp_path, B, B)
    assert dues(workload, 2) == [False, True]
    assert trial.said == ["query 'a' is removed: its open windows are not given out"]


def test_what_fails_at_the_last_moment_leaves_the_old_rows(trial: Trial, tmp_path: Any) -> None:
    workload = started(trial, A, tmp_path, A + B, A + B)
    assert dues(workload, 2) == [False, True]
    trial.failing = True
    assert workload.rows_after_restart() == "rows 1"  # type: ignore[comparison-overlap]
    assert trial.refused == ["the checkpoint has changed"]
    assert [query.name for query in workload.queries] == ["a"]


# -------------------------------------------------------------------------------------------------- drift


def test_a_workload_is_planned_again_when_its_events_have_drifted(trial: Trial, tmp_path: Any) -> None:
    workload = started(trial, A + B, tmp_path)
    assert not workload.is_due(figures({"A": 10 + MANY, "B": 20}, 1))
    assert workload.is_due(figures({"A": 10 + MANY, "B": 20}, LEAST_BATCHES))
    assert trial.said == ["events come at other rates: the workload is planned again"]
    assert workload.rows_after_restart() == "rows 2"  # type: ignore[comparison-overlap]
    assert not workload.is_due(figures({"A": 10 + 2 * MANY, "B": 20}, 2 * LEAST_BATCHES))


@pytest.mark.parametrize("reason", ["one query", "the same plan", "another state"])
def test_reasons_to_leave_a_plan_as_it_is(trial: Trial, tmp_path: Any, reason: str) -> None:
    if reason == "another state":
        trial.state = lambda known: "other" if known.events > 1000 else "the same"
    workload = started(trial, A if reason == "one query" else A + B, tmp_path)
    types = {"A": 10, "B": 20 + MANY} if reason == "the same plan" else {"A": 10 + MANY, "B": 20}
    assert not workload.is_due(figures(types, LEAST_BATCHES))
    assert trial.said == []


def test_a_better_plan_is_swapped_in_when_the_search_has_found_it(trial: Trial, tmp_path: Any) -> None:
    trial.question.search.best = False
    workload = started(trial, "QUERY a: PATTERN A QUERY b: PATTERN B", tmp_path)
    assert workload.searching is not None
    workload.searching.join()
    workload.look = None
    assert workload.is_due(figures({"A": 10, "B": 20}, 0))
    assert "a better plan was found" in trial.said[-1]
    workload.rows_after_restart()
    assert not workload.is_due(figures({"A": 10, "B": 20}, 0))
