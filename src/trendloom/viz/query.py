"""A bound query as a picture of its pattern: the template's states and steps, its conditions where they belong.

A condition on one event stands below its circle, one on two neighbours at their arrow, a NOT on the arrow it forbids;
everything else (partition, window, semantics, conditions on more events) is the caption. Cost: steps × conditions.
"""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendloom.errors import OptionError
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend.tql.keywords import write_name
from trendloom.frontend.tql.parser import parse
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.logical.display import show_component, show_duration
from trendloom.logical.plan import Condition, Plan
from trendloom.pattern import algebra
from trendloom.pattern.template import Crossings, Edge, Template, build_template
from trendloom.planner.sharing.groups import Considered
from trendloom.viz.canvas import (
    FAINT,
    FORBIDDEN,
    INK,
    NOTE,
    Arrow,
    Disc,
    Dot,
    Drawing,
    Point,
    Shape,
    Words,
    below,
    colours,
    heading,
    paint,
    picture,
    plane,
)
from trendloom.viz.sharing import draw_sharing

NOTE_WIDTH = 26
CAPTION_WIDTH = 80


def draw_query_pattern(plan: Plan, path: str | Path, *, title: str | None = None, caption: bool = True) -> Path:
    """Draw the pattern of a bound query into an .svg or .png file; `plan_of` returns the plan of a text."""
    nodes, edges = picture_of(plan)
    return draw_pattern(nodes, edges, path, title=title or plan.name, caption=caption_of(plan) if caption else None)


def plan_of(text: str, events: pa.Table | pa.Schema, *, query: str | None = None, **columns: Any) -> Plan:
    """The plan of a query over events of this schema. `query` picks one of a workload; `columns` as for `run`."""
    table = events.empty_table() if isinstance(events, pa.Schema) else events
    chosen = [one for one in parse(text) if query is None or one.name == query]
    if len(chosen) != 1:
        names = ", ".join(str(one.name) for one in parse(text))
        raise OptionError(f"a picture shows one query, this is {len(chosen)}", hint=f"choose with query=: {names}")
    return bind(chosen[0], prepare(table, **columns).schema)


def picture_of(plan: Plan) -> tuple[list[PatternNode], list[PatternEdge]]:
    """Circles and arrows: one circle per state of the template."""
    template = build_template(plan.pattern)
    atoms = {atom.position: atom for atom in algebra.atoms(plan.pattern)}
    at = [atoms[position] for position in template.position_of]
    starts = {edge.target for edge in template.starts}
    nodes = [
        PatternNode(state, atom.variable, atom.type, state in starts, bool(template.accepts[state]), _note(plan, atom))
        for state, atom in enumerate(at)
    ]
    return nodes, [*_steps(plan, template, at), *_outer_negations(plan, template)]


def caption_of(plan: Plan) -> str:
    """The partition, window, semantics and conditions that the picture does not show."""
    axis, window = plan.schema.axis, plan.window
    parts = [plan.semantics.value]
    if plan.partition:
        parts.append(f"within each {', '.join(plan.partition)}")
    parts += [
        condition.text for condition in plan.conditions if condition.scope == 0 and not _has_place(plan, condition)
    ]
    if window.within is not None:
        slide = f" SLIDE {show_duration(window.slide, axis)}" if window.slide is not None else ""
        parts.append(f"WITHIN {show_duration(window.within, axis)}{slide}")
    return textwrap.fill("  ·  ".join(parts), CAPTION_WIDTH, break_long_words=False, break_on_hyphens=False)


# ----------------------------------------------------------------------------------------- steps and ends


def _steps(plan: Plan, template: Template, at: Sequence[algebra.Atom]) -> Iterator[PatternEdge]:
    for state, edges in enumerate(template.edges):
        for target in dict.fromkeys(edge.target for edge in edges):
            between = (at[state].variable, at[target].variable)
            notes = [c.text for c in plan.conditions if c.scope == 0 and between in _neighbours(plan, c)]
            forbidden = _alternatives(plan, (edge.crossings for edge in edges if edge.target == target))
            yield PatternEdge(state, target, forbidden, _lines(notes))


def _outer_negations(plan: Plan, template: Template) -> Iterator[PatternEdge]:
    """NOTs before the first and after the last event."""
    by_target: dict[int, list[Edge]] = {}
    for edge in template.starts:
        by_target.setdefault(edge.target, []).append(edge)
    for target, edges in by_target.items():
        if forbidden := _alternatives(plan, (edge.crossings for edge in edges)):
            yield PatternEdge(None, target, forbidden)
    for state, ways in enumerate(template.accepts):
        if forbidden := _alternatives(plan, ways):
            yield PatternEdge(state, None, forbidden)


def _alternatives(plan: Plan, ways: Iterable[Crossings]) -> str | None:
    """The NOTs of a step; where there are several ways to take it, one of them must be free."""
    texts = [", ".join(_negation(plan, scope) for scope in sorted({one.scope for one in way})) for way in ways]
    return None if not all(texts) or not texts else " or ".join(dict.fromkeys(texts))


