"""The page "Workbench" drawn and wired: which parts it has, and which action answers to which of them."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from trendloom.dashboard.app_state import AppState, told
from trendloom.dashboard.parts import aria, card, field, message
from trendloom.dashboard.requests import LONGEST_QUERY
from trendloom.dashboard.workbench import FORMATS, Workbench, shown_look, shown_problem, shown_timeline, underlined

PULSE_MS = 400
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
    return html.Section(
        [
            html.H2("Rows"),
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
        ],
        id="rows",
        className="card",
        hidden=True,
    )


def _unseen() -> list[Any]:
    return [
        dcc.Store(id="typed"),
        dcc.Store(id="run-errand"),
        dcc.Store(id="page-number", data=0),
        dcc.Interval(id="run-clock", interval=PULSE_MS, disabled=True),
    ]


# -------------------------------------------------------------------------------------------------- wiring


def wire(app: Dash, app_state: AppState) -> None:
    """Have the parts of the page answered."""
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
        found, problem = told(page.look, archive, text)
        if found is None:
            return problem, "", no_update
        shown = card("What it means", *shown_look(found)) if found.drawing is not None else no_update
        return shown_problem(text, found.problem, found.warnings), underlined(text, found.problem), shown


def _wire_running(app: Dash, page: Workbench) -> None:
    @app.callback(
        Output("run-errand", "data"),
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
        name, problem = told(page.run, archive, text, low, high, seconds)
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
        State("run-errand", "data"),
        prevent_initial_call=True,
    )
    def hear(ticks: Any, name: str | None) -> tuple[Any, ...]:
        nothing = (no_update,) * (2 + len(FORMATS))
        found, problem = told(page.result, name)
        if found is None:
            return problem, True, True, *nothing
        job, said = found
        if job.state != "done":
            return said, job.state != "running", True, *nothing
        links = [f"/download/{name}/{one}" for one in FORMATS]
        return said, True, False, shown_timeline(job.answer), {"errand": name, "page": 0}, *links

    @app.callback(Output("run-stop", "disabled"), Input("run-clock", "disabled"))
    def can_stop(still: bool | None) -> bool:
        return still is not False

    @app.callback(
        Output("run-stop", "n_clicks"),
        Input("run-stop", "n_clicks"),
        State("run-errand", "data"),
        prevent_initial_call=True,
    )
    def stop(clicks: Any, name: str | None) -> Any:
        if clicks:
            page.app_state.jobs.stop(name)
        return no_update


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
        found, problem = told(page.page, now.get("errand"), int(now.get("page", 0)))
        if found is None:
            return problem, "", True, True
        shown, number, pages = found
        return shown, f"page {number + 1:,} of {pages:,}", number == 0, number == pages - 1
