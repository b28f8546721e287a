"""A bound query as a picture of its pattern: the template's states and steps, its conditions where they belong.

A condition on one event stands below its circle, one on two neighbours at their arrow, a NOT on the arrow it forbids;
everything else (partition, window, semantics, conditions on more events) is the caption. Cost: steps × conditions.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
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
from trendloom.viz.pattern import PatternEdge, PatternNode, draw_pattern
from trendloom.viz.sharing import draw_sharing

NOTE_WIDTH = 26
CAPTION_WIDTH = 80


def draw_query_pattern(plan: Plan, path: str | Path, *, title: str | None = None, caption: bool = True) -> Path:
    """Draw the pattern of a bound query into an .svg or .png file; `plan_of` gives the plan of a text."""
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
    return nodes, [*_steps(plan, template, at), *_ends(plan, template)]


def caption_of(plan: Plan) -> str:
    """What the picture itself does not show."""
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


def _ends(plan: Plan, template: Template) -> Iterator[PatternEdge]:
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


# The picture that goes with EXPLAIN: of one query its pattern, of several what they may share.


def draw_explained(plans: Sequence[Plan], shared: Sequence[Considered], path: str | Path) -> Path:
    """Draw queries into an .svg or .png file; `shared`: what was weighed for groups of them."""
    return draw_query_pattern(plans[0], path) if len(plans) == 1 else draw_sharing(shared, path)
