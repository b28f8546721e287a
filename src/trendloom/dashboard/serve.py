"""Serve the page until somebody stops it: one process, a thread for each request, no line of what visitors ask.

Requests are not logged: an address may hold the token. A connection that sends nothing is dropped after a while.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendloom.errors import OptionError, RunError, option

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer

    from trendloom.dashboard.access import Access
    from trendloom.dashboard.jobs import Allowance

IDLE_SECONDS = 30


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
    """Show archives on a page until the process is told to end; `ready` hears the address once it listens."""
    from trendloom.dashboard.app import make_app
    from trendloom.dashboard.archives import archives_at
    from trendloom.dashboard.jobs import Errands

    archives = archives_at(paths)
    server = _listening(access)
    errands = Errands(allowance)
    try:
        errands.warm()
        bound = replace(access, port=server.server_port)
        server.app = make_app(archives, errands, bound).server
        ready(bound.address)
        _until_told(server)
    finally:
        errands.close()


def _listening(access: Access) -> BaseWSGIServer:
    from werkzeug.serving import WSGIRequestHandler, make_server

    class QuietHandler(WSGIRequestHandler):
        timeout = IDLE_SECONDS

        def log(self, type: str, message: str, *args: Any) -> None:
            """Nothing of a request is written anywhere."""

    try:
        return make_server(access.host, access.port, _starting, threaded=True, request_handler=QuietHandler)
    except SystemExit as problem:  # what Werkzeug makes of an address that is taken
        raise _cannot_listen(access) from problem
    except OSError as problem:
        raise _cannot_listen(access) from problem


def _cannot_listen(access: Access) -> RunError:
    return RunError(
        f"nobody can listen at {access.host}:{access.port}",
        hint=f"another program may use it already: try {option('port', access.port + 1)}",
    )


def _starting(environ: Any, start_response: Any) -> list[bytes]:
    start_response("503 Service Unavailable", [("Content-Type", "text/plain")])
    return [b"starting\n"]


def _until_told(server: BaseWSGIServer) -> None:
    """Serve until SIGINT or SIGTERM."""

    def end(*_: object) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve_forever(poll_interval=0.2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        server.server_close()
