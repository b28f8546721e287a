"""Matches on a time line: one row per match, one dot per event, a colour per variable; over a curve if there is one.

Matches that are dots on the whole time line (shorter than 3 % of it) are drawn since their first event instead.
The curve is thinned to the lowest and highest value of each pixel column, so a million points draw like a thousand and
no spike is lost. More matches than fit are cut, and the picture says how many there are.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trendloom.errors import OptionError, did_you_mean
from trendloom.viz.canvas import FAINT, GRID, INK, PALETTE, check_picture, colours, require_matplotlib, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Time = int | float | datetime.datetime
Span = tuple[Time, Time]

_PIXELS = 1500


class Mark(NamedTuple):
    """One event of a match; `value` None where there is no curve to put it on."""

    time: Time
    value: float | None
    label: str


def draw_matches(
    events: pa.Table,
    matches: Sequence[Sequence[tuple[Time, float | None, str]]],
    path: str | Path,
    *,
    time: str = "time",
    value: str | None = None,
    spans: Sequence[Span] = (),
    spans_label: str = "labelled",
    title: str | None = None,
    most: int = 25,
    relative: bool | None = None,
) -> Path:
    """Draw matches over the stream they were found in, into an .svg or .png file.

    `value` names a column of `events` to draw as a curve above the matches; `spans` are stretches of time to shade.
    `relative` draws the rows since each match's first event; None lets the length of the matches decide.
    """
    target = check_picture(path)
    for name in (time, value):
        if name is not None and name not in events.column_names:
            raise OptionError(f"there is no column '{name}' to draw", hint=did_you_mean(name, events.column_names))
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shown = [sorted((Mark(*mark) for mark in match), key=_when) for match in matches[:most] if match]
    palette = colours(mark.label for match in shown for mark in match)
    times = _times(events, time)
    if relative is None:
        relative = value is not None and are_short(shown, times)
    with rc_context(style()):
        figure = Figure(figsize=(10, (2.9 if value else 0.2) + 0.9 + 0.26 * max(2, len(shown))))
        top, bottom = _panels(figure, len(shown), value is not None, shared=not relative)
        if top is not None and value is not None:
            _draw_curve(top, times, events.column(value), value)
            _draw_points(top, shown, palette)
            _shade(top, spans)
        if relative:
            _draw_rows(bottom, shown, palette, *since_first(shown))
        else:
            _draw_rows(bottom, shown, palette, [[mark.time for mark in match] for match in shown], None)
            _draw_rug(bottom, times, len(shown))
            _shade(bottom, spans)
        if top is None or not relative:
            label_time(bottom, times)
        if top is not None and relative:
            label_time(top, times)
        _head(top or bottom, title, len(matches), len(shown))
        draw_legend(top or bottom, palette, spans_label if spans else None)
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


def _when(mark: Mark) -> Any:
    return mark.time


def are_short(matches: Sequence[Sequence[Mark]], times: npt.NDArray[Any]) -> bool:
    """Whether the matches would be dots on the whole time line."""
    if not matches or len(times) == 0:
        return False
    longest: Any = max(_when(match[-1]) - _when(match[0]) for match in matches)
    whole: Any = (times.max() - times.min()).item()
    return bool(longest < 0.03 * whole)


def since_first(matches: Sequence[Sequence[Mark]]) -> tuple[list[list[Any]], str]:
    """Times since each match's first event, and what to call them."""
    gaps: list[list[Any]] = [[_when(mark) - _when(match[0]) for mark in match] for match in matches]
    longest: Any = max((row[-1] for row in gaps), default=0)
    if not isinstance(longest, datetime.timedelta):
        return gaps, "time since the first event of the match"
    units = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
    unit, seconds = next((pair for pair in units if longest.total_seconds() >= 3 * pair[1]), units[-1])
    return [
        [gap.total_seconds() / seconds for gap in row] for row in gaps
    ], f"{unit} since the first event of the match"


