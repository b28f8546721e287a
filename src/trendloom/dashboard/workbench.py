"""The page "Workbench": a query written, looked at meanwhile, run over an archive, its rows seen and taken away.

Here is what each action answers, as plain functions of what the browser sends; `workbench_page` wires them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from dash import html

from trendloom.dashboard.app_state import AppState
from trendloom.dashboard.figures import drawing_figure, timeline_figure
from trendloom.dashboard.jobs import PageJob
from trendloom.dashboard.marks import tick_at
from trendloom.dashboard.parts import graph, message, notes, shown_value, table
from trendloom.dashboard.requests import (
    LONGEST_QUERY,
    ROWS,
    QueryLook,
    QueryProblem,
    RunResult,
    look_at_query,
    run_query,
)
from trendloom.errors import DataError, OptionError, did_you_mean
from trendloom.io.write import write
from trendloom.model.time import TimeAxis

PAGE = 25
LOOK_SECONDS = 10.0
FORMATS = {"csv": "CSV", "parquet": "Parquet"}
"""What rows can be taken away as."""


@dataclass(frozen=True)
class Workbench:
    """The actions of the page."""

    app_state: AppState

    # ----------------------------------------------------------------------------------------- looking

    def look(self, archive: object, text: object) -> QueryLook:
        """A query as far as it is written."""
        folder = self.app_state.archives.folder(archive)
        written = str(text or "")
        if len(written) > LONGEST_QUERY:
            return QueryLook(
                QueryProblem("the text is too long", f"at most {LONGEST_QUERY:,} characters are read here")
            )
        found = self.app_state.jobs.ask(look_at_query, folder, written, seconds=LOOK_SECONDS)
        assert isinstance(found, QueryLook)
        return found

    # ----------------------------------------------------------------------------------------- running

    def run(self, archive: object, text: object, low: object, high: object, seconds: object) -> str:
        """Start a query; gives the errand's name."""
        opened = self.app_state.archives.open(archive).archive
        allowance = self.app_state.jobs.allowance
        wanted = min(_seconds(seconds, allowance.seconds), allowance.seconds)
        stretch = (_optional(low, opened.axis), _optional(high, opened.axis))
        given = (opened.root, str(text or ""), stretch, replace(allowance, seconds=wanted))
        return self.app_state.jobs.send(run_query, *given, seconds=wanted)

    def result(self, name: str | None) -> tuple[PageJob, Any]:
        """How a run stands, and what to tell of it."""
        job = self.app_state.jobs.look(name)
        if job.state == "running":
            return job, message("busy", job.said)
        if job.state == "stopped":
            return job, message("warning", "stopped before it was done")
        if job.state == "failed":
            return job, message("error", job.said, job.hint)
        return job, self._told(job.answer)

    def _told(self, found: RunResult) -> list[html.Div]:
        rows = f"{found.rows:,} row{'' if found.rows == 1 else 's'}"
        cut = f"; only the first {found.rows:,} are kept here" if found.cut else ""
        said = f"{rows} from {found.events:,} events in {found.seconds:.1f} s{cut}"
        return [message("good", said), *notes(found.notes)]

    # -------------------------------------------------------------------------------------------- rows

    def page(self, name: str | None, number: int) -> tuple[Any, int, int]:
        """A page of the rows as a table, the number of this page and how many there are."""
        job = self.app_state.jobs.look(name)
        pages = max(1, -(-job.answer.rows // PAGE))
        number = min(max(0, number), pages - 1)
        rows = pq.read_table(_rows_at(job)).slice(number * PAGE, PAGE)
        cells = [[_shown(value) for value in row.values()] for row in rows.to_pylist()]
        first = number * PAGE + 1
        caption = f"rows {first:,} to {first + len(cells) - 1:,} of {job.answer.rows:,}" if cells else "no rows"
        return table(rows.column_names, cells, caption=caption), number, pages

    def download(self, name: str, format: str) -> Path:
        """The rows as a file to take away."""
        if format not in FORMATS:
            raise OptionError(f"rows are not given as '{format}'", hint=did_you_mean(format, FORMATS))
        job = self.app_state.jobs.look(name)
        if job.state != "done":
            raise DataError("this run has no rows", hint="wait until it is done")
        stored = _rows_at(job)
        target = stored.with_suffix(f".{format}")
        if not target.exists():
            write(pq.read_table(stored), format, target)
        return target


def _rows_at(job: PageJob) -> Path:
    if job.folder is None or not (job.folder / ROWS).exists():
        raise DataError("these rows are not kept any more", hint="run the query again")
    return job.folder / ROWS


def _shown(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else shown_value(value)


def _optional(given: object, axis: TimeAxis) -> int | None:
    return tick_at(given, axis) if str(given or "").strip() else None


def _seconds(given: object, default: float) -> float:
    try:
        found = float(str(given))
    except ValueError:
        return default
    return found if found > 0 else default


# -------------------------------------------------------------------------------------------------- shown


def shown_problem(text: str, problem: QueryProblem | None, warnings: Sequence[str]) -> list[Any]:
    """What is wrong, with a button that leads to the place; or that nothing is."""
    if problem is None:
        return notes(warnings) or [html.Div("The query is right.", className="fine")]
    parts: list[Any] = [message("error", problem.message, problem.hint)]
    if problem.line is not None and problem.column is not None:
        where = f"Go to line {problem.line}, column {problem.column}"
        begin, end = offset(text, problem)
        data: dict[str, Any] = {"data-from": str(_in_browser(text[:begin])), "data-to": str(_in_browser(text[:end]))}
        parts.append(html.Button(where, id="go-to-problem", className="quiet", **data))
    return parts


def _in_browser(text: str) -> int:
    """The length of a text as browsers count it: rare letters take two places."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def offset(text: str, problem: QueryProblem) -> tuple[int, int]:
    """Where a problem lies in the text: from and to, in characters; at its end if it lies behind it."""
    lines = text.split("\n")
    line = min((problem.line or 1) - 1, len(lines) - 1)
    begin = sum(len(one) + 1 for one in lines[:line]) + min((problem.column or 1) - 1, len(lines[line]))
    return begin, min(begin + problem.length, len(text))


def underlined(text: str, problem: QueryProblem | None) -> list[Any]:
    """The text behind the editor, with the wrong part marked; the editor itself lies over it."""
    if problem is None or problem.line is None:
        return [text + "\n"]
    begin, end = offset(text, problem)
    wrong = text[begin:end] or " "
    return [text[:begin], html.Mark(wrong), text[end:] + "\n"]


def shown_look(look: QueryLook) -> list[Any]:
    """The pattern as a picture, and the plan."""
    if look.drawing is None:
        return []
    shown = graph("pattern", drawing_figure(look.drawing), described=f"The pattern of the query. {look.caption}")
    plan = html.Details([html.Summary("Plan"), html.Pre(look.plan, className="plan", tabIndex=0)])
    return [shown, html.P(look.caption, className="hint caption"), plan]


def shown_timeline(found: RunResult) -> list[Any]:
    """The first matches on a time line."""
    if found.timeline is None:
        return []
    caption = html.P(found.timeline.count, className="hint caption")
    return [graph("timeline", timeline_figure(found.timeline), described="Matches on a time line"), caption]
