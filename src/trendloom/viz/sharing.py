"""The sharing graph of a workload: queries, the segments that they have in common, and which exclude each other.

Queries stand on the left, segments on the right, those of the plan filled; lines join a segment with its queries, the
wider the more it saves; a red curve joins segments of which only one can be shared. Of many segments those of the plan
and the heaviest others are drawn. Cost: queries × segments that are drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from trendloom.errors import OptionError, option
from trendloom.planner.sharing.conflict_graph import SharedSegment, members
from trendloom.planner.sharing.display import heaviest, show_score, show_segment
from trendloom.planner.sharing.groups import Considered
from trendloom.viz.canvas import FAINT, FORBIDDEN, INK, PALETTE, Point, below, fit, heading, picture, plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DRAWN = 18
"""Segments of one group of queries in a picture, those of the plan not counted."""
LABEL_WIDTH = 48  # letters in a line of a segment's label
UNBROKEN = "\u00a0"  # a space at which no line ends
LETTER = 0.068  # width of a letter, in inches, as all lengths here
QUERY_ROW, LINE, GAP = 0.27, 0.17, 0.16
BETWEEN = 2.6  # from the names of queries to the segments
WIDEST = 4.0  # of lines, in points


@dataclass(frozen=True)
class DrawnSegment:
    """A segment as it is drawn: its label, whether it is shared, and what it saves."""

    segment: SharedSegment
    label: str
    weight: float
    shared: bool

    @property
    def height(self) -> float:
        return LINE * (self.label.count("\n") + 1) + 0.1


def draw_sharing(groups: Sequence[Considered], path: str | Path, *, title: str | None = None) -> Path:
    """Draw what groups of queries may share, one group below the other, into an .svg or .png file."""
    with picture(path) as figure:
        drawn = [(group, segments) for group in groups if (segments := drawn_segments(group))]
        if not drawn:
            raise OptionError(
                "there is nothing to draw: no two queries have a segment in common that could be computed once",
                hint=f"choose one query with {option('query')} to draw its pattern",
            )
        axes = plane(figure)
        corners: list[Point] = []
        top = 0.0
        for group, segments in drawn:
            corners += _draw_group(axes, group, segments, top)
            top = min(y for _, y in corners) - 0.5
        across, down = zip(*corners, strict=True)
        fit(axes, (min(across) - 0.1, min(down) - 0.1), (max(across) + 0.1, max(down) + 0.05))
        heading(axes, title or _title(drawn))
        below(
            axes,
            "filled: in the plan   ·   number and width: what it saves   ·   red: only one of the two can be shared",
        )
    return Path(path)


def drawn_segments(considered: Considered) -> list[DrawnSegment]:
    """The shared segments and the heaviest others; one of the options of a segment, in the order of their queries."""
    graph, plan = considered.choice.graph, considered.choice.found.plan
    shared = {graph.segments[vertex].steps for vertex in members(plan)}
    others = [one for one in heaviest(considered, graph.all) if graph.segments[one].steps not in shared]
    drawn = [_drawn(considered, vertex) for vertex in (*members(plan), *others[:MOST_DRAWN])]
    return sorted(drawn, key=lambda one: sum(one.segment.queries) / len(one.segment.queries))


def _drawn(considered: Considered, vertex: int) -> DrawnSegment:
    graph = considered.choice.graph
    segment, weight = graph.segments[vertex], graph.weights[vertex]
    label = _label(show_segment(considered, segment), show_score(considered, weight))
    return DrawnSegment(segment, label, weight, bool(considered.choice.found.plan >> vertex & 1))


def _label(segment: str, score: str) -> str:
    """Lines that end between the positions of a segment, not in the middle of a condition."""
    whole = [part.replace(" ", UNBROKEN) for part in (*segment.split(", "), score)]
    text = f"{', '.join(whole[:-1])}   {whole[-1]}"
    lines = textwrap.fill(text, LABEL_WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="    ")
    return lines.replace(UNBROKEN, " ")


def conflicting(segments: Sequence[DrawnSegment]) -> Iterator[tuple[int, int]]:
    """Pairs of segments that overlap in a query."""
    for one, first in enumerate(segments):
        for other in range(one + 1, len(segments)):
            if first.segment.conflicts_in(segments[other].segment):
                yield one, other


# ------------------------------------------------------------------------------------------------- drawing


def _draw_group(axes: Axes, group: Considered, segments: Sequence[DrawnSegment], top: float) -> list[Point]:
    """Draw one group from `top` downwards; returns the corners of its drawing."""
    tall = max(len(group.names) * QUERY_ROW, sum(one.height + GAP for one in segments))
    queries = _spread([QUERY_ROW] * len(group.names), top, tall)
    rows = _spread([one.height + GAP for one in segments], top, tall)
    wide = LETTER * max(len(line) for one in segments for line in one.label.split("\n")) + 0.25
    heavy = max(one.weight for one in segments)
    for name, y in zip(group.names, queries, strict=True):
        axes.text(0, y, name, ha="right", va="center", fontsize=9)
    palette = cycle(PALETTE[:-1])  # without its grey
    for one, y in zip(segments, rows, strict=True):
        colour = next(palette) if one.shared else FAINT
        _draw_box(axes, one, y, wide, colour)
        for query in one.segment.queries:
            _draw_line(axes, queries[query], y, colour, WIDEST * one.weight / heavy, shared=one.shared)
    right = BETWEEN + wide
    for first, second in conflicting(segments):
        right = max(right, _draw_conflict(axes, BETWEEN + wide, rows[first], rows[second]))
    left = -LETTER * 1.1 * max(map(len, group.names))
    return [(left, top), (right, top - tall)]


def _spread(heights: Sequence[float], top: float, tall: float) -> list[float]:
    """The middles of rows, centred in the height of the group."""
    y = top - (tall - sum(heights)) / 2
    middles = []
    for height in heights:
        middles.append(y - height / 2)
        y -= height
    return middles


def _draw_box(axes: Axes, one: DrawnSegment, y: float, wide: float, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    face = colour + "40" if one.shared else "white"
    low = (BETWEEN, y - one.height / 2)
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(
        FancyBboxPatch(
            low, wide, one.height, style, facecolor=face, edgecolor=colour, linewidth=1.6 if one.shared else 0.9
        )
    )
    ink = INK if one.shared else "#6B7075"
    axes.text(BETWEEN + 0.12, y, one.label, va="center", fontsize=8.5, color=ink, linespacing=1.3)


def _draw_line(axes: Axes, start: float, end: float, colour: str, width: float, *, shared: bool) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    points = [(0.08, start), (BETWEEN * 0.45, start), (BETWEEN * 0.55, end), (BETWEEN, end)]
    codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    alpha, order = (0.75, 2) if shared else (0.45, 1)
    width = max(width, 0.6)
    axes.add_patch(
        PathPatch(Curve(points, codes), fill=False, color=colour, linewidth=width, alpha=alpha, zorder=order)
    )


def _draw_conflict(axes: Axes, right: float, first: float, second: float) -> float:
    """Draw a curve on the right of the segments; returns its right end."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    reach = right + 0.25 + 0.3 * abs(first - second)
    points = [(right, first), (reach, first), (reach, second), (right, second)]
    codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    axes.add_patch(PathPatch(Curve(points, codes), fill=False, color=FORBIDDEN, linewidth=0.9, alpha=0.7))
    return right + 0.75 * (reach - right)


def _title(drawn: Sequence[tuple[Considered, Sequence[DrawnSegment]]]) -> str:
    queries = sum(len(group.names) for group, _ in drawn)
    shared = sum(len(group.choice.segments) for group, _ in drawn)
    known = sum(len(heaviest(group, group.choice.graph.all)) for group, _ in drawn)
    return f"{queries} queries: the plan shares {shared} of {known} segments that save work"
