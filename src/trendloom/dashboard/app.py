"""The application: both pages in one frame, guarded, with everything it shows served by itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Dash, Input, Output, dcc, html, set_props
from flask import Flask, Response, abort, send_file

from trendloom.dashboard import monitor_page, workbench
from trendloom.dashboard.access import Access, guard
from trendloom.dashboard.app_state import AppState, Archives, archives_at
from trendloom.dashboard.jobs import Allowance, PageJobs
from trendloom.dashboard.parts import aria, choices, trouble
from trendloom.errors import OptionError, RunError, TrendloomError, option

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer


INDEX = """<!DOCTYPE html>
<html lang="en">
    <head>
        {%metas%}
        <title>{%title%}</title>
        {%favicon%}
        {%css%}
    </head>
    <body>
        {%app_entry%}
        <footer>
            {%config%}
            {%scripts%}
            {%renderer%}
        </footer>
    </body>
</html>"""
TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def make_app(archives: Archives, jobs: PageJobs, access: Access) -> Dash:
    """The application over some archives; `app.server` is what serves it."""
    app = Dash(
        __name__,
        server=Flask("trendloom.dashboard"),  # type: ignore[arg-type]
        assets_folder="assets",
        title="Trendloom",
        update_title="",
        serve_locally=True,
        compress=False,
        index_string=INDEX,
        add_log_handler=False,
        enable_mcp=False,
        on_error=_show_error,
        meta_tags=[
            {"name": "viewport", "content": "width=device-width, initial-scale=1"},
            {"name": "color-scheme", "content": "light dark"},
        ],
    )
    app_state = AppState(archives, jobs)
    app.layout = _layout(archives, jobs)
    monitor_page.wire(app, app_state)
    workbench.wire(app, app_state)
    _wire_frame(app)
    _serve_downloads(app.server, workbench.Workbench(app_state))
    guard(app.server, access, app.csp_hashes())
    return app


def _show_error(error: Exception) -> None:
    """An error that no action handled appears at the top of the page, which goes on."""
    unexpected = TrendloomError(f"unexpected {type(error).__name__}", hint="load the page again")
    set_props("frame-said", {"children": trouble(error if isinstance(error, TrendloomError) else unexpected)})


def _layout(archives: Archives, jobs: PageJobs) -> html.Div:
    names = list(archives)
    return html.Div(
        [
            html.A("Skip to the page", href="#main", className="skip"),
            dcc.Location(id="place", refresh=False),
            html.Header(
                [
                    html.Span("Trendloom", className="brand"),
                    html.Nav(
                        [
                            dcc.Link("Monitor", href="/", id="to-monitor"),
                            dcc.Link("Workbench", href="/workbench", id="to-workbench"),
                        ],
                        **aria(label="Pages"),
                    ),
                    html.Div(
                        [
                            html.Label("Archive", htmlFor="archive"),
                            dcc.Dropdown(id="archive", options=choices(names), value=names[0], clearable=False),
                        ],
                        className="field inline",
                    ),
                    html.Button("Theme", id="theme-switch", className="quiet"),
                ]
            ),
            html.Main(
                [
                    html.H1(id="heading"),
                    html.Div(id="frame-said", role="alert"),
                    monitor_page.layout(),
                    workbench.layout(jobs.allowance.seconds),
                ],
                id="main",
                tabIndex=-1,
            ),
        ],
        id="frame",
    )


def _wire_frame(app: Dash) -> None:
    """Callbacks that run in the browser: which page is shown, and the colour theme."""
    app.clientside_callback(
        ClientsideFunction("trendloom", "turnTo"),
        Output("monitor-page", "hidden"),
        Output("workbench-page", "hidden"),
        Output("to-monitor", "className"),
        Output("to-workbench", "className"),
        Output("heading", "children"),
        Input("place", "pathname"),
    )
    app.clientside_callback(
        ClientsideFunction("trendloom", "light"),
        Output("theme-switch", "children"),
        Input("theme-switch", "n_clicks"),
    )


def _serve_downloads(server: Flask, page: workbench.Workbench) -> None:
    @server.get("/download/<name>/<format>")
    def download(name: str, format: str) -> Response:
        try:
            found = page.download(name, format)
        except TrendloomError as error:
            abort(Response(f"{error}\n", 404, mimetype="text/plain"))
        return send_file(found, mimetype=TYPES[format], as_attachment=True, download_name=f"rows.{format}")


# ------------------------------------------------------------------------------------------------ serving
#
# One process, a thread for each request. Requests are not logged, because an address may hold the token.


IDLE_SECONDS = 30
"""A connection that sends nothing for so long is dropped."""


def require_dash() -> None:
    try:
        import dash  # noqa: F401
    except ImportError as problem:
        raise OptionError("the page needs Dash", hint="pip install 'trendloom[dashboard]'") from problem


def serve(
    paths: Sequence[str | Path],
    access: Access,
    allowance: Allowance | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Show archives on a page until SIGINT or SIGTERM; `ready` is called with the address once the server listens."""
    archives = archives_at(paths)
    server = _listening(access)
    jobs = PageJobs(allowance)
    try:
        jobs.warm()
        bound = replace(access, port=server.server_port)
        server.app = make_app(archives, jobs, bound).server
        ready(bound.address)
        _serve_until_signalled(server)
    finally:
        jobs.close()


def _listening(access: Access) -> BaseWSGIServer:
    from werkzeug.serving import WSGIRequestHandler, make_server

    class QuietHandler(WSGIRequestHandler):
        timeout = IDLE_SECONDS

        def log(self, type: str, message: str, *args: Any) -> None:
            """Nothing of a request is written anywhere."""

    try:
        return make_server(access.host, access.port, _starting, threaded=True, request_handler=QuietHandler)
    except (OSError, SystemExit) as problem:  # Werkzeug exits where an address is taken
        raise RunError(
            f"nobody can listen at {access.host}:{access.port}",
            hint=f"another program may use it already: try {option('port', access.port + 1)}",
        ) from problem


def _starting(environ: Any, start_response: Any) -> list[bytes]:
    start_response("503 Service Unavailable", [("Content-Type", "text/plain")])
    return [b"starting\n"]


def _serve_until_signalled(server: BaseWSGIServer) -> None:

    def end(*_: object) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve_forever(poll_interval=0.2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        server.server_close()
