"""A picture of a pattern: its positions as circles, what may follow what as arrows, NOTs as red notes on them.

Positions stand from left to right by the longest way that leads to them, alternatives above each other; arrows that
go on run straight, or over what stands between; arrows that go back (Kleene) run below. Cost: edges × positions.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trendloom.viz.canvas import FAINT, FORBIDDEN, INK, check_picture, colours, require_matplotlib, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RADIUS = 0.34
STEP = 1.9  # between columns
ROW = 1.35  # between alternatives
LINE = 0.17  # of a note

Point = tuple[float, float]


@dataclass(frozen=True)
class PatternNode:
    """A position: `id` grows from left to right; `note` is a predicate to show below it."""

    id: int
    variable: str
    type: str
    starts: bool = False
    accepts: bool = False
    note: str | None = None


@dataclass(frozen=True)
class PatternEdge:
    """`target` may follow `source`. `forbids` names what must not lie between them; `note` a predicate on the two.

    A leading NOT has source None, a trailing one target None.
    """

    source: int | None
    target: int | None
    forbids: str | None = None
    note: str | None = None


def draw_pattern(
    nodes: Sequence[PatternNode],
    edges: Sequence[PatternEdge],
    path: str | Path,
    *,
    title: str | None = None,
    caption: str | None = None,
) -> Path:
    """Draw the pattern into an .svg or .png file."""
    target = check_picture(path)
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    places = layout(nodes, edges)
    with rc_context(style()):
        figure = Figure()
        axes = figure.add_axes((0, 0, 1, 1))
        axes.axis("off")
        tops = _draw_edges(axes, edges, places)
        lowest = _draw_nodes(axes, nodes, places)
        ends = _draw_ends(axes, nodes, edges, places)
        _fit(axes, [*places.values(), *tops, *lowest, *ends])
        if title:
            axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=12)
        if caption:
            axes.text(0, 0, caption, transform=axes.transAxes, va="top", fontsize=9, color="#555555", linespacing=1.5)
        return save(figure, target)


def _fit(axes: Axes, points: Sequence[Point]) -> None:
    """One unit is one inch in every picture, so that circles and letters keep their proportion."""
    left, right = min(x for x, _ in points) - 1.1, max(x for x, _ in points) + 1.1
    low, high = min(y for _, y in points) - 0.75, max(y for _, y in points) + 0.6
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.figure.set_size_inches(right - left, high - low)  # type: ignore[union-attr]


def layout(nodes: Sequence[PatternNode], edges: Sequence[PatternEdge]) -> dict[int, Point]:
    """Where each position stands."""
    columns: dict[int, int] = {}
    for node in sorted(nodes, key=lambda each: each.id):
        before = [edge.source for edge in edges if edge.target == node.id and edge.source is not None]
        columns[node.id] = max((columns[source] + 1 for source in before if source < node.id), default=0)
    places: dict[int, Point] = {}
    for column in set(columns.values()):
        stacked = sorted(node for node, its in columns.items() if its == column)
        for row, node_id in enumerate(stacked):
            places[node_id] = (column * STEP, ((len(stacked) - 1) / 2 - row) * ROW)
    return places


# ------------------------------------------------------------------------------------------------ drawing


def _draw_nodes(axes: Axes, nodes: Sequence[PatternNode], places: Mapping[int, Point]) -> list[Point]:
    """Draws the circles and gives the points that need room for more than one line of text below them."""
    from matplotlib.patches import Circle

    lowest: list[Point] = []
    palette = colours(node.variable for node in sorted(nodes, key=lambda each: each.id))
    for node in nodes:
        place, colour = places[node.id], palette[node.variable]
        if node.accepts:
            axes.add_patch(Circle(place, RADIUS + 0.07, facecolor="white", edgecolor=colour, linewidth=1.6, zorder=3))
        axes.add_patch(Circle(place, RADIUS, facecolor=colour + "26", edgecolor=colour, linewidth=1.8, zorder=4))
        size = 11 if len(node.variable) <= 6 else 8
        axes.text(*place, node.variable, ha="center", va="center", fontsize=size, fontweight="bold", zorder=5)
        below = [node.type if node.type != node.variable else None, node.note]
        text = "\n".join(line for line in below if line)
        axes.text(place[0], place[1] - RADIUS - 0.13, text, ha="center", va="top", fontsize=8.5, color="#555555")
        lowest.append((place[0], place[1] - LINE * text.count("\n")))
    return lowest


def _draw_edges(axes: Axes, edges: Sequence[PatternEdge], places: Mapping[int, Point]) -> list[Point]:
    """Draws the arrows and gives the top of each, its notes included."""
    tops: list[Point] = []
    loops = frozenset(edge.source for edge in edges if edge.source == edge.target)
    for edge in edges:
        if edge.source is None or edge.target is None:
            continue
        start, end = places[edge.source], places[edge.target]
        if edge.source == edge.target:
            middle = _loop(axes, start, edge)
        else:
            middle = _arrow(axes, start, end, _bend(edge, places, loops), edge)
        tops.append(_annotate(axes, middle, edge))
    return tops


def _bend(edge: PatternEdge, places: Mapping[int, Point], loops: Container[int | None]) -> float:
    """How far the middle of an arrow lies above the straight line: below all where it goes back, over what it meets."""
    assert edge.source is not None
    assert edge.target is not None
    start, end = places[edge.source], places[edge.target]
    middle = (start[1] + end[1]) / 2
    others = [node for node in places if min(start[0], end[0]) <= places[node][0] <= max(start[0], end[0])]
    if end[0] <= start[0]:
        return min(places[node][1] for node in others) - 0.95 - middle
    met = [node for node in others if node not in (edge.source, edge.target) and _near(places[node], start, end)]
    return max((places[node][1] - middle + (1.45 if node in loops else 0.8) for node in met), default=0.0)


def _near(place: Point, start: Point, end: Point) -> bool:
    share = (place[0] - start[0]) / (end[0] - start[0])
    return abs(start[1] + share * (end[1] - start[1]) - place[1]) < RADIUS + 0.2


def _arrow(axes: Axes, start: Point, end: Point, bend: float, edge: PatternEdge) -> Point:
    """A curve from rim to rim; gives the point where a note belongs."""
    from matplotlib.path import Path as Curve

    peak = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 2 * bend)
    first, last = _rim(start, peak), _rim(end, peak)
    _stroke(axes, Curve([first, peak, last], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]), edge)
    return (first[0] + 2 * peak[0] + last[0]) / 4, (first[1] + 2 * peak[1] + last[1]) / 4


def _rim(centre: Point, towards: Point) -> Point:
    along = (towards[0] - centre[0], towards[1] - centre[1])
    length = max((along[0] ** 2 + along[1] ** 2) ** 0.5, 1e-9)
    reach = (RADIUS + 0.1) / length
    return centre[0] + along[0] * reach, centre[1] + along[1] * reach


def _loop(axes: Axes, place: Point, edge: PatternEdge) -> Point:
    from matplotlib.path import Path as Curve

    x, y = place
    rim = RADIUS + 0.09
    points = [
        (x - 0.2, y + rim - 0.06),
        (x - 0.55, y + rim + 0.55),
        (x + 0.55, y + rim + 0.55),
        (x + 0.2, y + rim - 0.06),
    ]
    _stroke(axes, Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]), edge)
    return x, y + rim + 0.42


def _stroke(axes: Axes, curve: object, edge: PatternEdge) -> None:
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(
        FancyArrowPatch(
            path=curve,  # type: ignore[arg-type]
            arrowstyle="-|>,head_length=5,head_width=2.6",
            color=FORBIDDEN if edge.forbids else INK,
            linestyle=(0, (4, 2)) if edge.forbids else "solid",
            linewidth=1.3,
            zorder=2,
        )
    )


def _annotate(axes: Axes, middle: Point, edge: PatternEdge) -> Point:
    """The notes of an arrow; a NOT that is wider than the arrow stands above the circles at its ends."""
    x, y = middle
    if edge.forbids:
        lines = edge.forbids.split("\n")
        wide = len(lines) > 1 or len(lines[0]) > 15
        y += RADIUS + 0.22 if wide and edge.source != edge.target else 0.16
        _forbid(axes, (x, y + LINE * len(lines) / 2), edge.forbids)
        y += LINE * len(lines) + 0.1
    if edge.note:
        y += 0.12
        axes.text(x, y, edge.note, ha="center", va="bottom", fontsize=8, color="#555555")
        y += LINE * len(edge.note.split("\n"))
    return x, y - LINE


def _forbid(axes: Axes, place: Point, text: str) -> None:
    box = {"boxstyle": "round,pad=0.3", "facecolor": "#FDEEE6", "edgecolor": FORBIDDEN, "linewidth": 1.0}
    axes.text(*place, text, ha="center", va="center", fontsize=8.5, color="#A33F00", bbox=box, zorder=6)


def _draw_ends(
    axes: Axes, nodes: Sequence[PatternNode], edges: Sequence[PatternEdge], places: Mapping[int, Point]
) -> list[Point]:
    """Where a match may begin, and NOTs before and after it; gives the tips of the latter."""
    tips: list[Point] = []
    leading = {edge.target: edge.forbids for edge in edges if edge.source is None}
    trailing = {edge.source: edge.forbids for edge in edges if edge.target is None}
    goes_on = {edge.source for edge in edges if edge.target is not None and edge.target != edge.source}
    for node in nodes:
        x, y = places[node.id]
        if node.starts:
            _tail(axes, (x - RADIUS - 0.62, y), (x - RADIUS - 0.08, y), leading.get(node.id))
        if trailing.get(node.id):
            slant = 0.35 if node.id in goes_on else 0.0  # beside the arrows that lead on
            start = (x + RADIUS + 0.16 - slant * 0.35, y + slant)
            tips.append((start[0] + 0.54, start[1] + slant))
            _tail(axes, start, tips[-1], trailing[node.id], after=True)
    return tips


def _tail(axes: Axes, start: Point, end: Point, forbids: str | None, *, after: bool = False) -> None:
    from matplotlib.path import Path as Curve

    edge = PatternEdge(None, None, forbids)
    _stroke(axes, Curve([start, end], [Curve.MOVETO, Curve.LINETO]), edge)
    if not after:
        axes.plot([start[0]], [start[1]], marker="o", markersize=4, color=FORBIDDEN if forbids else FAINT, zorder=3)
    if forbids:
        _forbid(axes, (end[0] + 0.1, end[1] + 0.34) if after else (start[0], start[1] + 0.34), forbids)
