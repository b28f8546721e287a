"""The page "Workbench": a query written, checked meanwhile, run over an archive, its rows shown and downloaded.

First the actions, as plain functions of what the browser sends; then the layout of the page and the callbacks that
connect it to the actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from trendloom.dashboard.app_state import AppState, attempt, job_stores, wire_stop
from trendloom.dashboard.figures import drawing_figure, timeline_figure
from trendloom.dashboard.jobs import PageJob
from trendloom.dashboard.marks import tick_at
from trendloom.dashboard.parts import aria, card, field, graph, message, notes, shown_value, table
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
"""Formats of downloads."""


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
        """Start a query; returns the name of the job."""
        opened = self.app_state.archives.open(archive)
        allowance = self.app_state.jobs.allowance
        wanted = min(_seconds(seconds, allowance.seconds), allowance.seconds)
        stretch = (_optional(low, opened.axis), _optional(high, opened.axis))
        given = (opened.root, str(text or ""), stretch, replace(allowance, seconds=wanted))
        return self.app_state.jobs.send(run_query, *given, seconds=wanted)

    def result(self, name: str | None) -> tuple[PageJob, Any]:
        """The state of a run, and what to show of it."""
        job = self.app_state.jobs.look(name)
        if job.state == "running":
            return job, message("busy", job.said)
        if job.state == "stopped":
            return job, message("warning", "stopped before it was done")
        if job.state == "failed":
            return job, message("error", job.said, job.hint)
        return job, self._summary(job.answer)

    def _summary(self, found: RunResult) -> list[html.Div]:
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
    """The error, with a button that leads to its place; or that there is none."""
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


# ------------------------------------------------------------------------------------------------- layout


EXAMPLE = "PATTERN SEQ(A a, B+ b[])\nWITHIN 1 hour"


def layout(seconds: float) -> html.Div:
    """The page, with an empty editor. `seconds`: the longest that a query may run."""
    return html.Div(
        [_editor(), html.Div(id="looked-at"), _running(seconds), _rows(), *_unseen()],
        id="workbench-page",
        className="page",
        hidden=True,
    )


def _editor() -> html.Section:
    text = dcc.Textarea(
        id="text",
        value="",
        placeholder=EXAMPLE,
        spellCheck=False,
        wrap="off",
        rows=9,
        maxLength=LONGEST_QUERY,
        persistence=True,
        persistence_type="session",
    )
    return card(
        "Query",
        html.Label("Query text", htmlFor="text", className="unseen"),
        html.Div([html.Pre(id="underlined", className="underlined", **aria(hidden="true")), text], className="editor"),
        html.Div(id="problem", role="status"),
    )


def _running(seconds: float) -> html.Section:
    limits = sorted({one for one in (5.0, 20.0, 60.0, 300.0) if one < seconds} | {seconds})
    options = [{"label": f"{one:g} s", "value": one} for one in limits]
    chosen = max([one for one in limits if one <= 20] or limits[:1])
    return card(
        "Run",
        html.Div(
            [
                field("From (UTC, optional)", dcc.Input(id="run-from", type="text", autoComplete="off")),
                field("To", dcc.Input(id="run-to", type="text", autoComplete="off")),
                field("Time limit", dcc.Dropdown(id="run-seconds", options=options, value=chosen, clearable=False)),
                html.Button("Run", id="run", className="primary", title="Ctrl+Enter in the editor"),
                html.Button("Stop", id="run-stop", className="quiet", disabled=True),
            ],
            className="fields row",
        ),
        html.Div(id="run-said", role="status"),
    )


def _rows() -> html.Section:
    taking = [html.A(f"Download {word}", id=f"download-{one}", href="", download="") for one, word in FORMATS.items()]
    return card(
        "Rows",
        html.Div(id="rows-timeline"),
        html.Div(id="rows-table"),
        html.Div(
            [
                html.Button("Previous", id="page-previous", className="quiet"),
                html.Span(id="page-said", role="status"),
                html.Button("Next", id="page-next", className="quiet"),
                html.Span(taking, className="downloads"),
            ],
            className="row pages",
        ),
        id="rows",
        hidden=True,
    )


def _unseen() -> list[Any]:
    return [
        dcc.Store(id="typed"),
        *job_stores("run"),
        dcc.Store(id="page-number", data=0),
    ]


# -------------------------------------------------------------------------------------------------- wiring


def wire(app: Dash, app_state: AppState) -> None:
    """Register the callbacks of the page."""
    page = Workbench(app_state)
    _wire_editor(app, page)
    _wire_running(app, page)
    _wire_rows(app, page)


def _wire_editor(app: Dash, page: Workbench) -> None:
    # the browser waits until nobody has typed for a moment, so that not every letter is a request
    app.clientside_callback(
        ClientsideFunction("trendloom", "settled"),
        Output("typed", "data"),
        Output("underlined", "children", allow_duplicate=True),
        Input("text", "value"),
        prevent_initial_call="initial_duplicate",
    )

    @app.callback(
        Output("problem", "children"),
        Output("underlined", "children"),
        Output("looked-at", "children"),
        Input("typed", "data"),
        Input("archive", "value"),
    )
    def look(text: str | None, archive: object) -> tuple[Any, Any, Any]:
        if not text or not text.strip():
            return [html.Div("Write a query: what is wrong with it is shown here.", className="hint")], "", []
        found, problem = attempt(page.look, archive, text)
        if found is None:
            return problem, "", no_update
        shown = card("What it means", *shown_look(found)) if found.drawing is not None else no_update
        return shown_problem(text, found.problem, found.warnings), underlined(text, found.problem), shown


def _wire_running(app: Dash, page: Workbench) -> None:
    @app.callback(
        Output("run-job", "data"),
        Output("run-clock", "disabled", allow_duplicate=True),
        Output("run-said", "children", allow_duplicate=True),
        Output("rows", "hidden", allow_duplicate=True),
        Input("run", "n_clicks"),
        State("archive", "value"),
        State("text", "value"),
        State("run-from", "value"),
        State("run-to", "value"),
        State("run-seconds", "value"),
        prevent_initial_call=True,
    )
    def run(clicks: Any, archive: object, text: Any, low: Any, high: Any, seconds: Any) -> tuple[Any, ...]:
        name, problem = attempt(page.run, archive, text, low, high, seconds)
        if name is None:
            return None, True, problem, True
        return name, False, message("busy", "starting"), True

    @app.callback(
        Output("run-said", "children"),
        Output("run-clock", "disabled"),
        Output("rows", "hidden"),
        Output("rows-timeline", "children"),
        Output("page-number", "data", allow_duplicate=True),
        *(Output(f"download-{one}", "href") for one in FORMATS),
        Input("run-clock", "n_intervals"),
        State("run-job", "data"),
        prevent_initial_call=True,
    )
    def follow_job(ticks: Any, name: str | None) -> tuple[Any, ...]:
        nothing = (no_update,) * (2 + len(FORMATS))
        found, problem = attempt(page.result, name)
        if found is None:
            return problem, True, True, *nothing
        job, said = found
        if job.state != "done":
            return said, job.state != "running", True, *nothing
        links = [f"/download/{name}/{one}" for one in FORMATS]
        return said, True, False, shown_timeline(job.answer), {"job": name, "page": 0}, *links

    wire_stop(app, page.app_state.jobs, "run")


def _wire_rows(app: Dash, page: Workbench) -> None:
    @app.callback(
        Output("page-number", "data"),
        Input("page-previous", "n_clicks"),
        Input("page-next", "n_clicks"),
        State("page-number", "data"),
        prevent_initial_call=True,
    )
    def turn(previous: Any, following: Any, now: Any) -> Any:
        if not isinstance(now, dict):
            return no_update
        step = -1 if ctx.triggered_id == "page-previous" else 1
        return {**now, "page": int(now["page"]) + step}

    @app.callback(
        Output("rows-table", "children"),
        Output("page-said", "children"),
        Output("page-previous", "disabled"),
        Output("page-next", "disabled"),
        Input("page-number", "data"),
        prevent_initial_call=True,
    )
    def show(now: Any) -> tuple[Any, ...]:
        if not isinstance(now, dict):
            return (no_update,) * 4
        found, problem = attempt(page.page, now.get("job"), int(now.get("page", 0)))
        if found is None:
            return problem, "", True, True
        shown, number, pages = found
        return shown, f"page {number + 1:,} of {pages:,}", number == 0, number == pages - 1
