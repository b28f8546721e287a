"""Matches on a time line: one row per match, one dot per event, a colour per variable; over a curve if there is one.

Matches that are dots on the whole time line (shorter than 3 % of it) are drawn since their first event instead.
The curve is thinned to the lowest and highest value of each pixel column, so a million points draw like a thousand and
no spike is lost. More matches than fit are cut, and the picture says how many there are.
`timeline_of` returns it as data; `draw_matches` draws it into a file, the dashboard onto its page.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.errors import OptionError, did_you_mean
from trendloom.viz.canvas import FAINT, GRID, PALETTE, clean, colours, draw_legend, heading, label_time, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Time = int | float | datetime.datetime
Span = tuple[Time, Time]

_PIXELS = 1500


class Mark(NamedTuple):
    """One event of a match; `value` None where there is no curve to put it on."""

    time: Time
    value: float | None
    label: str


@dataclass(frozen=True)
class MatchLane:
    """The row of one match: its name, its events in order of time, and where on the axis of the rows they stand."""

    name: str
    marks: tuple[Mark, ...]
    moments: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Curve:
    """Values over time, in order, thinned to what can be seen."""

    name: str
    times: npt.NDArray[Any]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Timeline:
    """Matches as they are drawn. `since`: the rows begin at their first events, and this names their axis.

    `rug` has the times of the stream that are ticked below rows on the time line.
    """

    lanes: tuple[MatchLane, ...]
    palette: Mapping[str, str]
    curve: Curve | None
    since: str | None
    rug: npt.NDArray[Any]
    spans: tuple[Span, ...]
    spans_label: str
    title: str
    count: str

    @property
    def dated(self) -> bool:
        """Whether times are dates, and not numbers."""
        return bool(np.issubdtype(self.rug.dtype, np.datetime64))


@dataclass(frozen=True, kw_only=True)
class TimelineOptions:
    """Options of drawing matches over their stream.

    `value` names a column of the events to draw as a curve above the matches; `spans` are stretches of time to shade.
    `relative` draws the rows since each match's first event; None lets the length of the matches decide. `total`: the
    number of all matches, if not all are given.
    """

    time: str = "time"
    value: str | None = None
    spans: Sequence[Span] = ()
    spans_label: str = "labelled"
    title: str | None = None
    most: int = 25
    relative: bool | None = None
    total: int | None = None


def draw_matches(
    events: pa.Table, matches: Sequence[Sequence[tuple[Time, float | None, str]]], path: str | Path, **options: Any
) -> Path:
    """Draw matches over the stream they were found in, into an .svg or .png file; `options`: see `TimelineOptions`."""
    with picture(path) as figure:
        _draw_timeline(figure, timeline_of(events, matches, **options))
    return Path(path)


def timeline_of(
    events: pa.Table, matches: Sequence[Sequence[tuple[Time, float | None, str]]], **options: Any
) -> Timeline:
    """The timeline that `draw_matches` draws, with the same options."""
    chosen = TimelineOptions(**options)
    time, value, relative = chosen.time, chosen.value, chosen.relative
    for name in (time, value):
        if name is not None and name not in events.column_names:
            raise OptionError(f"there is no column '{name}' to draw", hint=did_you_mean(name, events.column_names))
    shown = [sorted((Mark(*mark) for mark in match), key=_when) for match in matches[: chosen.most] if match]
    times = times_of(events, time)
    if relative is None:
        relative = value is not None and are_short(shown, times)
    moments, since = since_first(shown) if relative else ([[mark.time for mark in match] for match in shown], None)
    rows = enumerate(zip(shown, moments, strict=True), 1)
    return Timeline(
        tuple(
            MatchLane(_row_name(number, match, dated=relative), tuple(match), tuple(when))
            for number, (match, when) in rows
        ),
        colours(mark.label for match in shown for mark in match),
        None if value is None else curve_of(value, times, events.column(value)),
        since,
        times[thinned(np.arange(len(times), dtype=np.float64), _PIXELS)],
        tuple(chosen.spans),
        chosen.spans_label,
        chosen.title or "",
        counted(len(matches) if chosen.total is None else chosen.total, len(shown)),
    )


def _when(mark: Mark) -> Any:
    return mark.time


def _row_name(number: int, match: Sequence[Mark], *, dated: bool) -> str:
    """Rows that all begin at 0 say when they began."""
    first = match[0].time
    if not dated:
        return str(number)
    return f"{first:%b %d %H:%M}" if isinstance(first, datetime.datetime) else f"from {first}"


def counted(total: int, shown: int) -> str:
    """The number of matches, and of those that are drawn."""
    return f"{total} match{'' if total == 1 else 'es'}" if shown == total else f"the first {shown} of {total} matches"


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


# ------------------------------------------------------------------------------------------------- curves


def times_of(events: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column of times, as dates or as numbers."""
    column = events.column(name)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return np.asarray(column.cast(pa.timestamp("us")).to_numpy())
    return np.asarray(column.to_numpy())


