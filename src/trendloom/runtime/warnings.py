"""Warnings reach the caller by one way, whatever engine runs: as data to whoever listens, else as Python's warnings.

What reading the events brings up is said once; what a query brings up is said with its name. A warning of Python's
points at the first line outside this package, so that it is shown once for each call that people wrote.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable

from trendloom.errors import QueryWarning
from trendloom.logical.plan import Plan

Warn = Callable[[QueryWarning, str | None], None]
"""What hears a warning, and the name of its query, where it belongs to one of a workload."""


def warn_in_python(warning: QueryWarning, query: str | None = None) -> None:
    """The warning as one of Python's."""
    text = str(warning) if query is None else f"query {query}: {warning}"
    warnings.warn(text, stacklevel=_frames_inside() + 1)


def report_warnings(reading: Iterable[QueryWarning], plans: Iterable[Plan], warn: Warn) -> None:
    """All that is known before queries run."""
    for warning in reading:
        warn(warning, None)
    for plan in plans:
        for warning in plan.warnings:
            warn(warning, plan.name)


def _frames_inside() -> int:
    """How many frames from the caller of this on are our own."""
    frame, count = sys._getframe(1), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count
