"""What all pages of a server share: the archives it shows and the errands it runs; nothing that is a visitor's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from dash import html

from trendloom.dashboard.archives import Archives
from trendloom.dashboard.jobs import Errands
from trendloom.dashboard.parts import message, trouble
from trendloom.errors import TrendloomError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Desk:
    """The archives and the errands."""

    archives: Archives
    errands: Errands


def told(work: Callable[P, R], *given: P.args, **named: P.kwargs) -> tuple[R | None, html.Div | None]:
    """What work gives, or else what to tell the visitor: whatever goes wrong, the page goes on."""
    try:
        return work(*given, **named), None
    except TrendloomError as error:
        return None, trouble(error)
    except MemoryError:
        return None, message("error", "there is not enough memory for this", "choose a smaller stretch of time")