def _draw_curve(axes: Axes, times: npt.NDArray[Any], column: pa.ChunkedArray, name: str) -> None:
    order = np.argsort(times, kind="stable")
    values = column.cast(pa.float64()).to_numpy()[order]
    keep = thinned(values, _PIXELS)
    axes.plot(times[order][keep], values[keep], color="#7C8894", linewidth=0.8, zorder=2)
    axes.set_ylabel(name)
    _clean(axes)
    axes.grid(axis="y", color=GRID, linewidth=0.8)


def thinned(values: npt.NDArray[np.float64], buckets: int) -> npt.NDArray[np.int64]:
    """Indices of the first lowest and highest value of each of `buckets` stretches, in order; all if there are few."""
    if len(values) <= 2 * buckets:
        return np.arange(len(values), dtype=np.int64)
    edges = np.linspace(0, len(values), buckets + 1).astype(np.int64)
    keep: set[int] = set()
    for low, high in pairwise(edges):
        part = values[low:high]
        if not np.all(np.isnan(part)):
            keep.update((int(low + np.nanargmin(part)), int(low + np.nanargmax(part))))
    return np.array(sorted(keep), dtype=np.int64)


def _draw_points(axes: Axes, matches: Sequence[Sequence[Mark]], palette: dict[str, str]) -> None:
    marks = [mark for match in matches for mark in match if mark.value is not None]
    moments: list[Any] = [mark.time for mark in marks]
    heights: list[Any] = [mark.value for mark in marks]
    axes.scatter(
        moments,
        heights,
        c=[palette[mark.label] for mark in marks],
        s=22,
        edgecolors="white",
        linewidths=0.5,
        zorder=4,
    )


def _draw_rows(
    axes: Axes,
    matches: Sequence[Sequence[Mark]],
    palette: dict[str, str],
    moments: Sequence[Sequence[Any]],
    xlabel: str | None,
) -> None:
    names = [_row_name(number, match, dated=xlabel is not None) for number, match in enumerate(matches, 1)]
    draw_lanes(axes, matches, palette, moments, names)
    axes.set_ylim(len(matches) + 0.3, -0.7)
    axes.set_ylabel("match")
    axes.set_xlabel(xlabel or "")


def draw_lanes(
    axes: Axes,
    matches: Sequence[Sequence[Mark]],
    palette: dict[str, str],
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
    _clean(axes)


def _row_name(number: int, match: Sequence[Mark], *, dated: bool) -> str:
    """Rows that all begin at 0 say when they began."""
    first = match[0].time
    if not dated:
        return str(number)
    return f"{first:%b %d %H:%M}" if isinstance(first, datetime.datetime) else f"from {first}"


def _draw_rug(axes: Axes, times: npt.NDArray[Any], row: int) -> None:
    """Every event of the stream as a tick below the matches."""
    rug = times[thinned(np.arange(len(times), dtype=np.float64), _PIXELS)]
    axes.plot(rug, np.full(len(rug), row - 0.1), linestyle="none", marker="|", color=FAINT, markersize=4)


def _clean(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)


def _shade(axes: Axes, spans: Sequence[Span]) -> None:
    for start, end in spans:
        axes.axvspan(start, end, color=PALETTE[1], alpha=0.16, linewidth=0, zorder=0)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- labels


def _times(events: pa.Table, name: str) -> npt.NDArray[Any]:
    column = events.column(name)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return np.asarray(column.cast(pa.timestamp("us")).to_numpy())
    return np.asarray(column.to_numpy())


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


def _head(axes: Axes, title: str | None, total: int, shown: int) -> None:
    count = f"{total} match{'' if total == 1 else 'es'}" if shown == total else f"the first {shown} of {total} matches"
    axes.set_title(title or "", loc="left", fontsize=12, fontweight="bold", pad=10)
    axes.set_title(count, loc="right", fontsize=9, color="#555555", pad=10)


def draw_legend(axes: Axes, palette: dict[str, str], spans_label: str | None = None) -> None:
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
