"""The page "Workbench" without a browser: errors at their place, pictures, runs with limits, pages, downloads."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from plotly.utils import PlotlyJSONEncoder
from tests.dashboard.small_archive import ABNORMAL, SCRIPT

from trendloom.dashboard.app_state import AppState
from trendloom.dashboard.marks import shown_tick
from trendloom.dashboard.requests import LONGEST_QUERY, QueryProblem, RunResult
from trendloom.dashboard.workbench import PAGE, Workbench, offset, shown_look, shown_problem, shown_timeline, underlined
from trendloom.errors import DataError, OptionError, TrendloomError
from trendloom.model.time import TimeAxis

SLOW_TASKS = "PATTERN SEQ(Memory m, Task t)\nWHERE [node] AND m.free < 100 AND t.seconds > 9\nWITHIN 10 s"
FOR_EVER = "PATTERN Task+ a[]\nWHERE avg(a[].seconds) > 1000"


@pytest.fixture(scope="module")
def bench(app_state: AppState) -> Workbench:
    return Workbench(app_state)


def as_text(shown: Any) -> str:
    return json.dumps(shown, cls=PlotlyJSONEncoder)


def result(bench: Workbench, text: str, low: str = "", high: str = "", seconds: float = 60) -> tuple[str, Any]:
    name = bench.run("plant", text, low, high, seconds)
    return name, bench.app_state.jobs.wait(name)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("PATTERN SEQ(Task a, Disk b", 1, 12, "never closed"),
        ("PATTERN SEQ(Task a, Disk b)\nWHERE a.second > 3", 2, 9, "no attribute 'second'"),
        ("PATTERN Task a\nWHERE a.seconds > 'x'", 2, None, ""),
        ("PATTRN Task a", 1, 1, ""),
    ],
)
def test_errors_have_a_place(bench: Workbench, text: str, line: int, column: int | None, said: str) -> None:
    problem = bench.look("plant", text).problem
    assert problem is not None
    assert (problem.line, problem.column if column else None) == (line, column)
    assert said in problem.message
    assert f"Go to line {line}" in as_text(shown_problem(text, problem, ()))


def test_the_wrong_part_is_underlined() -> None:
    text = "PATTERN SEQ(Task a)\nWHERE a.second > 3"
    problem = QueryProblem("no", None, 2, 9, 6)
    before, wrong, after = underlined(text, problem)
    assert (before, wrong.children, after) == ("PATTERN SEQ(Task a)\nWHERE a.", "second", " > 3\n")
    assert underlined(text, None) == [text + "\n"]
    assert offset("ab", QueryProblem("beyond", None, 9, 9)) == (2, 2)


def test_places_are_counted_as_browsers_do() -> None:
    shown = shown_problem("𝄞x", QueryProblem("no", None, 1, 2), ())
    assert getattr(shown[1], "data-from") == "2", "one letter for us, two for a browser"


def test_a_right_query_is_drawn_and_planned(bench: Workbench) -> None:
    look = bench.look("plant", SLOW_TASKS)
    assert look.problem is None
    text = as_text(shown_look(look))
    for said in ("m.free &lt; 100", "WITHIN 10 s", "within each node", "Physical plan"):
        assert said in text
    assert "right" in as_text(shown_problem(SLOW_TASKS, None, look.warnings))


def test_types_that_are_not_there_are_worth_a_warning(bench: Workbench) -> None:
    look = bench.look("plant", "PATTERN SEQ(Task a, Dsk b)")
    assert look.problem is None
    assert any("Dsk" in warning for warning in look.warnings)


def test_one_query_at_a_time_and_not_too_long(bench: Workbench) -> None:
    two = bench.look("plant", "QUERY a:\n  PATTERN Task t\n\nQUERY b:\n  PATTERN Disk d").problem
    assert two is not None
    assert "2: a, b" in two.message
    long = bench.look("plant", "x" * (LONGEST_QUERY + 1)).problem
    assert long is not None
    assert long.message == "the text is too long"


@pytest.mark.parametrize("text", ["PATTERN A{1,1000000}", "(" * 5_000, "PATTERN " + "SEQ(" * 400 + "A" + ")" * 400])
def test_texts_that_would_take_long_are_refused(bench: Workbench, text: str) -> None:
    assert bench.look("plant", text).problem is not None


def test_rows_come_in_pages_on_a_time_line_and_as_files(bench: Workbench) -> None:
    name, job = result(bench, SLOW_TASKS)
    found = job.answer
    assert isinstance(found, RunResult), job
    assert found.cut
    assert found.rows == 40, "as many as are allowed"
    assert "only the first 40 are kept" in as_text(bench.result(name)[1])
    first, number, pages = bench.page(name, 0)
    assert (number, pages) == (0, 2)
    assert f"rows 1 to {PAGE} of 40" in as_text(first)
    assert bench.page(name, 99)[1:] == (1, 2)
    assert bench.page(name, -1)[1:] == (0, 2)
    assert found.timeline is not None
    assert len(found.timeline.lanes) == 25
    assert "the first 25 of 40 matches" in as_text(shown_timeline(found))
    assert pq.read_table(bench.download(name, "parquet")).num_rows == 40
    assert pyarrow.csv.read_csv(bench.download(name, "csv")).num_rows == 40


def test_a_stretch_of_time_is_asked_for(bench: Workbench) -> None:
    low, high = (shown_tick(one, TimeAxis.timestamps()) for one in ABNORMAL)
    counted = "RETURN COUNT(*) AS n\nPATTERN Task t\nWHERE t.seconds > 5"
    _, inside = result(bench, counted, low, high)
    assert inside.answer.events == 60
    name, outside = result(bench, SLOW_TASKS, "", low)
    assert outside.answer.rows == 0
    assert "no match" in as_text(bench.result(name)[1])
    with pytest.raises(OptionError, match="is not a time"):
        bench.run("plant", counted, "yesterday", "", 5)


def test_windowed_rows_lie_on_the_time_line_too(bench: Workbench) -> None:
    _, job = result(bench, "RETURN node, COUNT(*) AS n\nPATTERN Task t\nWHERE [node]\nGROUP BY node\nWITHIN 10 minutes")
    lanes = job.answer.timeline.lanes
    assert [mark.label for mark in lanes[0].marks] == ["window_start", "window_end"]


def test_times_that_are_returned_lie_on_the_time_line(bench: Workbench) -> None:
    _, job = result(bench, "RETURN m.time AS since\nPATTERN Memory m\nWHERE m.free < 50")
    assert {mark.label for lane in job.answer.timeline.lanes for mark in lane.marks} == {"since"}


def test_a_query_that_would_run_for_ever_is_stopped(bench: Workbench) -> None:
    name, job = result(bench, FOR_EVER, seconds=3)
    assert job.state == "failed"
    assert "memory" in job.said or "not done after 3 seconds" in job.said
    with pytest.raises(DataError):
        bench.download(name, "csv")


def test_nobody_gets_more_time_than_the_page_allows(bench: Workbench) -> None:
    name = bench.run("plant", "PATTERN Task t\nWHERE t.seconds > 9.99", "", "", 1e9)
    assert bench.app_state.jobs.wait(name).state == "done"
    for odd in (None, -1):
        assert (
            bench.app_state.jobs.wait(bench.run("plant", "RETURN COUNT(*) PATTERN Task t", "", "", odd)).state == "done"
        )


def test_a_broken_query_does_not_run(bench: Workbench) -> None:
    name, job = result(bench, "PATTERN SEQ(Task a")
    assert job.state == "failed"
    assert "never closed" in as_text(bench.result(name)[1])


@pytest.mark.parametrize(("name", "format"), [("unknown", "csv"), ("../../etc", "csv"), ("unknown", "../passwd")])
def test_downloads_are_of_runs_only(bench: Workbench, name: str, format: str) -> None:
    with pytest.raises(TrendloomError):
        bench.download(name, format)


def test_names_in_data_are_text(bench: Workbench) -> None:
    name, job = result(bench, f"PATTERN SEQ(`{SCRIPT}` s, Disk `<b>d</b>`)\nWITHIN 1 minute")
    assert job.state == "done", job
    assert "<b>d</b> 2023" in as_text(bench.page(name, 0)[0]), "as text, which React escapes"
    assert "<b>" not in as_text(shown_timeline(job.answer)), "Plotly reads HTML in what it writes"
    assert "<script" not in as_text(shown_look(bench.look("plant", f"PATTERN SEQ(`{SCRIPT}` s, Disk d)"))[0])
