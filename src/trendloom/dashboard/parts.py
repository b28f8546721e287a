"""Parts that pages are made of: fields with labels, messages, tables. Text is text: React shows it as it is."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from dash import dcc, html

from trendloom.errors import TrendloomError

LONGEST_CELL = 160
QUIET_GRAPH: dict[str, Any] = {"displayModeBar": False}


def field(label: str, component: Any) -> html.Div:
    """A component with a label above it."""
    return html.Div([html.Label(label, htmlFor=component.id), component], className="field")


def aria(**words: str) -> dict[str, Any]:
    """Attributes for screen readers."""
    return {f"aria-{name}": word for name, word in words.items()}


def message(kind: str, said: str, hint: str | None = None) -> html.Div:
    """A message; `kind` is error, warning, good or busy."""
    word = {"error": "Error", "warning": "Note", "good": "Done", "busy": "Working"}[kind]
    parts = [html.Strong(word + ": "), html.Span(said)]
    parts += [] if hint is None else [html.Div(hint, className="hint")]
    return html.Div(parts, className=f"message {kind}")


def trouble(error: TrendloomError) -> html.Div:
    """An error in its own words."""
    return message("error", error.message, error.hint)


def notes(said: Iterable[str]) -> list[html.Div]:
    """Several notes in one message."""
    text = "\n".join(said)
    return [message("warning", text)] if text else []


def choices(values: Iterable[str]) -> list[dict[str, str]]:
    """Options of a dropdown."""
    return [{"label": value, "value": value} for value in values]


def card(heading: str, *children: Any, **given: Any) -> html.Section:
    """A section of a page with its heading; `given`: attributes of the section."""
    return html.Section([html.H2(heading), *children], className="card", **given)


def graph(id: str, figure: Any, *, described: str, config: dict[str, Any] | None = None) -> html.Div:
    """A figure with a description for screen readers: as wide as the page, unless it has a width of its own."""
    layout, given = figure.layout, dict(config or QUIET_GRAPH)
    size = {"height": f"{layout.height}px"} | ({} if layout.width is None else {"width": f"{layout.width}px"})
    shown = dcc.Graph(id=id, figure=figure, config=given, responsive=layout.width is None, style=size)  # type: ignore[arg-type]
    return html.Div(shown, role="img", className="graph", **aria(label=described))


# -------------------------------------------------------------------------------------------------- tables


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str) -> html.Div:
    """A table that can be scrolled sidewise by keyboard as well."""
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in names]))
    body = html.Tbody([html.Tr([_cell(value) for value in row]) for row in rows])
    shown = html.Table([html.Caption(caption), head, body])
    return html.Div(shown, className="scroll", tabIndex=0, role="region", **aria(label=caption))


def _cell(value: Any) -> html.Td:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return html.Td(shown_value(value), className="number" if number else "")


def shown_value(value: Any) -> str:
    """A value of a row as a person reads it."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.6g}" if math.isfinite(value) else str(value)
        case datetime.datetime():
            plain = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
            return plain.isoformat(sep=" ")
        case list():
            return _cut(" → ".join(_steps(value)))
        case _:
            return _cut(str(value))


def _steps(values: Sequence[Any]) -> Iterator[str]:
    """The events of a match; several of one variable in a row are counted."""
    for name, run in groupby(values, key=lambda value: value.get("var") if isinstance(value, dict) else None):
        some = list(run)
        if name is None:
            yield from map(shown_value, some)
        elif len(some) > 1:
            yield f"{name} ×{len(some)}"
        else:
            yield f"{name} {shown_value(some[0].get('time', ''))}".strip()


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
