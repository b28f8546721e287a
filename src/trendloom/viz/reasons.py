"""Charts of a reason: each kept feature over time, abnormal and reference coloured, the boundary as a line.

`charts_of` returns the charts as data; `draw_reasons` draws them into a file, the dashboard onto its page. Windows
without a mark are grey. Values are joined by a line where windows follow each other; a gap stays a gap.
Cost: the windows of the kept features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.diagnosis import CandidateFeature, Diagnosis
from trendloom.diagnosis.features import FeatureTable
from trendloom.diagnosis.periods import Period
from trendloom.viz.canvas import (
    FORBIDDEN,
    GRID,
    NOTE,
    PALETTE,
    as_times,
    clean,
    dot,
    label_time,
    legend_beside,
    picture,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ABNORMAL, REFERENCE, UNMARKED = FORBIDDEN, PALETTE[0], "#9AA0A6"
COLOURS = {"abnormal": ABNORMAL, "reference": REFERENCE}
MOST_CHARTS = 8
LARGEST_RATIO = 50
"""Of the greatest value to the least, on a straight scale."""


@dataclass(frozen=True)
class MarkedSpan:
    """A stretch of time that is marked as abnormal or reference, as the axis counts time."""

    low: Any
    high: Any
    kind: str


@dataclass(frozen=True, eq=False)
class ReasonChart:
    """One feature. `kinds`: the label of each window, "" where it is not marked; `bounds`: where abnormal values end.

    `ranges`: the abnormal values, infinite where there is no end.
    """

    name: str
    words: str
    boundary: str
    reward: float
    times: npt.NDArray[Any]
    values: npt.NDArray[np.float64]
    kinds: npt.NDArray[np.str_]
    ranges: tuple[tuple[float, float], ...]
    spans: tuple[MarkedSpan, ...]

    @property
    def logarithmic(self) -> bool:
        """Whether values differ so much that a straight scale would show only the largest."""
        known = self.values[np.isfinite(self.values)]
        return bool(len(known) and known.min() > 0 and known.max() >= LARGEST_RATIO * known.min())

    @property
    def bounds(self) -> tuple[float, ...]:
        return tuple(sorted({end for ends in self.ranges for end in ends if np.isfinite(end)}))


def charts_of(diagnosis: Diagnosis, *, dated: bool) -> tuple[ReasonChart, ...]:
    """A chart for each kept feature, best first. `dated`: ticks are microseconds of UTC, and not numbers."""
    tables = {feature: table for table in diagnosis.windows for feature in table.features}
    return tuple(_chart(diagnosis, one, tables[one.feature], dated) for one in diagnosis.kept if one.feature in tables)


def _chart(diagnosis: Diagnosis, one: CandidateFeature, table: FeatureTable, dated: bool) -> ReasonChart:
    values = table.take([one.feature]).values[0]
    kinds = np.full(len(table.starts), "", dtype="<U9")
    annotated = [period for period in diagnosis.periods if period.annotated]
    for period in sorted(annotated, key=lambda each: each.abnormal):
        kinds[table.within(period.low, period.high)] = period.kind
    starts, values, kinds = _with_gaps(table, values, kinds)
    return ReasonChart(
        one.feature.name,
        one.feature.words,
        diagnosis.boundary(one.feature),
        one.reward if one.validated is None else one.validated,
        as_times(starts, dated=dated),
        values,
        kinds,
        tuple((found.low, found.high) for found in diagnosis.ranges.get(one.feature, ())),
        spans_of(annotated, dated=dated),
    )


def _with_gaps(
    table: FeatureTable, values: npt.NDArray[np.float64], kinds: npt.NDArray[np.str_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.str_]]:
    """The windows, with one that has no value wherever some are left out, so that no line runs over the gap."""
    gaps = np.flatnonzero(np.diff(table.starts) > table.window) + 1
    starts = np.insert(table.starts, gaps, table.starts[gaps - 1] + table.window)
    return starts, np.insert(values, gaps, np.nan), np.insert(kinds, gaps, "")


def spans_of(periods: Sequence[Period], *, dated: bool) -> tuple[MarkedSpan, ...]:
    """Marked periods as stretches of the time axis."""
    ends = [as_times(np.array([period.low, period.high]), dated=dated) for period in periods]
    return tuple(MarkedSpan(pair[0], pair[1], period.kind) for pair, period in zip(ends, periods, strict=True))


# ----------------------------------------------------------------------------------------------- into a file


def draw_reasons(diagnosis: Diagnosis, path: str | Path, *, dated: bool, title: str | None = None) -> Path:
    """Draw each kept feature into an .svg or .png file, the best on top."""
    charts = charts_of(diagnosis, dated=dated)
    shown = charts[:MOST_CHARTS]
    with picture(path, 10, 0.6 + 2.0 * max(1, len(shown))) as figure:
        panels = figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False, gridspec_kw={"hspace": 0.5})[:, 0]
        for axes, chart in zip(panels, shown, strict=False):
            _draw_chart(axes, chart)
        if shown:
            label_time(panels[-1], shown[-1].times)
            _draw_kinds(panels[0])
        else:
            panels[0].axis("off")
            panels[0].text(0.5, 0.5, "no feature was kept", ha="center", va="center", color=NOTE)
        heading = title or ""
        heading += f"  ({len(shown)} of {len(charts)} features)" if len(charts) > len(shown) else ""
        if heading:
            figure.suptitle(heading, x=0.125, ha="left", fontsize=12, fontweight="bold")
    return Path(path)


def _draw_chart(axes: Axes, chart: ReasonChart) -> None:
    times: Any = chart.times
    for span in chart.spans:
        axes.axvspan(span.low, span.high, color=COLOURS[span.kind], alpha=0.08, linewidth=0, zorder=0)
    axes.plot(times, chart.values, color=UNMARKED, linewidth=0.8, zorder=2)
    for kind, colour in COLOURS.items():
        marked = chart.kinds == kind
        axes.plot(times[marked], chart.values[marked], "o", color=colour, markersize=3.2, zorder=3)
    for bound in chart.bounds:
        axes.axhline(bound, color=ABNORMAL, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    if chart.logarithmic:
        axes.set_yscale("log")
    axes.set_title(f"{chart.name} {chart.boundary}", loc="left", fontsize=10)
    axes.set_title(f"reward {chart.reward:.2f}", loc="right", fontsize=9, color=NOTE)
    clean(axes)
    axes.grid(axis="y", color=GRID, linewidth=0.8)


def _draw_kinds(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    boundary = Line2D([], [], color=ABNORMAL, linestyle="--", linewidth=1, label="boundary")
    legend_beside(axes, [*(dot(kind, colour, 5) for kind, colour in COLOURS.items()), boundary])
