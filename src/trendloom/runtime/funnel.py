"""Why there is no match, or so few: how many events pass, are reached, and by what they are stopped.

Partial matches are grown over the events (`kernels.match.expansion`), under the semantics of the query. Then once
more for every condition, NOT, partition attribute and window, with this one left out: what is reached then and was not
before is what it stopped.

Cost: bounded. Of a stream that is too long its first partitions are searched, or the beginning of the first one; a
search that takes longer than its share of time gives a lower bound, and the rest is left out. The output says
which.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from trendloom.errors import PlanError
from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Constant
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend.tql.keywords import write_name
from trendloom.io.events import Events
from trendloom.kernels.columns.block import Block, horizons
from trendloom.logical.display import Branch, show_component, show_duration
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind
from trendloom.model.selection import Semantics
from trendloom.model.time import Window
from trendloom.pattern.algebra import Negation, atoms, negations
from trendloom.planner.inspection import NOWHERE, Reached, reached_by_partial_matches
from trendloom.planner.pattern_tables import describe
from trendloom.planner.plan import Physical, choose
from trendloom.runtime.blocks import build_block, key_codes
from trendloom.runtime.statistics import Passed, atoms_of, matching_alone, passed_events, stream_of

MOST_PAIRS = 20_000_000
"""Pairs of events that are compared for one step, under skip-till-any-match."""
MOST_EVENTS = 50_000
"""Events of runs, which look at few others."""
SECONDS = 10.0
"""Of processor time, for all searches together; the first one takes a half at most."""
NAME = "How far matching gets"


@dataclass(frozen=True)
class Stopped:
    """What was left out, and what is then reached; None: there was no time to look. `single`: it is of one event."""

    what: str
    single: bool
    found: Reached | None


def describe_funnel(plan: Plan, events: Events, clock: Callable[[], float] = time.process_time) -> Branch:
    """How many events pass each condition, reach each position, and what stops the others."""
    if events.ticks is None:
        return Branch(NAME, "not looked at: time is imprecise")
    try:
        return _Funnel(plan, events, clock).describe()
    except PlanError as refusal:
        return Branch(NAME, f"not looked at: {refusal.message}")


class _Funnel:
    """One query over one stream."""

    def __init__(self, plan: Plan, events: Events, clock: Callable[[], float]) -> None:
        self.plan, self.clock, self.begun = plan, clock, clock()
        self.optimized = matching_alone(plan)
        self.all = list(passed_events(self.optimized, stream_of(self.optimized, events)))
        self.events, self.cut = _looked_at(searched(plan), events)
        self.passed = self.all
        if self.cut:
            self.passed = list(passed_events(self.optimized, stream_of(self.optimized, self.events)))
        found = self.search(plan, SECONDS / 2)
        assert found is not None
        self.found: Reached = found
        self.stopped = list(self._leave_out()) if self._something_is_stopped() else []

    def search(self, plan: Plan, until: float) -> Reached | None:
        if self.clock() - self.begun > until:
            return None
        physical = searched(plan)
        pattern_spec = physical.pattern_spec
        block, _ = build_block(physical, stream_of(physical.plan, self.events))
        return reached_by_partial_matches(pattern_spec, block, lambda: self.clock() - self.begun <= until)

    def _something_is_stopped(self) -> bool:
        short = any(self.reached_at(one, self.found) < one.passing for one in self.passed if not one.negated)
        empty = any(not one.passing for one in self.passed if not one.negated)
        return short or empty or not self.found.ends.any()

    def _leave_out(self) -> Iterator[Stopped]:
        choices = list(left_out(self.plan))
        single = {one.text for one in self.plan.conditions if shape_of(one.expr).local is not None}
        for number, (what, plan) in enumerate(choices):
            share = SECONDS / 2 * (1 + (number + 1) / len(choices))
            yield Stopped(what, what in single, self.search(plan, share))

    @staticmethod
    def reached_at(one: Passed, found: Reached) -> int:
        return int(found.events[one.atom.position].sum())

    # ------------------------------------------------------------------------------------------- in words

    def describe(self) -> Branch:
        below = [*self._caveats(), *self._positions(), self._ends()]
        return Branch(NAME, below=tuple(below))

    def _caveats(self) -> Iterator[Branch]:
        valid = key_codes(self.optimized.partition, stream_of(self.optimized, self.events)).valid
        if valid is not None and not valid.all():
            keys = ", ".join(self.optimized.partition)
            yield Branch("left aside", f"{int((~valid).sum()):,} of no partition: {keys} is NULL")
        if self.cut:
            yield Branch("looked at", self.cut)
        if not self.found.whole:
            yield Branch("stopped", "trying everything would take long: numbers are lower bounds")

    def _positions(self) -> Iterator[Branch]:
        named: set[str] = set()
        for one, looked_at in zip(self.all, self.passed, strict=True):
            alone = [Branch(text, f"{count:,} pass it alone") for text, count in one.alone]
            passing = f", {one.passing:,} pass" if one.alone else ""
            events = f"{one.of_type:,} event{'' if one.of_type == 1 else 's'}{passing}"
            if one.negated:
                yield Branch(f"{one.atom.position} NOT {one.component}", events, tuple(alone))
                continue
            now = self.reached_at(one, self.found)
            of = f" of {looked_at.passing:,} looked at" if self.cut else ""
            stops = list(self._stops(partial(self.reached_at, one), now, named, one.atom.position))
            if not now and not stops and looked_at.passing and self._awaited(one):
                stops = [Branch("stopped by", "several together: without any one of them still nothing gets here")]
            text = f"{events}, {self._least}{now:,}{of} reached" if one.of_type else "no event of this type"
            yield Branch(f"{one.atom.position} {one.component}", text, (*alone, *stops))

    @property
    def _least(self) -> str:
        return "" if self.found.whole else "at least "

    def _awaited(self, one: Passed) -> bool:
        """Whether something is reached from which this position comes next."""
        template = describe(self.optimized).scopes[0].template
        if one.atom.position in template.first:
            return True
        return any(one.atom.position in after and self.found.events[p].any() for p, after in template.follow.items())

    def _stops(
        self, count: Callable[[Reached], int], now: int, named: set[str], position: int | None = None
    ) -> Iterator[Branch]:
        """What raises a number when it is left out; at the first place where it does, and wherever nothing gets."""
        for one in self.stopped:
            then = 0 if one.found is None else count(one.found)
            whole = one.found is not None and one.found.whole
            if then > now and (not now or (self.found.whole and not one.single and one.what not in named)):
                named.add(one.what)
                what = "reached" if position is not None else "ends of a match"
                number = f"{'' if whole else 'at least '}{then:,}"
                yield Branch(f"without {one.what}", f"{number} {what}{self._span(one, position)}")
            elif not now and not whole and one.what not in named:
                named.add(one.what)
                yield Branch(f"without {one.what}", "not known: looking would take long")

    def _span(self, one: Stopped, position: int | None) -> str:
        """How far apart the events are that a window keeps apart."""
        window = self.plan.window
        if one.found is None or position is None or window.within is None or one.what != _within(self.plan):
            return ""
        shortest = int(one.found.shortest[position])
        if shortest == NOWHERE:
            return ""
        return f"; the shortest way there takes {show_duration(shortest, self.plan.schema.axis)}"

    def _ends(self) -> Branch:
        """Matches, and what keeps partial matches that went all the way from being one."""
        now = int(self.found.ends.sum())
        if now:
            return Branch("a match", f"{self._least}{now:,} {'event ends' if now == 1 else 'events end'} one")
        last = describe(self.optimized).scopes[0].template.last
        near = any(self.found.events[position].any() for position in last)
        below = tuple(self._stops(lambda found: int(found.ends.sum()), now, set())) if near else ()
        complete = "none is complete of what was looked at" if self.cut else "none is complete"
        return Branch("a match", complete if self.found.whole else "none was found", below)


# --------------------------------------------------------------------------------------------- left out


def left_out(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The query without one of its conditions, NOTs, partition attributes, its window or its semantics."""
    for text, expr in dict.fromkeys((one.text, one.expr) for one in plan.conditions):
        kept = tuple(one for one in plan.conditions if (one.text, one.expr) != (text, expr))
        yield text, replace(plan, conditions=kept)
    for name in plan.partition:
        shown = write_name(name, reserved_allowed=True)
        what = f"GROUP BY {shown}" if name in plan.group_by else f"[{shown}]"
        yield what, replace(plan, partition=tuple(other for other in plan.partition if other != name))
    for negation in negations(plan.pattern):
        never = tuple((atom.position, Constant(value=False, kind=Kind.BOOL)) for atom in atoms(negation))
        yield _not(negation), replace(plan, filters=(*plan.filters, *never))
    if plan.window.within is not None:
        yield _within(plan), replace(plan, window=Window())
    if plan.semantics is not Semantics.ANY:
        yield f"SEMANTICS {plan.semantics.value}", replace(plan, semantics=Semantics.ANY)