def _negation(plan: Plan, scope: int) -> str:
    body = next(n.body for n in algebra.walk(plan.pattern) if isinstance(n, algebra.Negation) and n.scope == scope)
    conditions = [condition.text for condition in plan.conditions if condition.scope == scope]
    text = f"NOT {pattern_text(body, named=bool(conditions))}" + (": " + " AND ".join(conditions) if conditions else "")
    return textwrap.fill(text, NOTE_WIDTH, break_long_words=False)


# ------------------------------------------------------------------------------------ conditions and texts


def _note(plan: Plan, atom: algebra.Atom) -> str | None:
    return _lines([c.text for c in plan.conditions if c.scope == 0 and shape_of(c.expr).local == atom.variable])


def _neighbours(plan: Plan, condition: Condition) -> frozenset[tuple[str, str]]:
    """The pairs of variables whose neighbours in a match the condition compares."""
    shape = shape_of(condition.expr)
    if shape.pair is not None:
        return frozenset({shape.pair})
    alone = shape.looks_back and not shape.each and not shape.whole
    return frozenset({(shape.index, shape.index)}) if alone and shape.index is not None else frozenset()


def _has_place(plan: Plan, condition: Condition) -> bool:
    return shape_of(condition.expr).local is not None or bool(_neighbours(plan, condition))


def _lines(notes: Sequence[str]) -> str | None:
    return "\n".join(textwrap.fill(note, NOTE_WIDTH, break_long_words=False) for note in notes) or None


def pattern_text(pattern: algebra.Pattern, *, named: bool = True) -> str:
    """A pattern in the words of the language; `named` False leaves the variables out."""
    below = [pattern_text(part, named=named) for part in algebra.parts(pattern)]
    match pattern:
        case algebra.Atom():
            return show_component(pattern.type, pattern.variable) if named else write_name(pattern.type)
        case algebra.Sequence():
            return f"SEQ({', '.join(below)})"
        case algebra.Either():
            return f"({' | '.join(below)})"
        case algebra.Both():
            return f"AND({', '.join(below)})"
        case algebra.Negation():
            return f"NOT {below[0]}"
        case algebra.Round():
            return below[0]
        case algebra.Kleene() | algebra.Maybe():
            return f"({below[0]})" + ("+" if isinstance(pattern, algebra.Kleene) else "?")


def draw_explained(plans: Sequence[Plan], shared: Sequence[Considered], path: str | Path) -> Path:
    """Draw queries into an .svg or .png file; `shared`: what was weighed for groups of them."""
    return draw_query_pattern(plans[0], path) if len(plans) == 1 else draw_sharing(shared, path)


# ------------------------------------------------------------------------------------------------ the picture
#
# Positions stand from left to right by the longest way that leads to them, alternatives above each other; arrows that
# go on run straight, or over what stands between; arrows that go back (Kleene) run below. Cost: edges × positions.
# `drawing_of` returns the shapes as data: files and the page show the same.


RADIUS = 0.34
STEP = 1.9  # between columns
ROW = 1.35  # between alternatives
LINE = 0.17  # of a note


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
    with picture(path) as figure:
        axes = plane(figure)
        paint(axes, drawing_of(nodes, edges))
        heading(axes, title)
        below(axes, caption or "", linespacing=1.5)
    return Path(path)


def drawing_of(nodes: Sequence[PatternNode], edges: Sequence[PatternEdge]) -> Drawing:
    """The pattern as shapes, with room around them for names and notes."""
    places = layout(nodes, edges)
    arrows, tops = _arrows(edges, places)
    circles, lowest = _circles(nodes, places)
    ends, tips = _ends(nodes, edges, places)
    points = [*places.values(), *tops, *lowest, *tips]
    left, right = min(x for x, _ in points) - 1.1, max(x for x, _ in points) + 1.1
    low, high = min(y for _, y in points) - 0.75, max(y for _, y in points) + 0.6
    return Drawing((*arrows, *circles, *ends), (left, low), (right, high))


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


# ------------------------------------------------------------------------------------------------- shapes


def _circles(nodes: Sequence[PatternNode], places: Mapping[int, Point]) -> tuple[list[Shape], list[Point]]:
    """The positions, and the points that need room for more than one line of text below them."""
    shapes: list[Shape] = []
    lowest: list[Point] = []
    palette = colours(node.variable for node in sorted(nodes, key=lambda each: each.id))
    for node in nodes:
        place, colour = places[node.id], palette[node.variable]
        if node.accepts:
            shapes.append(Disc(place, RADIUS + 0.07, colour, "white", 1.6, level=3))
        shapes.append(Disc(place, RADIUS, colour, colour + "26"))
        size = 11 if len(node.variable) <= 6 else 8
        shapes.append(Words(place, node.variable, size, bold=True, level=5))
        below = [node.type if node.type != node.variable else None, node.note]
        text = "\n".join(line for line in below if line)
        shapes.append(Words((place[0], place[1] - RADIUS - 0.13), text, 8.5, "top", NOTE))
        lowest.append((place[0], place[1] - LINE * text.count("\n")))
    return shapes, lowest


