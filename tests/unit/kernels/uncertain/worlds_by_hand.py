"""Imprecise time by brute force: every world by the definitions, and every choice of points of a few events.

Nothing here uses a kernel but `found_by_search`, which is what is tested.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from tests.property.strategies import SCHEMA, to_table

from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import IntervalBlock, with_intervals
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.uncertain.kernel import signatures_of
from trendloom.kernels.uncertain.signatures import Signatures
from trendloom.logical.bind import bind
from trendloom.model.imprecision import Intervals, Masses
from trendloom.reference.matches import Search
from trendloom.reference.stream import StepBudget, cut_partitions, cut_windows, read_event
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

Row = dict[str, Any]
Name = tuple[int | None, tuple[tuple[int, str], ...]]
"""Start of the window, and (row of the input, variable) of each event: a planner may number positions anew."""


class Chance(NamedTuple):
    confidence: Fraction
    low: int
    high: int


@dataclass(frozen=True)
class ImpreciseCase:
    """Events with `low` and `high` in ticks, and optionally `masses`, one for each point."""

    query: str
    events: tuple[Row, ...]
    grain: int = 1

    def points(self, row: int) -> list[tuple[int, Fraction]]:
        """The points of an event, in ticks, with their probabilities; those without any are left out."""
        event = self.events[row]
        times = range(event["low"], event["high"] + 1, self.grain)
        masses = event.get("masses") or [1] * len(times)
        total = sum(masses)
        return [(time, Fraction(mass, total)) for time, mass in zip(times, masses, strict=True) if mass]

    @property
    def worlds(self) -> int:
        return math.prod(len(self.points(row)) for row in range(len(self.events)))


def by_worlds(case: ImpreciseCase) -> dict[Name, Chance]:
    """All signatures, by the definitions run in every world."""
    plan = bind(parse_query(case.query), SCHEMA)
    budget = StepBudget()
    search = Search(plan, budget)
    found: dict[Name, Chance] = {}
    events = [read_event(number, row, SCHEMA, row["low"]) for number, row in enumerate(case.events)]
    for members in cut_partitions(events, plan.partition).values():
        rows = [event.row for event in members]
        for world in itertools.product(*(case.points(row) for row in rows)):
            times = {row: time for row, (time, _) in zip(rows, world, strict=True)}
            weight = math.prod((p for _, p in world), start=Fraction(1))
            stream = [read_event(row, case.events[row], SCHEMA, times[row]) for row in rows]
            for window, inside in cut_windows(stream, plan.window, budget):
                for binding in search.matches(inside):
                    name = tuple((event.row, atom.variable) for event, atom in binding)
                    key = (None if window is None else window[0], name)
                    low, high = times[name[0][0]], times[name[-1][0]]
                    old = found.get(key, Chance(Fraction(0), low, high))
                    found[key] = Chance(old.confidence + weight, min(old.low, low), max(old.high, high))
    return found


def prepared(case: ImpreciseCase) -> tuple[PatternSpec, IntervalBlock]:
    """The tables of a query, and the block of the events."""
    events = [{**event, "time": event["low"]} for event in case.events]
    table = to_table([{name: event.get(name) for name in SCHEMA.names} for event in events])
    physical = plan_query(bind(parse_query(case.query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    block, _ = build_block(physical, Stream(table, kinds, table["time"].to_numpy()))
    low, high = (np.array([event[name] for event in events], np.int64) for name in ("low", "high"))
    masses = None
    if any(event.get("masses") for event in events):
        given = [event.get("masses") or [] for event in events]
        offsets = np.r_[0, np.cumsum([len(some) for some in given])].astype(np.int64)
        masses = Masses(offsets, np.array([mass for some in given for mass in some], np.float64))
    return physical.pattern_spec, with_intervals(block, Intervals(low, high, masses), case.grain)


class FoundRival(NamedTuple):
    row: int
    gap: int
    forbidden: bool
    excused_by: int
    excuses: int


def found_by_search(
    case: ImpreciseCase, chunk: int = 1 << 18, threshold: Fraction | None = None
) -> Iterator[tuple[Name, list[FoundRival]]]:
    """What the search finds, with the rows of the input in the place of indices."""
    spec, block = prepared(case)
    for found in signatures_of(spec, block, chunk, threshold):
        yield from as_names(found, block, spec)


def as_names(
    signatures: Signatures, block: IntervalBlock, spec: PatternSpec
) -> Iterator[tuple[Name, list[FoundRival]]]:
    """Signatures and rivals of a chunk."""
    rivals = signatures.rivals
    for at in range(len(signatures)):
        match = signatures.matches.part(at, at + 1)
        rows = block.row[match.events].tolist()
        variables = [spec.places[position].variable for position in match.positions]
        name = tuple(zip(rows, variables, strict=True))
        others = []
        if rivals is not None:
            theirs = rivals.rows[rivals.offsets[at] : rivals.offsets[at + 1]].tolist()
            others = [FoundRival(int(block.row[event]), gap, bool(no), *bits) for event, gap, no, *bits in theirs]
        start = None if match.window_start is None else int(match.window_start[0])
        yield (start, name), others


def by_points(case: ImpreciseCase, name: Name, rivals: Sequence[FoundRival]) -> Chance | None:
    """The chance of a signature, by every choice of points of its events and its rivals; None: there is none."""
    window = bind(parse_query(case.query), SCHEMA).window
    start, signature = name
    mine = [row for row, _ in signature]
    others = sorted({rival.row for rival in rivals})
    found = None
    for world in itertools.product(*(case.points(row) for row in (*mine, *others))):
        times = {row: time for row, (time, _) in zip((*mine, *others), world, strict=True)}
        bound = [times[row] for row in mine]
        if any(a >= b for a, b in itertools.pairwise(bound)):
            continue
        first, last = bound[0], bound[-1]
        begin, end = -math.inf, math.inf
        if start is not None:
            begin, end = start - 1, start + (window.within or 0)
            if not (begin < first and last < end):
                continue
        elif window.within is not None:
            if last - first >= window.within:
                continue
            begin, end = last - window.within, first + window.within
        gaps = list(itertools.pairwise([begin, *bound, end]))
        if any(_is_harm(rival, rivals, times, gaps[rival.gap]) for rival in rivals):
            continue
        weight = math.prod((p for _, p in world), start=Fraction(1))
        old = found or Chance(Fraction(0), first, last)
        found = Chance(old.confidence + weight, min(old.low, first), max(old.high, last))
    return found


def _is_harm(rival: FoundRival, rivals: Sequence[FoundRival], times: dict[int, int], gap: tuple[float, float]) -> bool:
    when = times[rival.row]
    if not rival.forbidden or not gap[0] < when < gap[1]:
        return False
    return not any(
        other.gap == rival.gap and other.excuses & rival.excused_by and gap[0] < times[other.row] < when
        for other in rivals
    )
