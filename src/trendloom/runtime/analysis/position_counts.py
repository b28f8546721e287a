"""How many events pass the conditions on them alone, position by position: the first thing to look at without a match.

Cost: one vectorised pass per condition. No event is sorted, and nothing is matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.vectors import Vector, is_true
from trendloom.io.events import Events
from trendloom.logical.display import show_component, show_expression
from trendloom.logical.plan import Plan, Projection
from trendloom.optimizer import optimize
from trendloom.optimizer.count_in_pattern import count_in_pattern
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.pattern.algebra import Atom, Negation, Pattern, parts
from trendloom.runtime.blocks import Stream


@dataclass(frozen=True)
class Passed:
    """One position: events of its type, how many pass each condition alone, and how many pass all of them.

    `negated`: the NOT around it, 0 for a position of the pattern itself.
    """

    atom: Atom
    negated: int
    of_type: int
    alone: tuple[tuple[str, int], ...]
    together: int

    @property
    def component(self) -> str:
        return show_component(self.atom.type, self.atom.variable)


def matching_alone(plan: Plan) -> Plan:
    """The plan of a query without what is made of its matches: optimized, with the columns that conditions read.

    Positions and partitions are those of the query as it was written.
    """
    bare = replace(plan, output=Projection(()), group_by=(), ranking=None, hidden=frozenset(), confidence=None)
    return optimize(bare, without=(count_in_pattern, split_by_equality))


def stream_of(plan: Plan, events: Events) -> Stream:
    """The events with the columns that matching reads; without their times where these are imprecise."""
    kinds = {column.name: column.kind for column in plan.schema.columns}
    ticks = np.zeros(len(events.types), np.int64) if events.ticks is None else events.ticks
    return Stream(events.table.select(list(plan.scan.columns)), kinds, ticks, {plan.schema.type: events.types})


def passed_events(plan: Plan, stream: Stream) -> Iterator[Passed]:
    """Every position of an optimized plan, in the order of the pattern."""
    keyed = np.ones(len(stream.ticks), np.bool_)
    for name in plan.partition:
        valid = stream.vector(name).valid
        keyed &= True if valid is None else valid
    types = stream.vector(plan.schema.type)
    for atom, scope in atoms_of(plan.pattern):
        mine = keyed & of_type(types, atom.type)
        together, alone = mine, []
        for expr in (expr for position, expr in plan.filters if position == atom.position):
            good = mine & is_true(evaluate(expr, stream.leaf))
            alone.append((show_expression(expr, plan.schema.axis), int(good.sum())))
            together = together & good
        yield Passed(atom, scope, int(mine.sum()), tuple(alone), int(together.sum()))


def atoms_of(pattern: Pattern, scope: int = 0) -> Iterator[tuple[Atom, int]]:
    """The atoms from left to right, each with the NOT around it."""
    if isinstance(pattern, Atom):
        yield pattern, scope
    for part in parts(pattern):
        yield from atoms_of(part, part.scope if isinstance(part, Negation) else scope)


def of_type(types: Vector, name: str) -> Array:
    """Which events are of a type."""
    if types.dictionary is None or not len(types.dictionary):
        return np.zeros(len(types.values), np.bool_)
    found: Array = (types.dictionary == name)[types.values]
    return found if types.valid is None else found & types.valid


def describe_passed(plan: Plan, events: Events) -> str:
    """For one line: how many events of each position pass the conditions on them alone."""
    plan = matching_alone(plan)
    passed = passed_events(plan, stream_of(plan, events))
    return in_one_line(plan, {one.atom.position: (one.together, one.of_type) for one in passed})


def ask_passed(plan: Plan, events: Events) -> Callable[[], str] | None:
    """The same, when it is asked for; None where times are imprecise."""
    return None if plan.schema.imprecise else partial(describe_passed, plan, events)


def in_one_line(plan: Plan, found: dict[int, tuple[int, int]]) -> str:
    """For every position of the pattern how many events pass, of how many."""
    told = []
    for atom, negated in atoms_of(plan.pattern):
        if not negated:
            together, of_type = found.get(atom.position, (0, 0))
            told.append(f"{together:,} of {of_type:,} {show_component(atom.type, atom.variable)}")
    return ", ".join(dict.fromkeys(told))
