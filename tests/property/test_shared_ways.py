"""Random groups of counted sequences: swept forwards, backwards, with segments per START event, as doubles: all alike.

So are segments that some plan shares: the greedy one, the best one, and the best of all.

The examples are the same in every run; `make test-deep` looks further, with new ones each time.
"""

from __future__ import annotations

import numpy as np
from benchmarks.baselines.sharing_plans import heaviest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough

from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.shared import CountedQuery, CountedStep, SharedSteps, StepMeasure
from trendloom.kernels.shared.events import SweptQuery
from trendloom.kernels.shared.program import merge_queries
from trendloom.kernels.shared.sweep import sweep_queries
from trendloom.model.schema import Kind
from trendloom.model.time import Window
from trendloom.planner.sharing.choose_plan import choose_plan
from trendloom.planner.sharing.conflict_graph import SharedSegment, members
from trendloom.planner.sharing.groups import SharingQuestion, shared_steps
from trendloom.planner.sharing.queries import Rates

EXAMPLES = amount(80)
LETTERS = 4
BITS = {letter: letter for letter in range(LETTERS)}
WINDOWS = [Window(), *(Window(*sizes) for sizes in ((10, 10), (10, 3), (4, 7), (5, 1), (6, 3), (20, 5), (10, 5)))]


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    last = draw(st.sampled_from([5, 30]))
    event = st.tuples(st.integers(0, 2), st.integers(-3, last), st.integers(1, 2**LETTERS - 1), st.integers(-3, 9))
    rows = sorted(draw(st.lists(event, max_size=25)))
    key, time, fits, values = (np.array([row[at] for row in rows], np.int64) for at in range(4))
    starts = np.r_[0, np.cumsum(np.bincount(key, minlength=3))].astype(np.int64)
    column = Vector(Kind.INT, values, values != 0, None)
    return Block(starts, time, np.arange(len(rows)), {"x": column}, (fits.astype(np.uint8),))


@st.composite
def queries(draw: st.DrawFn, middle: list[int]) -> CountedQuery:
    letters = st.lists(st.integers(0, LETTERS - 1), max_size=2)
    word = [*draw(letters), *middle, *draw(letters)]
    steps = []
    for place, letter in enumerate(word):
        seldom = draw(st.integers(0, 7))
        gap = frozenset(draw(st.lists(st.integers(0, LETTERS - 1), min_size=1, max_size=2))) if seldom == 1 else ()
        steps.append(CountedStep(letter, seldom == 0, frozenset(gap if place else ())))
    functions = draw(st.lists(st.sampled_from(["sum", "count", "min", "max"]), max_size=2, unique=True))
    measures = [
        StepMeasure(
            Measure(function, function, None, "x", Kind.INT),
            tuple(sorted(draw(st.sets(st.integers(0, len(word) - 1), min_size=1)))),
        )
        for function in functions
    ]
    return CountedQuery(draw(st.sampled_from(WINDOWS)), tuple(steps), (), tuple(measures))


@st.composite
def groups(draw: st.DrawFn) -> list[CountedQuery]:
    middle = draw(st.lists(st.integers(0, LETTERS - 1), min_size=2, max_size=3))
    return [draw(queries(draw(st.sampled_from([middle, middle, [0]])))) for _ in range(draw(st.integers(2, 6)))]


def segments_of(group: list[CountedQuery]) -> list[SharedSteps]:
    """Pairs of steps that several queries have in common and that can be counted for each START event."""
    places: dict[tuple[CountedStep, ...], list[tuple[int, int]]] = {}
    for number, query in enumerate(group):
        taken = 0
        for first in range(len(query.steps) - 1):
            start, second, *after = query.steps[first : first + 3]
            clear = not second.forbidden and not (after and after[0].forbidden)
            if clear and first >= taken and not query.measures:
                known = CountedStep(start.letter, start.repeats)
                places.setdefault((known, second), []).append((number, first))
                taken = first + 2
    return [SharedSteps(steps, tuple(where)) for steps, where in places.items() if len(where) > 1]


def planned_segments(group: list[CountedQuery]) -> dict[str, list[SharedSteps]]:
    """What the greedy, the best and the best of all plans share, if every segment that can be shared is worth it."""
    question = SharingQuestion((), tuple(group), (), Rates((1.0,) * LETTERS))

    def saved(segment: SharedSegment) -> float:
        return len(segment.places) * len(segment.steps) - 1.0 if question.is_countable(segment) else -1.0

    choice = choose_plan(question.patterns, saved, None)
    plans = {"greedy": choice.greedy, "best": choice.found.plan}
    if len(choice.graph.segments) <= 12:
        plans["exhaustive"] = heaviest(choice.graph)
        assert choice.graph.weight(plans["exhaustive"]) == choice.found.weight
    return {
        name: [shared_steps(choice.graph.segments[vertex]) for vertex in members(plan)] for name, plan in plans.items()
    }


def same(one: SweptQuery, other: SweptQuery) -> bool:
    pairs = zip(one.numbers, other.numbers, strict=True)
    where = np.array_equal(one.key, other.key) and np.array_equal(one.start, other.start)
    return where and all(np.allclose(mine, yours) for mine, yours in pairs)


def test_every_way_gives_the_same() -> None:
    shared = 0

    @thorough(EXAMPLES)
    @given(groups(), blocks())
    def compare(group: list[CountedQuery], block: Block) -> None:
        nonlocal shared
        segments = segments_of(group)
        alone = [sweep_queries(merge_queries([query]), block, BITS)[0] for query in group]
        ways = [
            merge_queries(group),
            merge_queries(group, backwards=True),
            merge_queries(group, doubles=True),
            merge_queries(group, segments=segments),
            *(merge_queries(group, segments=plan) for plan in planned_segments(group).values()),
        ]
        for way in ways:
            for found, wanted in zip(sweep_queries(way, block, BITS), alone, strict=True):
                assert not found.spilled
                assert same(found, wanted)
        shared += bool(segments)

    compare()
    assert shared >= at_least(0.1, EXAMPLES)
