"""The pen for matches: a lane for each, dots on it, a curve above, and what the axes and colours mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trendloom.viz.canvas import FAINT, GRID, INK, NOTE, PALETTE, save, style
from trendloom.viz.timeline import Curve, Mark, Span, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_timeline(drawn: Timeline, target: Path) -> Path:
    """Draw matches into a file whose name was checked."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = len(drawn.lanes)
    with rc_context(style()):
        figure = Figure(figsize=(10, (2.9 if drawn.curve else 0.2) + 0.9 + 0.26 * max(2, rows)))
        top, bottom = _panels(figure, rows, drawn.curve is not None, shared=drawn.since is None)
        if top is not None and drawn.curve is not None:
            _draw_curve(top, drawn.curve)
            _draw_points(top, drawn)
            _shade(top, drawn.spans)
        _draw_rows(bottom, drawn)
        if drawn.since is None:
            _draw_rug(bottom, drawn.rug, rows)
            _shade(bottom, drawn.spans)
        if top is None or drawn.since is None:
            label_time(bottom, drawn.rug)
        if top is not None and drawn.since is not None:
            label_time(top, drawn.rug)
        _head(top or bottom, drawn.title, drawn.count)
        draw_legend(top or bottom, drawn.palette, drawn.spans_label if drawn.spans else None)
        return save(figure, target)


# ------------------------------------------------------------------------------------------------- panels


def _panels(figure: Any, rows: int, with_curve: bool, *, shared: bool) -> tuple[Axes | None, Axes]:
    if not with_curve:
        return None, figure.add_subplot()
    heights = (2.4, 0.26 * max(2, rows) + 0.3)
    gap = 0.12 if shared else 0.9
    grid = figure.add_gridspec(2, 1, height_ratios=heights, hspace=gap / (sum(heights) / 2))
    bottom = figure.add_subplot(grid[1])
    top = figure.add_subplot(grid[0], sharex=bottom if shared else None)
    if shared:
        top.tick_params(labelbottom=False, length=0)
    return top, bottom


def _draw_curve(axes: Axes, curve: Curve) -> None:
    axes.plot(curve.times, curve.values, color="#7C8894", linewidth=0.8, zorder=2)
    axes.set_ylabel(curve.name)
    clean(axes)
    axes.grid(axis="y", color=GRID, linewidth=0.8)


def _draw_points(axes: Axes, drawn: Timeline) -> None:
    marks = [mark for lane in drawn.lanes for mark in lane.marks if mark.value is not None]
    moments: list[Any] = [mark.time for mark in marks]
    heights: list[Any] = [mark.value for mark in marks]
    axes.scatter(
        moments,
        heights,
        c=[drawn.palette[mark.label] for mark in marks],
        s=22,
        edgecolors="white",
        linewidths=0.5,
        zorder=4,
    )


def _draw_rows(axes: Axes, drawn: Timeline) -> None:
    lanes = drawn.lanes
    names, moments = [lane.name for lane in lanes], [lane.moments for lane in lanes]
    draw_lanes(axes, [lane.marks for lane in lanes], drawn.palette, moments, names)
    axes.set_ylim(len(lanes) + 0.3, -0.7)
    axes.set_ylabel("match")
    axes.set_xlabel(drawn.since or "")


def draw_lanes(
    axes: Axes,
    matches: Sequence[Sequence[Mark]],
    palette: Mapping[str, str],
    moments: Sequence[Sequence[Any]],
    names: Sequence[str],
) -> None:
    """A lane for each match, the first on top: its name, a line from the first event to the last, and the events."""
    for row, (match, when) in enumerate(zip(matches, moments, strict=True)):
        axes.plot([when[0], when[-1]], [row, row], color="#C4C9CF", linewidth=2.2, zorder=2)
        dots = [palette[mark.label] for mark in match]
        axes.scatter(when, [row] * len(match), c=dots, s=32, edgecolors="white", linewidths=0.6, zorder=3)
    axes.set_yticks(range(len(matches)), names, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    clean(axes)


def _draw_rug(axes: Axes, rug: npt.NDArray[Any], row: int) -> None:
    """Every event of the stream as a tick below the matches."""
    axes.plot(rug, np.full(len(rug), row - 0.1), linestyle="none", marker="|", color=FAINT, markersize=4)


def clean(axes: Axes) -> None:
    """No frame, and what is drawn above the grid."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)


def _shade(axes: Axes, spans: Sequence[Span]) -> None:
    for start, end in spans:
        axes.axvspan(start, end, color=PALETTE[1], alpha=0.16, linewidth=0, zorder=0)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- labels


def label_time(axes: Axes, times: npt.NDArray[Any]) -> None:
    """Name the axis of these times, and put marks at round ones."""
    import matplotlib.dates
    from matplotlib.ticker import MaxNLocator

    dates: Any = matplotlib.dates  # its classes are untyped

    if np.issubdtype(times.dtype, np.datetime64):
        locator = dates.AutoDateLocator(minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.set_xlabel("time (UTC)")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
        axes.set_xlabel("time")


def _head(axes: Axes, title: str, count: str) -> None:
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=10)
    axes.set_title(count, loc="right", fontsize=9, color=NOTE, pad=10)


def draw_legend(axes: Axes, palette: Mapping[str, str], spans_label: str | None = None) -> None:
    """Say which colour is which variable, to the right of the picture."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], linestyle="none", marker="o", markersize=6, color=colour, label=name)
        for name, colour in palette.items()
    ]
    if spans_label:
        handles.append(Patch(color=PALETTE[1], alpha=0.25, label=spans_label))
    if handles:
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.005, 1.02),
            frameon=False,
            fontsize=9,
            labelcolor=INK,
            handletextpad=0.5,
        )
