"""The page "Monitor": its layout, and the callbacks that connect it to the actions of `monitor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update

from trendloom.dashboard.app_state import AppState, attempt, job_stores, wire_stop
from trendloom.dashboard.figures import empty
from trendloom.dashboard.marks import ABNORMAL, REFERENCE, Marks
from trendloom.dashboard.monitor import DEFAULT_WINDOW, Chosen, Monitoring
from trendloom.dashboard.parts import aria, card, choices, field, graph, message

LIVE_MS = 3_000
CHART_BUTTONS = {
    "displaylogo": False,
    "displayModeBar": True,
    "modeBarButtons": [["select2d", "zoom2d", "pan2d", "resetScale2d"]],
}
CHOSEN = [Input("archive", "value"), Input("query", "value"), Input("partition", "value"), Input("value", "value")]
CHOSEN_NOW = [State(one.component_id, one.component_property) for one in CHOSEN]


def layout() -> html.Div:
    """The page, before anything is chosen."""
    return html.Div([_choosing(), _marking(), _reason(), *_unseen()], id="monitor-page", className="page")


def _choosing() -> html.Section:
    live = dcc.Checklist(id="live", options=[{"label": "Follow a running stream", "value": "live"}], value=[])
    return card(
        "Results",
        html.Div(
            [
                field("Query", dcc.Dropdown(id="query", clearable=False)),
                field("Partition", dcc.Dropdown(id="partition", clearable=False)),
                field("Value", dcc.Dropdown(id="value", clearable=False)),
            ],
            className="fields",
        ),
        live,
        html.Div(id="chart-said", role="status"),
        graph("chart", empty("choose a query"), described="Results of the query over time", config=CHART_BUTTONS),
    )


def _marking() -> html.Section:
    kinds = [{"label": "Abnormal", "value": ABNORMAL}, {"label": "Reference", "value": REFERENCE}]
    return card(
        "Mark what is abnormal, and what is normal",
        html.P(
            "Drag over the chart, or type two times (UTC). Without a reference, the rest of the partition is one.",
            className="hint",
        ),
        html.Div(
            [
                html.Fieldset(
                    [html.Legend("Mark as"), dcc.RadioItems(id="kind", options=kinds, value=ABNORMAL, inline=True)],
                    className="field",
                ),
                field("From", dcc.Input(id="mark-from", type="text", debounce=False, autoComplete="off")),
                field("To", dcc.Input(id="mark-to", type="text", debounce=False, autoComplete="off")),
                html.Button("Mark", id="mark-add", className="quiet"),
                html.Button("Clear all", id="mark-clear", className="quiet"),
            ],
            className="fields row",
        ),
        html.Ul(id="marks-listed", className="marks"),
        html.Div(id="mark-said", role="status"),
    )


def _reason() -> html.Section:
    return card(
        "Why?",
        html.Div(
            [
                field("Window of features", dcc.Input(id="window", type="text", value=DEFAULT_WINDOW, debounce=True)),
                html.Button("Why?", id="why", className="primary"),
                html.Button("Stop", id="why-stop", className="quiet", disabled=True),
            ],
            className="fields row",
        ),
        html.Div(id="reason", **aria(live="polite")),
        html.Div(
            [
                field(
                    "Name of the monitor", dcc.Input(id="monitor-name", type="text", maxLength=64, autoComplete="off")
                ),
                html.Button("Save as monitor", id="monitor-save", className="quiet"),
            ],
            className="fields row",
            id="saving",
            hidden=True,
        ),
        html.Div(id="monitor-said", role="status"),
    )


def _unseen() -> list[Any]:
    return [
        dcc.Store(id="marks", storage_type="session"),
        dcc.Store(id="seen-version"),
        *job_stores("why"),
        *job_stores("save"),
        dcc.Interval(id="live-clock", interval=LIVE_MS, disabled=True),
    ]


# -------------------------------------------------------------------------------------------------- wiring


def wire(app: Dash, app_state: AppState) -> None:
    """Register the callbacks of the page."""
    page = Monitoring(app_state)
    _wire_choosing(app, page)
    _wire_chart(app, page)
    _wire_marking(app, page)
    _wire_reason(app, page)
    _wire_saving(app, page)


def _wire_choosing(app: Dash, page: Monitoring) -> None:
    @app.callback(
        Output("query", "options"), Output("query", "value"), Input("archive", "value"), State("query", "value")
    )
    def choose_archive(archive: object, before: object) -> tuple[Any, Any]:
        found, _ = attempt(page.queries, archive)
        names = found or []
        return choices(names), _kept_or_first(before, names)

    @app.callback(
        Output("partition", "options"),
        Output("partition", "value"),
        Output("value", "options"),
        Output("value", "value"),
        Input("query", "value"),
        Input("archive", "value"),
        State("partition", "value"),
        State("value", "value"),
    )
    def choose_query(query: object, archive: object, partition: object, value: object) -> tuple[Any, ...]:
        found, _ = attempt(page.partitions, archive, query)
        values, _ = attempt(page.values, archive, query)
        options = [{"label": one.label, "value": one.text} for one in found or ()]
        kept, names = _kept_or_first(partition, [one["value"] for one in options]), values or ()
        return options, kept, choices(names), _kept_or_first(value, names)


def _kept_or_first(before: object, options: Sequence[str]) -> object:
    return before if before in options else next(iter(options), None)


def _wire_chart(app: Dash, page: Monitoring) -> None:
    @app.callback(Output("live-clock", "disabled"), Input("live", "value"))
    def follow(live: list[str] | None) -> bool:
        return "live" not in (live or [])

    @app.callback(
        Output("chart", "figure"),
        Output("window", "value"),
        Output("chart-said", "children"),
        Output("seen-version", "data"),
        *CHOSEN,
        Input("marks", "data"),
        Input("live-clock", "n_intervals"),
        State("seen-version", "data"),
    )
    def draw(
        archive: object, query: object, partition: object, value: object, kept: Any, ticks: Any, seen: Any
    ) -> tuple[Any, ...]:
        version, _ = attempt(page.version, archive)
        if ctx.triggered_id == "live-clock" and version == seen:
            return no_update, no_update, no_update, no_update
        chosen = Chosen(archive, query, partition, value)
        if partition is None:
            return empty("this archive has no results of a query yet"), no_update, [], version
        shown, problem = attempt(page.chart, chosen, kept)
        if shown is None:
            return empty("there is no chart to show"), no_update, problem, version
        figure, proposed, said = shown
        anew = ctx.triggered_id in (None, "archive", "query", "partition")
        return figure, proposed if anew else no_update, said, version


def _wire_marking(app: Dash, page: Monitoring) -> None:
    @app.callback(
        Output("marks", "data"),
        Output("mark-said", "children"),
        Input("chart", "selectedData"),
        Input("mark-add", "n_clicks"),
        Input("mark-clear", "n_clicks"),
        Input({"type": "unmark", "place": ALL}, "n_clicks"),
        State("kind", "value"),
        State("mark-from", "value"),
        State("mark-to", "value"),
        State("marks", "data"),
        *CHOSEN_NOW,
        prevent_initial_call=True,
    )
    def mark(
        selected: Any, add: Any, clear: Any, removed: Any, kind: str, low: Any, high: Any, kept: Any, *chosen: object
    ) -> tuple[Any, Any]:
        now, trigger = Chosen(*chosen), ctx.triggered_id
        found: Marks | None
        problem: Any = None
        if trigger == "chart":
            found, problem = attempt(page.mark_selected, now, kept, kind, selected)
        elif trigger == "mark-add":
            found, problem = attempt(page.mark_typed, now, kept, kind, low, high)
        elif trigger == "mark-clear":
            found = Marks(now.chart)
        elif isinstance(trigger, dict) and any(removed):
            found = Marks.from_json(kept, now.chart).without(int(trigger["place"]))
        else:
            found = None
        return (no_update if found is None else found.to_json()), problem

    @app.callback(Output("marks-listed", "children"), Input("marks", "data"), *CHOSEN)
    def list_marks(kept: Any, *chosen: object) -> Any:
        found, _ = attempt(page.listed, Chosen(*chosen), kept)
        return found or []


def _wire_reason(app: Dash, page: Monitoring) -> None:
    @app.callback(
        Output("why-job", "data"),
        Output("why-clock", "disabled", allow_duplicate=True),
        Output("reason", "children", allow_duplicate=True),
        Output("saving", "hidden", allow_duplicate=True),
        Output("monitor-said", "children", allow_duplicate=True),
        Input("why", "n_clicks"),
        State("marks", "data"),
        State("window", "value"),
        *CHOSEN_NOW,
        prevent_initial_call=True,
    )
    def ask(clicks: Any, kept: Any, window: object, *chosen: object) -> tuple[Any, ...]:
        name, problem = attempt(page.ask, Chosen(*chosen), kept, window)
        if name is None:
            return None, True, problem, True, None
        return name, False, message("busy", "looking for reasons"), True, None

    @app.callback(
        Output("reason", "children"),
        Output("why-clock", "disabled"),
        Output("saving", "hidden"),
        Input("why-clock", "n_intervals"),
        State("why-job", "data"),
        prevent_initial_call=True,
    )
    def follow_job(ticks: Any, name: str | None) -> tuple[Any, bool, bool]:
        found, problem = attempt(page.reason, name)
        if found is None:
            return problem, True, True
        job, shown = found
        return shown, job.state != "running", job.state != "done"

    wire_stop(app, page.app_state.jobs, "why")


def _wire_saving(app: Dash, page: Monitoring) -> None:
    @app.callback(
        Output("save-job", "data"),
        Output("save-clock", "disabled", allow_duplicate=True),
        Output("monitor-said", "children", allow_duplicate=True),
        Input("monitor-save", "n_clicks"),
        State("why-job", "data"),
        State("monitor-name", "value"),
        prevent_initial_call=True,
    )
    def save(clicks: Any, reason: str | None, name: object) -> tuple[Any, ...]:
        job, problem = attempt(page.save, reason, name)
        if job is None:
            return None, True, problem
        return job, False, message("busy", "saving")

    @app.callback(
        Output("monitor-said", "children"),
        Output("save-clock", "disabled"),
        Input("save-clock", "n_intervals"),
        State("save-job", "data"),
        prevent_initial_call=True,
    )
    def saved(ticks: Any, job: str | None) -> tuple[Any, bool]:
        found, problem = attempt(page.saved, job)
        return (problem, True) if found is None else found