def _not(negation: Negation) -> str:
    inside = ", ".join(show_component(atom.type, atom.variable) for atom, _ in atoms_of(negation.body))
    return f"NOT {inside}" if "," not in inside else f"NOT ({inside})"


def _within(plan: Plan) -> str:
    assert plan.window.within is not None
    return f"WITHIN {show_duration(plan.window.within, plan.schema.axis)}"


def searched(plan: Plan) -> Physical:
    """The plan of a search for matches of which nothing is made."""
    return choose(matching_alone(plan))


# ------------------------------------------------------------------------------------- events that are searched


def _looked_at(physical: Physical, events: Events) -> tuple[Events, str]:
    """As many events as can be searched, and which they are ("": all)."""
    plan = physical.plan
    stream = stream_of(plan, events)
    block, keys = build_block(physical, stream)
    cost, most = _pairs(physical, block)
    total = np.cumsum(cost)
    if not len(total) or total[-1] <= most:
        return events, ""
    last = int(np.searchsorted(total, most))  # the first event that is too many
    key = int(block.key[last])
    if key > 0:
        rows = np.flatnonzero((keys.codes >= 0) & (keys.codes < key))
        cut = f"{len(rows):,} of {len(keys.codes):,} events: {key:,} of {keys.count:,} partitions"
    else:
        rows = np.flatnonzero((keys.codes == 0) & (stream.ticks <= block.time[last]))
        cut = f"the first {len(rows):,} of {len(keys.codes):,} events" + (" of one partition" if plan.partition else "")
    table, types = events.table.take(pa.array(rows)), events.types.take(rows)
    return replace(events, table=table, ticks=stream.ticks[rows], types=types), cut


def _pairs(physical: Physical, block: Block) -> tuple[Array, int]:
    """What each event costs, together with those before it, and how much is allowed."""
    if physical.pattern_spec.earliest or physical.pattern_spec.adjacent:
        return np.ones(len(block), np.int64), MOST_EVENTS
    number = np.arange(len(block))
    limit = horizons(block, physical.pattern_spec.window)
    earliest = block.key_starts[block.key]
    if limit is not None:
        earliest = np.maximum(earliest, np.searchsorted(limit, number, side="right"))
    return np.maximum(number - earliest, 1), MOST_PAIRS
