"""Pictures of complete trends: the trend graph over its events, cut into graphlets, and what cuts cost and save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from trendloom.viz.canvas import FAINT, GRID, INK, PALETTE, picture


@dataclass(frozen=True)
class Walked:
    """One way to walk a graph: its name, the graphlets, the seconds it took and the bytes it stored."""

    name: str
    graphlets: int
    seconds: float
    stored: int


def draw_trend_graph(
    values: Sequence[float],
    edges: Sequence[tuple[int, int]],
    path: str | Path,
    *,
    bounds: Sequence[int] = (),
    trend: Sequence[int] = (),
    title: str | None = None,
    xlabel: str = "event",
    ylabel: str = "value",
) -> Path:
    """Events by number and value, edges between them; `bounds` shade graphlets, `trend` is one path to point out."""
    with picture(path, 9, 4.2) as figure:
        axes = figure.subplots()
        for number, (low, high) in enumerate(pairwise(bounds)):
            axes.axvspan(low - 0.5, high - 0.5, color=PALETTE[number % 3], alpha=0.10, linewidth=0)
            across, upwards = (low + high - 1) / 2, axes.get_xaxis_transform()
            axes.text(across, 1.02, f"graphlet {number + 1}", ha="center", transform=upwards)
        graphlet = [sum(event >= bound for bound in bounds[1:-1]) for event in range(len(values))]
        for e, f in edges:
            crosses = bool(bounds) and graphlet[e] != graphlet[f]
            colour, width = (INK, 1.2) if crosses else (FAINT, 0.8)
            axes.plot([e, f], [values[e], values[f]], color=colour, linewidth=width)
        if trend:
            axes.plot(trend, [values[event] for event in trend], color=PALETTE[1], linewidth=3, alpha=0.7)
        axes.plot(range(len(values)), values, "o", color=PALETTE[0], markersize=5)
        axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.5, len(values) - 0.5))
        axes.grid(color=GRID)
        if title:
            axes.set_title(title, pad=24 if bounds else 8)
    return Path(path)


def draw_trade_off(walked: Sequence[Walked], path: str | Path, *, title: str | None = None) -> Path:
    """Time against memory stored, one dot per way to walk, labelled with its graphlets; a line if nothing is stored."""
    with picture(path, 7, 4.2) as figure:
        axes = figure.subplots()
        for number, name in enumerate(dict.fromkeys(one.name for one in walked)):
            some = [one for one in walked if one.name == name]
            if not any(one.stored for one in some):
                axes.axhline(some[0].seconds, color=PALETTE[number], linestyle="--", linewidth=1, label=name)
                continue
            stored = [one.stored / 1024 for one in some]
            seconds = [one.seconds for one in some]
            axes.plot(stored, seconds, "o-", color=PALETTE[number], label=name, linewidth=1, markersize=6)
            for one, x in zip(some, stored, strict=True):
                axes.annotate(str(one.graphlets or ""), (x, one.seconds), xytext=(5, 5), textcoords="offset points")
        axes.set(xscale="log", xlabel="KiB stored (numbers: graphlets)", ylabel="seconds to walk", ylim=(0, None))
        axes.grid(color=GRID)
        axes.legend(frameon=False)
        if title:
            axes.set_title(title)
    return Path(path)
