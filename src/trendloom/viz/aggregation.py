"""How matches are counted without being built, as pictures: running numbers event by event, and windows out of panes.

Both use the matrices of the plan that would run (`kernels.aggregate.program`), with Python's integers:
what is drawn is what the kernels compute. For small streams: O(events · slots³), and every event takes room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.errors import OptionError
from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.logical.plan import Plan
from trendloom.planner.inspection import Program, Slot, program_of
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import plan_query
from trendloom.viz.canvas import FAINT, INK, NOTE, PALETTE, Point, fit, heading, picture, plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Matrix = tuple[tuple[int, ...], ...]
"""By slot after the event, then by slot before it."""

STEP, ROW = 1.25, 0.85
CELL = 0.3  # half the width of a number's box
DIGIT = 0.13  # room that a digit of a matrix takes


@dataclass(frozen=True)
class RunningNumbers:
    """The running numbers of a pattern over a stream: slots, and what each event does to them."""

    slots: tuple[str, ...]
    short: tuple[str, ...]  # the slots in a word each
    begin: int
    accepts: tuple[int, ...]
    labels: tuple[str, ...]  # of the events, in order of time
    times: tuple[int, ...]
    matrices: tuple[Matrix, ...]  # of the events
    enters: tuple[frozenset[tuple[int, int]], ...]  # (to slot, from slot) where an event is bound, by event

    @property
    def nothing(self) -> tuple[int, ...]:
        """The numbers before any event: one empty match."""
        return tuple(int(slot == self.begin) for slot in range(len(self.slots)))

    def numbers(self) -> list[tuple[int, ...]]:
        """The numbers of all slots: before the first event and after each."""
        return list(accumulate(self.matrices, applied, initial=self.nothing))

    def matches(self, numbers: Sequence[int]) -> int:
        return sum(numbers[slot] for slot in self.accepts)


def arithmetic_of(plan: Plan, events: pa.Table, *, label: str = "id") -> RunningNumbers:
    """The arithmetic of a counting query over events, no two of one time. `label`: the column that names them."""
    physical = plan_query(plan)
    program = program_of(_countable(physical).pattern_spec)
    rows = events.sort_by(plan.schema.time).to_pylist()
    times = [row[plan.schema.time] for row in rows]
    if not all(isinstance(time, int) for time in times) or len(set(times)) < len(times):
        raise OptionError("the picture needs whole-number times, each of them once", hint="draw a smaller stream")
    places = program.spec.places
    bound = [frozenset(at for at, place in enumerate(places) if place.type == row[plan.schema.type]) for row in rows]
    return RunningNumbers(
        tuple(_long_name(program, slot) for slot in program.slots),
        tuple(_name(program, slot) for slot in program.slots),
        program.begin,
        program.accepts,
        tuple(str(row[label]) for row in rows),
        tuple(times),
        tuple(_matrix(program, positions) for positions in bound),
        tuple(frozenset((to, source) for to, source, _ in program.entering(positions)) for positions in bound),
    )


def _countable(physical: Physical) -> AggregationSpec:
    found = physical.kernel.aggregation
    if found is None or not found.algebra or found.pivot is not None:
        reason = physical.chosen.why if physical.aggregates else "it gives out matches"
        raise OptionError(
            f"this query has no matrices to draw: {reason}", hint="count, without predicates on two events"
        )
    if physical.plan.filters or physical.plan.keys:
        raise OptionError("the picture knows events by their type alone", hint="leave WHERE and GROUP BY out")
    return found


def _matrix(program: Program, positions: frozenset[int]) -> Matrix:
    size = len(program.slots)
    found = [[0] * size for _ in range(size)]
    for to, source, tied in program.entering(positions):
        found[to][source] += 0 if tied else 1
    for to, source in program.moving(positions):
        found[to][source] += 1
    return tuple(map(tuple, found))


def applied(numbers: tuple[int, ...], matrix: Matrix) -> tuple[int, ...]:
    """The numbers after an event."""
    return tuple(sum(map(int.__mul__, row, numbers)) for row in matrix)


def product(matrices: Iterable[Matrix], size: int) -> Matrix:
    """The matrix of a stretch of events: later ones stand on the left."""
    events = list(matrices)
    units = [tuple(int(row == column) for row in range(size)) for column in range(size)]
    return tuple(zip(*(reduce(applied, events, unit) for unit in units), strict=True))


def _name(program: Program, slot: Slot) -> str:
    """The variable bound last (with ' where nothing can follow), then what NOTs have seen: ✗ if too much."""
    if slot.state is None:
        return "∅" + _seen(program, slot)
    variable = program.spec.places[program.template.position_of[slot.state]].variable
    return variable + ("'" if slot.ended else "") + _seen(program, slot)


def _seen(program: Program, slot: Slot) -> str:
    words = []
    for scope, reached in slot.tag:
        positions = {program.spec.scopes[scope].template.position_of[state] for state in reached or ()}
        words += ["✗"] if reached is None else [program.spec.places[at].variable for at in sorted(positions)]
    return "".join(f" {word}" for word in words)


def _long_name(program: Program, slot: Slot) -> str:
    variable, *seen = _name(program, slot).split(" ")
    if slot.state is None:
        what = "not begun"
    else:
        what = f"ended at {variable[:-1]}" if slot.ended else f"ends at {variable}"
    after = ", NOT is broken" if "✗" in seen else f", {' '.join(seen)} seen" if seen else ""
    return what + after + (": matches" if program.accepting(slot) else "")


# ----------------------------------------------------------------------------------------- event by event


def draw_running(
    plan: Plan, events: pa.Table, path: str | Path, *, label: str = "id", title: str | None = None
) -> Path:
    """Draw the running numbers of every slot after each event, and by arrows which were added up, as .svg or .png."""
    with picture(path) as figure:
        found = arithmetic_of(plan, events, label=label)
        numbers, axes = found.numbers(), plane(figure)
        for row, name in enumerate(found.slots):
            axes.text(-0.75, -row * ROW, name, ha="right", va="center", fontsize=10)
        for column, label_ in enumerate(("", *found.labels)):
            axes.text(column * STEP, 0.62, label_, ha="center", va="center", fontsize=11, fontweight="bold")
        for at, (matrix, enters) in enumerate(zip(found.matrices, found.enters, strict=True)):
            _draw_step(axes, at, matrix, enters, numbers[at])
        for column, column_numbers in enumerate(numbers):
            entered = {to for to, _ in found.enters[column - 1]} if column else {found.begin}
            for row, number in enumerate(column_numbers):
                _draw_number(axes, (column * STEP, -row * ROW), number, PALETTE[row % 8] if row in entered else None)
        count = found.matches(numbers[-1])
        summary = f"{len(found.labels)} events, {_matches(count)}, {len(found.slots)} numbers"
        axes.text(0, -len(found.slots) * ROW + 0.2, summary, fontsize=9, color=NOTE, va="top")
        fit(axes, (-2.3, -len(found.slots) * ROW - 0.15), ((len(numbers) - 1) * STEP + 0.6, 0.9))
        heading(axes, title)
    return Path(path)


def _matches(count: int) -> str:
    return f"{count:,} match{'' if count == 1 else 'es'}"


def _draw_step(axes: Axes, at: int, matrix: Matrix, enters: frozenset[tuple[int, int]], before: Sequence[int]) -> None:
    """Arrows for what event number `at` adds up: numbers kept (grey), and bound (in the colour of the slot)."""
    for to, row in enumerate(matrix):
        for source, coefficient in enumerate(row):
            is_entered = (to, source) in enters
            if before[source] and coefficient - is_entered > 0:
                _arrow(axes, at, source, to, FAINT, bend=0.0)
            if before[source] and is_entered:
                _arrow(axes, at, source, to, PALETTE[to % 8], bend=0.0 if to != source else -0.55)


def _arrow(axes: Axes, at: int, source: int, to: int, colour: str, *, bend: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    start, end = (at * STEP + CELL, -source * ROW), ((at + 1) * STEP - CELL - 0.02, -to * ROW)
    shape = f"arc3,rad={bend}"
    arrow = FancyArrowPatch(
        start, end, connectionstyle=shape, arrowstyle="-|>", mutation_scale=9, color=colour, linewidth=1.2, zorder=2
    )
    axes.add_patch(arrow)


def _draw_number(axes: Axes, place: Point, number: int, colour: str | None) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (place[0] - CELL + 0.06, place[1] - 0.16), 2 * CELL - 0.12, 0.32, boxstyle="round,pad=0.05", zorder=3,
        facecolor=colour + "26" if colour else "white", edgecolor=colour or "#D5D9DD", linewidth=1.4 if colour else 0.9,
    )  # fmt: skip
    axes.add_patch(box)
    ink = INK if number else FAINT
    axes.text(*place, f"{number:,}", ha="center", va="center", fontsize=10, color=ink, zorder=4)


# ---------------------------------------------------------------------------------------------- by panes


@dataclass(frozen=True)
class Pane:
    """A stretch of time, the labels of its events, and their product."""

    start: int
    labels: tuple[str, ...]
    matrix: Matrix


@dataclass(frozen=True)
class Pictured:
    """A window: its bounds, the matches in it."""

    start: int
    end: int
    matches: int


def panes_of(plan: Plan, found: RunningNumbers) -> tuple[int, list[Pane], list[Pictured]]:
    """The length of a pane, all panes from the first event to the last, and the windows that lie in them."""
    within, slide = plan.window.within, plan.window.slide
    if within is None or slide is None:
        raise OptionError("the picture shows windows that slide", hint="add WITHIN ... SLIDE ...")
    length, size = math.gcd(within, slide), len(found.slots)
    panes = []
    for start in range(min(found.times) // length * length, max(found.times) + 1, length):
        mine = [at for at, time in enumerate(found.times) if start <= time < start + length]
        matrix = product((found.matrices[at] for at in mine), size)
        panes.append(Pane(start, tuple(found.labels[at] for at in mine), matrix))
    windows = []
    first, last = panes[0].start, panes[-1].start + length
    for start in range(-(-first // slide) * slide, last - within + 1, slide):
        inside = [pane.matrix for pane in panes if start <= pane.start < start + within]
        whole = product(inside, size)
        windows.append(Pictured(start, start + within, found.matches(applied(found.nothing, whole))))
    return length, panes, windows


def draw_panes(plan: Plan, events: pa.Table, path: str | Path, *, label: str = "id", title: str | None = None) -> Path:
    """Draw the matrix of every pane, and below them the windows that are their products, as .svg or .png."""
    with picture(path) as figure:
        found = arithmetic_of(plan, events, label=label)
        length, panes, windows = panes_of(plan, found)
        size, axes = len(found.slots), plane(figure)
        digits = max(len(str(entry)) for pane in panes for row in pane.matrix for entry in row)
        step = max(1.9, size * (digits + 1.6) * DIGIT + 0.7)
        for at, pane in enumerate(panes):
            _draw_pane(axes, at * step, step, pane, found.short, length)
        low = -0.3 * size - 0.5
        for number, window in enumerate(windows):
            left, right = ((edge - panes[0].start) / length * step - step / 2 for edge in (window.start, window.end))
            _draw_window(axes, (left + 0.08, right - 0.08), low - 0.42 * number, window)
        bottom = low - 0.42 * len(windows)
        fit(axes, (-step / 2 - 0.1, bottom), ((len(panes) - 0.5) * step + 1.6, 1.2))
        heading(axes, title)
    return Path(path)


def _draw_pane(axes: Axes, middle: float, step: float, pane: Pane, names: Sequence[str], length: int) -> None:
    from matplotlib.patches import Rectangle

    size = len(names)
    wide = (step - 0.5) / (size + 0.4)
    left = middle - wide * (size - 1) / 2 + 0.1
    axes.text(middle, 0.9, " ".join(pane.labels) or "no event", ha="center", fontsize=11, fontweight="bold")
    axes.text(middle, 0.62, f"pane {pane.start} to {pane.start + length}", ha="center", fontsize=8, color=NOTE)
    box = (left - wide / 2, -0.3 * size + 0.12)
    axes.add_patch(Rectangle(box, wide * size, 0.3 * size, facecolor="#F5F7F9", edgecolor="#D5D9DD", zorder=1))
    for at, name in enumerate(names):
        axes.text(left + at * wide, 0.27, name, ha="center", va="center", fontsize=8, color="#777777")
        axes.text(left - wide / 2 - 0.06, -0.3 * at - 0.03, name, ha="right", va="center", fontsize=8, color="#777777")
        for column, entry in enumerate(pane.matrix[at]):
            ink = INK if entry else "#C4C9CF"
            axes.text(left + column * wide, -0.3 * at - 0.03, str(entry), ha="center", va="center", color=ink, zorder=3)


def _draw_window(axes: Axes, span: tuple[float, float], height: float, window: Pictured) -> None:
    axes.plot(span, (height, height), color=PALETTE[0], linewidth=2.4, solid_capstyle="butt", zorder=2)
    for edge in span:
        axes.plot((edge, edge), (height - 0.07, height + 0.07), color=PALETTE[0], linewidth=1.4, zorder=2)
    text = f"window {window.start} to {window.end}: {_matches(window.matches)}"
    axes.text(span[1] + 0.1, height, text, va="center", fontsize=9)