def _arrows(edges: Sequence[PatternEdge], places: Mapping[int, Point]) -> tuple[list[Shape], list[Point]]:
    """The steps, and the top of each, its notes included."""
    shapes: list[Shape] = []
    tops: list[Point] = []
    loops = frozenset(edge.source for edge in edges if edge.source == edge.target)
    for edge in edges:
        if edge.source is None or edge.target is None:
            continue
        start, end = places[edge.source], places[edge.target]
        if edge.source == edge.target:
            points, middle = _loop(start)
        else:
            points, middle = _curve(start, end, _bend(edge, places, loops))
        notes, top = _notes(middle, edge, crowded=edge.source in loops or edge.target in loops)
        shapes += [_arrow(points, forbidden=bool(edge.forbids)), *notes]
        tops.append(top)
    return shapes, tops


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


def _arrow(points: tuple[Point, ...], *, forbidden: bool) -> Arrow:
    return Arrow(points, FORBIDDEN if forbidden else INK, dashed=forbidden)


def _curve(start: Point, end: Point, bend: float) -> tuple[tuple[Point, ...], Point]:
    """A curve from rim to rim, and the point where a note belongs."""
    peak = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 2 * bend)
    first, last = _rim(start, peak), _rim(end, peak)
    middle = (first[0] + 2 * peak[0] + last[0]) / 4, (first[1] + 2 * peak[1] + last[1]) / 4
    return (first, peak, last), middle


def _rim(centre: Point, towards: Point) -> Point:
    along = (towards[0] - centre[0], towards[1] - centre[1])
    length = max((along[0] ** 2 + along[1] ** 2) ** 0.5, 1e-9)
    reach = (RADIUS + 0.1) / length
    return centre[0] + along[0] * reach, centre[1] + along[1] * reach


def _loop(place: Point) -> tuple[tuple[Point, ...], Point]:
    x, y = place
    rim = RADIUS + 0.09
    points = (
        (x - 0.2, y + rim - 0.06),
        (x - 0.55, y + rim + 0.55),
        (x + 0.55, y + rim + 0.55),
        (x + 0.2, y + rim - 0.06),
    )
    return points, (x, y + rim + 0.42)


def _notes(middle: Point, edge: PatternEdge, *, crowded: bool) -> tuple[list[Shape], Point]:
    """The notes of an arrow and their top; a NOT that is wider than the arrow stands above the circles at its ends.

    `crowded`: a loop stands on one of these, and the NOT above it.
    """
    x, y = middle
    shapes: list[Shape] = []
    if edge.forbids:
        lines = edge.forbids.split("\n")
        wide = len(lines) > 1 or len(lines[0]) > 15
        y += RADIUS + (0.62 if crowded else 0.22) if wide and edge.source != edge.target else 0.16
        shapes.append(_forbidden((x, y + LINE * len(lines) / 2), edge.forbids))
        y += LINE * len(lines) + 0.1
    if edge.note:
        y += 0.12
        shapes.append(Words((x, y), edge.note, 8, "bottom", NOTE))
        y += LINE * len(edge.note.split("\n"))
    return shapes, (x, y - LINE)


def _forbidden(place: Point, text: str) -> Words:
    return Words(place, text, 8.5, colour="#A33F00", box=("#FDEEE6", FORBIDDEN), level=6)


def _ends(
    nodes: Sequence[PatternNode], edges: Sequence[PatternEdge], places: Mapping[int, Point]
) -> tuple[list[Shape], list[Point]]:
    """Where a match may begin, and NOTs before and after it; also the tips of the latter."""
    shapes: list[Shape] = []
    tips: list[Point] = []
    leading = {edge.target: edge.forbids for edge in edges if edge.source is None}
    trailing = {edge.source: edge.forbids for edge in edges if edge.target is None}
    goes_on = {edge.source for edge in edges if edge.target is not None and edge.target != edge.source}
    for node in nodes:
        x, y = places[node.id]
        if node.starts:
            shapes += _tail((x - RADIUS - 0.62, y), (x - RADIUS - 0.08, y), leading.get(node.id))
        if trailing.get(node.id):
            slant = 0.35 if node.id in goes_on else 0.0  # beside the arrows that lead on
            start = (x + RADIUS + 0.16 - slant * 0.35, y + slant)
            tips.append((start[0] + 0.54, start[1] + slant))
            shapes += _tail(start, tips[-1], trailing[node.id], after=True)
    return shapes, tips


def _tail(start: Point, end: Point, forbids: str | None, *, after: bool = False) -> list[Shape]:
    shapes: list[Shape] = [_arrow((start, end), forbidden=bool(forbids))]
    if not after:
        shapes.append(Dot(start, FORBIDDEN if forbids else FAINT))
    if forbids:
        place = (end[0] + 0.1, end[1] + 0.34) if after else (start[0], start[1] + 0.34)
        shapes.append(_forbidden(place, forbids))
    return shapes
