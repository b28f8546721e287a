"""The likeliest matches of imprecise time on a time line: a lane for each, its events as the intervals they may lie in.

What is drawn (`likely_of`) is apart from how (`draw_likely`). Bars of a lane stand in the order of the match, one below
the other, so that those who overlap are seen; the band behind them is the time that the match covers in all worlds.
Cost: a partial sort of the rows by confidence, and the events of the matches that are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.io.intervals import intervals_of
from trendloom.logical.plan import Plan
from trendloom.pattern.algebra import atoms
from trendloom.viz.canvas import GRID, as_times, clean, colours, draw_legend, heading, label_time, picture
from trendloom.viz.leaderboard import check_events, named_values
from trendloom.viz.timeline import times_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LIKELY = 10
"""Matches on a picture."""
BAND = "#EEF0F2"

Moment = Any
"""An integer, or a datetime64."""


@dataclass(frozen=True)
class IntervalBar:
    """When an event of a match may have happened, both ends included."""

    variable: str
    low: Moment
    high: Moment


@dataclass(frozen=True)
class LikelyMatch:
    """A match, how likely it is, when it begins at the earliest and ends at the latest."""

    confidence: float
    partition: dict[str, object]
    low: Moment
    high: Moment
    bars: tuple[IntervalBar, ...]

    @property
    def name(self) -> str:
        return "   ".join([*named_values(self.partition), _share(self.confidence)])


@dataclass(frozen=True)
class LikelyMatches:
    """The likeliest of so many matches, the likeliest first. `step`: from one point of time to the next."""

    variables: tuple[str, ...]
    total: int
    step: Moment
    matches: tuple[LikelyMatch, ...]


def likeliest(rows: pa.Table | pa.RecordBatch, most: int = MOST_LIKELY) -> pa.Table | pa.RecordBatch:
    """The rows that a picture may show, the likeliest first; of equal ones the first."""
    order = np.argsort(-rows.column("confidence").to_numpy(zero_copy_only=False), kind="stable")
    return rows.take(pa.array(order[:most]))


def likely_of(plan: Plan, rows: pa.Table, *, most: int = MOST_LIKELY, total: int | None = None) -> LikelyMatches:
    """The likeliest matches of these rows; `total`: the number of all matches, if not all of them are here."""
    check_events(plan)
    assert plan.schema.imprecision is not None
    shown = likeliest(rows, most)
    bars = iter(_bars(plan, shown))
    sizes = pc.list_value_length(shown.column("events")).to_pylist()
    columns = [shown.column(name).to_pylist() for name in ("confidence", *plan.partition)]
    low, high = (times_of(shown, name) for name in ("time_low", "time_high"))
    matches = tuple(
        LikelyMatch(
            confidence, dict(zip(plan.partition, partition, strict=True)), low[row], high[row],
            tuple(next(bars) for _ in range(sizes[row])),
        )
        for row, (confidence, *partition) in enumerate(zip(*columns, strict=True))
    )  # fmt: skip
    grain = plan.schema.imprecision.grain
    step = np.timedelta64(grain, "us") if plan.schema.axis.timestamp else grain
    variables = tuple(dict.fromkeys(atom.variable for atom in atoms(plan.pattern, negated=False)))
    return LikelyMatches(variables, rows.num_rows if total is None else total, step, matches)


def _bars(plan: Plan, rows: pa.Table) -> list[IntervalBar]:
    """The intervals of all events of all rows, one after another."""
    flat = pc.list_flatten(rows.column("events"))
    batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in flat.chunks]
    events = pa.Table.from_batches(batches, pa.schema(list(flat.type)))
    intervals = intervals_of(events, plan.schema, numbered=False)
    low, high = (as_times(ticks, dated=plan.schema.axis.timestamp) for ticks in (intervals.low, intervals.high))
    return [IntervalBar(*bar) for bar in zip(events["var"].to_pylist(), low, high, strict=True)]


# ------------------------------------------------------------------------------------------------------ drawing


def draw_likely(likely: LikelyMatches, path: str | Path, *, title: str | None = None) -> Path:
    """Draw matches into an .svg or .png file, the likeliest on top."""
    heights = [max(2, len(match.bars)) for match in likely.matches]
    with picture(path, 10, 1.1 + 0.16 * max(6, sum(heights) + len(heights))) as figure:
        axes, palette = figure.add_subplot(), colours(likely.variables)
        below = 0.0
        middles = []
        for match, height in zip(likely.matches, heights, strict=True):
            _draw_match(axes, match, likely.step, palette, below)
            middles.append(below + height / 2)
            below += height + 1
        axes.set_ylim(max(below, 4), -1)
        axes.set_yticks(middles, [match.name for match in likely.matches], fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=GRID, linewidth=0.8)
        clean(axes)
        label_time(axes, np.array([match.low for match in likely.matches]))
        axes.set_ylabel("confidence")
        heading(axes, title, _counted(likely), pad=10)
        draw_legend(axes, palette)
    return Path(path)


def _draw_match(axes: Axes, match: LikelyMatch, step: Moment, palette: dict[str, str], top: float) -> None:
    """A band for the time that it covers, and a bar for each event."""
    whole = _extent(match.low, match.high, step)
    axes.broken_barh([whole], (top - 0.3, max(2, len(match.bars)) + 0.6), color=BAND, zorder=1)
    for number, bar in enumerate(match.bars):
        extent = _extent(bar.low, bar.high, step)
        axes.broken_barh([extent], (top + number + 0.15, 0.7), color=palette[bar.variable], zorder=3)


def _extent(low: Moment, high: Moment, step: Moment) -> tuple[Moment, Moment]:
    """Where a bar begins, and how long it is. A point is as wide as a step: a timestamp stands for all times up to the
    next one, a number for itself, in the middle.
    """
    begin = low if isinstance(step, np.timedelta64) else low - step / 2
    return begin, high - low + step


def _counted(likely: LikelyMatches) -> str:
    shown, total = len(likely.matches), likely.total
    if shown < total:
        return f"the {shown} likeliest of {total:,} matches"
    return f"{total} match{'' if total == 1 else 'es'}"


def _share(confidence: float) -> str:
    """Three digits, and no certainty that is not one."""
    if 0.9995 <= confidence < 1:
        return "> 0.999"
    return f"{confidence:.3f}" if confidence >= 0.001 else "< 0.001"
