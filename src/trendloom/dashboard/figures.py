"""Plotly figures of what `viz` computes as data.

Names and texts of data may hold anything, and Plotly reads some HTML in what it writes: so every text is escaped
here, in one place (`plain`). Lines, areas and letters have colours that can be seen on light and on dark; where the
theme has better ones, the page's style sheet says so.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from trendloom.viz.canvas import INK, NOTE, Arrow, Disc, Dot, Drawing, Point, Words
from trendloom.viz.reasons import ABNORMAL, COLOURS, UNMARKED, MarkedSpan, ReasonChart
from trendloom.viz.timeline import Curve, Timeline

LINE, QUIET, LETTERS = "#3B82B8", "#7A848F", "#8A939D"
CLEAR = "rgba(0,0,0,0)"
FONT = "system-ui, sans-serif"
PIXELS = 96  # of an inch of a drawing
POINTS = 72  # of an inch of letters
MANY = 200  # points of a series that would hide its line


def plain(text: object) -> str:
    """Text as it is, whatever Plotly would make of it."""
    return html.escape(str(text), quote=False).replace("\n", "<br>")


def _figure(height: int, **layout: Any) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 56, "r": 16, "t": 28, "b": 40},
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        font={"family": FONT, "size": 12, "color": LETTERS},
        showlegend=False,
        hoverlabel={"font": {"family": FONT, "size": 12}},
        modebar={"bgcolor": CLEAR, "color": QUIET},
        **layout,
    )
    axis = {"gridcolor": "rgba(128,138,148,0.22)", "zeroline": False, "linecolor": "rgba(128,138,148,0.5)"}
    figure.update_xaxes(**axis, automargin=True)
    figure.update_yaxes(**axis, automargin=True)
    return figure


def _moments(times: npt.NDArray[Any] | Sequence[Any]) -> list[Any]:
    """Times for JSON: dates as text, numbers as they are."""
    found = np.asarray(times)
    if np.issubdtype(found.dtype, np.datetime64):
        return [str(one) for one in found.astype("datetime64[us]")]
    return list(found.tolist())


def _numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    """Numbers for JSON: None for NaN and infinity."""
    return [float(one) if np.isfinite(one) else None for one in values]


def empty(said: str) -> go.Figure:
    """Nothing to show, and why."""
    figure = _figure(300)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(text=plain(said), showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    return figure


# ------------------------------------------------------------------------------------------------- results


def series_figure(curve: Curve, spans: Sequence[MarkedSpan], kept: str) -> go.Figure:
    """The results of a query over time, for marking. `kept`: while it stays the same, so do zoom and place."""
    figure = _figure(340, dragmode="select", selectdirection="h", uirevision=kept, hovermode="closest")
    moments = _moments(curve.times)
    figure.add_trace(
        go.Scatter(
            x=moments,
            y=_numbers(curve.values),
            mode="lines+markers",
            name=plain(curve.name),
            line={"color": LINE, "width": 1.4},
            marker={"color": LINE, "size": 4 if len(moments) <= MANY else 2.5},
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            hovertemplate="%{x}<br>%{y}<extra></extra>",
        )
    )
    figure.update_yaxes(title={"text": plain(curve.name)})
    dated = bool(np.issubdtype(curve.times.dtype, np.datetime64))
    figure.update_xaxes(title={"text": "time (UTC)" if dated else "time"}, type="date" if dated else "linear")
    figure.update_layout(newselection={"line": {"color": QUIET, "width": 1}}, activeselection={"fillcolor": CLEAR})
    _shade(figure, spans)
    return figure


def _shade(figure: go.Figure, spans: Sequence[MarkedSpan], opacity: float = 0.18) -> None:
    for span in spans:
        low, high = _moments(np.asarray([span.low, span.high]))
        figure.add_vrect(x0=low, x1=high, fillcolor=COLOURS[span.kind], opacity=opacity, line_width=0, layer="below")


def reason_figure(chart: ReasonChart) -> go.Figure:
    """One feature over time, abnormal and reference coloured, the boundary as a line."""
    figure = _figure(210, hovermode="closest")
    moments, values = _moments(chart.times), _numbers(chart.values)
    line = {"color": UNMARKED, "width": 1.2}
    hover = "%{x}<br>%{y}<extra></extra>"
    figure.add_trace(go.Scatter(x=moments, y=values, mode="lines", line=line, hovertemplate=hover))
    for kind, colour in COLOURS.items():
        places = np.flatnonzero(chart.kinds == kind)
        x, y = [moments[at] for at in places], [values[at] for at in places]
        look = {"color": colour, "size": 5, "symbol": "diamond" if kind == "abnormal" else "circle"}
        figure.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=look, name=kind, hovertemplate=hover))
    for bound in chart.bounds:
        figure.add_hline(y=bound, line={"color": ABNORMAL, "width": 1.4, "dash": "dash"})
    _shade(figure, chart.spans, 0.1)
    dated = bool(np.issubdtype(chart.times.dtype, np.datetime64))
    figure.update_xaxes(type="date" if dated else "linear")
    if chart.logarithmic:
        figure.update_yaxes(type="log", dtick=1)
    figure.update_layout(margin={"l": 56, "r": 16, "t": 8, "b": 28})
    return figure


# ------------------------------------------------------------------------------------------------- matches


def timeline_figure(drawn: Timeline) -> go.Figure:
    """Matches on a time line: a lane each, the first on top; one trace for each variable, so the legend names them."""
    rows = len(drawn.lanes)
    figure = _figure(max(160, 90 + 24 * rows), hovermode="closest")
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    _add_lines(figure, drawn)
    for label, colour in drawn.palette.items():
        places = [
            (moment, row)
            for row, lane in enumerate(drawn.lanes)
            for mark, moment in zip(lane.marks, lane.moments, strict=True)
            if mark.label == label
        ]
        figure.add_trace(
            go.Scatter(
                x=_moments([moment for moment, _ in places]),
                y=[row for _, row in places],
                mode="markers",
                name=plain(label),
                marker={"color": colour, "size": 8},
                hovertemplate=f"{plain(label)}<br>%{{x}}<extra></extra>",
            )
        )
    if drawn.since is None and len(drawn.rug):
        ticks = {"symbol": "line-ns-open", "size": 7, "color": QUIET}
        x = _moments(drawn.rug)
        figure.add_trace(
            go.Scatter(x=x, y=[rows] * len(x), mode="markers", marker=ticks, name="events", hoverinfo="skip")
        )
    names = [plain(lane.name) for lane in drawn.lanes]
    figure.update_yaxes(tickvals=list(range(rows)), ticktext=names, range=[rows + 0.6, -0.7], title={"text": "match"})
    figure.update_xaxes(title={"text": plain(drawn.since or ("time (UTC)" if drawn.dated else "time"))})
    figure.update_xaxes(type="date" if drawn.dated and drawn.since is None else "linear")
    return figure


def _add_lines(figure: go.Figure, drawn: Timeline) -> None:
    """From the first to the last event of each match, all in one trace with gaps between them."""
    ends = [_moments([lane.moments[0], lane.moments[-1]]) for lane in drawn.lanes]
    x = [moment for pair in ends for moment in (*pair, None)]
    y = [row for row in range(len(ends)) for _ in range(3)]
    look = {"color": QUIET, "width": 2}
    figure.add_trace(go.Scatter(x=x, y=y, mode="lines", line=look, opacity=0.6, showlegend=False, hoverinfo="skip"))


# ------------------------------------------------------------------------------------------------ patterns


def drawing_figure(drawing: Drawing) -> go.Figure:
    """Shapes in a plane, an inch of them as wide as it is high."""
    (left, low), (right, high) = drawing.low, drawing.high
    figure = _figure(int((high - low) * PIXELS), width=int((right - left) * PIXELS))
    figure.update_layout(margin={"l": 0, "r": 0, "t": 0, "b": 0}, dragmode=False, hovermode=False)
    figure.update_xaxes(visible=False, range=[left, right], fixedrange=True)
    figure.update_yaxes(visible=False, range=[low, high], scaleanchor="x", fixedrange=True)
    figure.add_trace(go.Scatter(x=[left, right], y=[low, high], mode="markers", marker={"opacity": 0}))
    for shape in sorted(drawing.shapes, key=_level):
        match shape:
            case Disc():
                _add_disc(figure, shape)
            case Arrow():
                _add_arrow(figure, shape)
            case Dot():
                _add_disc(figure, Disc(shape.centre, 0.04, shape.colour, shape.colour))
            case Words():
                _add_words(figure, shape)
    return figure


def _level(shape: object) -> int:
    found = getattr(shape, "level", 2)
    return 2 if found is None else int(found)


def _add_disc(figure: go.Figure, disc: Disc) -> None:
    (x, y), r = disc.centre, disc.radius
    fill = CLEAR if disc.fill == "white" else disc.fill[:7]
    solid = len(disc.fill) == 7
    ends = {"x0": x - r, "x1": x + r, "y0": y - r, "y1": y + r}
    figure.add_shape(type="circle", **ends, line={"color": disc.rim, "width": disc.width}, fillcolor=CLEAR)
    figure.add_shape(type="circle", **ends, line={"width": 0}, fillcolor=fill, opacity=1 if solid else 0.15)


def _add_arrow(figure: go.Figure, arrow: Arrow) -> None:
    """The curve as a path, its head as a triangle along the last stretch."""
    points = arrow.points
    step = {2: "L", 3: "Q", 4: "C"}[len(points)]
    end, before = points[-1], points[-2]
    along = np.subtract(end, before)
    along = along / max(float(np.hypot(*along)), 1e-9)
    colour = QUIET if arrow.colour == INK else arrow.colour
    neck = tuple(np.subtract(end, along * 0.1))
    path = f"M {_at(points[0])} {step} " + " ".join(_at(point) for point in (*points[1:-1], neck))
    line = {"color": colour, "width": 1.6, "dash": "dash" if arrow.dashed else "solid"}
    figure.add_shape(type="path", path=path, line=line)
    left = np.array([-along[1], along[0]]) * 0.055
    back = np.subtract(end, along * 0.13)
    head = f"M {_at(end)} L {_at(back + left)} L {_at(back - left)} Z"
    figure.add_shape(type="path", path=head, line={"color": colour, "width": 0}, fillcolor=colour)


def _at(point: Point | npt.NDArray[Any]) -> str:
    return f"{point[0]:.4f},{point[1]:.4f}"


def _add_words(figure: go.Figure, words: Words) -> None:
    if not words.text:
        return
    look: dict[str, Any] = {}
    if words.box is not None:
        look = {"bordercolor": words.box[1], "borderwidth": 1, "borderpad": 3, "bgcolor": "rgba(213,94,0,0.12)"}
    text = plain(words.text)
    figure.add_annotation(
        x=words.place[0],
        y=words.place[1],
        text=f"<b>{text}</b>" if words.bold else text,
        showarrow=False,
        xanchor="center",
        yanchor={"center": "middle"}.get(words.upright, words.upright),
        font={"size": words.size * PIXELS / POINTS, "color": _readable(words.colour)},
        **look,
    )


def _readable(colour: str | None) -> str:
    """A colour of letters that can be read on light and on dark."""
    return {None: LETTERS, NOTE: LETTERS, "#A33F00": ABNORMAL}.get(colour, colour or LETTERS)