def curve_of(name: str, times: npt.NDArray[Any], column: pa.ChunkedArray) -> Curve:
    """A column over time, in order of time."""
    order = np.argsort(times, kind="stable")
    values = column.cast(pa.float64()).to_numpy()[order]
    keep = thinned(values, _PIXELS)
    return Curve(name, times[order][keep], values[keep])


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


# --------------------------------------------------------------------------------------- rows of a query
#
# Rows of RETURN TRENDS show each event by its variable; others show their times (of a windowed row, where the window
# starts and ends). Rows without any time have no time line. The time line is that of the rows shown; matches that would
# be dots on it are drawn since their first event.
# Cost: the rows that are shown, and the times of all events for the ticks below them.


EVENTS = "events"


def timeline_of_rows(
    rows: pa.Table, events: pa.Table, times: Sequence[str], *, time: str = "time", most: int = 25
) -> Timeline | None:
    """The timeline of the first rows; None where they have no times.

    `times`: the columns of the rows that hold times; `events`: the stream, whose times are in the column `time`.
    """
    first = rows.slice(0, most)
    if EVENTS in rows.column_names:
        shown = [_of_events(match, time) for match in first.column(EVENTS).to_pylist()]
    elif times:
        shown = [_of_columns(row, times) for row in first.select(list(times)).to_pylist()]
    else:
        return None
    near = _around(events.select([time]), shown, time)
    matches = [match for match in shown if match]
    short = EVENTS in rows.column_names and are_short(matches, times_of(near, time))
    return timeline_of(near, matches, time=time, most=most, total=len(rows), relative=short)


def _around(events: pa.Table, shown: Sequence[Sequence[Mark]], time: str) -> pa.Table:
    """The events in the time of what is shown: it may be a small part of a long stream."""
    moments: list[Any] = [mark.time for match in shown for mark in match]
    if not moments:
        return events
    ticks = events.column(time)
    low, high = (
        pa.scalar(end).cast(_without_zone(ticks.type)).cast(ticks.type) for end in (min(moments), max(moments))
    )
    return events.filter(pc.and_(pc.greater_equal(ticks, low), pc.less_equal(ticks, high)))


def _without_zone(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _of_events(match: Sequence[dict[str, Any]] | None, time: str) -> list[Mark]:
    return [
        Mark(naive_utc(event[time]), None, str(event["var"])) for event in match or () if event.get(time) is not None
    ]


def _of_columns(row: dict[str, Any], columns: Sequence[str]) -> list[Mark]:
    return [Mark(naive_utc(row[name]), None, name) for name in columns if row[name] is not None]


def naive_utc(value: Any) -> Any:
    """Times of every zone as UTC without a zone, as axes have them."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


# ---------------------------------------------------------------------------------------------- into a file


def _draw_timeline(figure: Figure, drawn: Timeline) -> None:
    rows = len(drawn.lanes)
    figure.set_size_inches(10, (2.9 if drawn.curve else 0.2) + 0.9 + 0.26 * max(2, rows))
    top, bottom = _panels(figure, rows, drawn.curve is not None, shared=drawn.since is None)
    if top is not None and drawn.curve is not None:
        _draw_curve(top, drawn.curve)
        _draw_points(top, drawn)
        _shade(top, drawn.spans)
    _draw_rows(bottom, drawn)
    if drawn.since is None:
        # every event of the stream as a tick below the matches
        ticks = np.full(len(drawn.rug), rows - 0.1)
        bottom.plot(drawn.rug, ticks, linestyle="none", marker="|", color=FAINT, markersize=4)
        _shade(bottom, drawn.spans)
    label_time(bottom if top is None or drawn.since is None else top, drawn.rug)
    heading(top or bottom, drawn.title, drawn.count, pad=10)
    draw_legend(top or bottom, drawn.palette, drawn.spans_label if drawn.spans else None)


def _panels(figure: Figure, rows: int, with_curve: bool, *, shared: bool) -> tuple[Axes | None, Axes]:
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


def _shade(axes: Axes, spans: Sequence[Span]) -> None:
    for start, end in spans:
        axes.axvspan(start, end, color=PALETTE[1], alpha=0.16, linewidth=0, zorder=0)  # type: ignore[arg-type]
