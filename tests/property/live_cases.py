"""Random live streams: a query, events in an order of arrival, cut into micro-batches, with a delay and buckets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Case, Knobs, cases, to_table
from tests.property.strategies_aggregates import GROUPINGS, HIDDEN, NEGATED, PLAIN, Aimed, aimed
from tests.property.strategies_nesting import KINDS as NESTED
from tests.property.strategies_nesting import nested_cases
from tests.property.strategies_order import Order, ordered_cases
from tests.property.strategies_ranking import Rankings, ranked_cases

KINDS: dict[str, Aimed | Knobs] = {
    "matches, any": Knobs(outputs=("trends", "values"), semantics=(ANY,)),
    "matches, runs": Knobs(outputs=("trends", "values"), semantics=(NEXT, CONTIGUOUS)),
    "complete": Knobs(outputs=("complete",), semantics=(ANY,), most_events=7),
    "complete, one variable": Knobs(outputs=("complete",), semantics=(ANY,), most_atoms=1, negation=False),
    "collapsed": Knobs(outputs=("collapsed",), semantics=(ANY,), most_conjuncts=1),
    "negation": Knobs(outputs=("trends", "aggregates"), nesting=1, most_conjuncts=1),
    "matrices": Aimed(PLAIN + NEGATED, ("nothing", "alone"), GROUPINGS),
    "hidden events": Aimed(HIDDEN, semantics=(ANY,), most_events=20),
    "transitions": Aimed(PLAIN, ("operators", "equal and ordered", "distant"), GROUPINGS),
    "runs": Aimed(PLAIN + NEGATED, ("nothing", "operators"), GROUPINGS, semantics=(NEXT, CONTIGUOUS)),
    "anything": Knobs(outputs=("aggregates",)),
    "remainders": Knobs(outputs=("trends", "values", "complete", "collapsed", "aggregates"), hiding=True),
}
"""Every kind of query that there is, but for nested and ranked ones."""
RANKED = {"ranked": Rankings(), "ranked and joined": Rankings(joined=True)}
BOARDS = Rankings(semantics=(ANY,), most_events=16)
"""Ranks that may be given out early."""


@dataclass(frozen=True)
class LiveCase:
    """`batches` in order of arrival. `delay` is how long the watermark waits, in seconds."""

    query: str
    batches: tuple[tuple[dict[str, Any], ...], ...]
    delay: int
    buckets: int
    restarts: tuple[bool, ...]  # after which batches the stream is stopped and resumed
    crowd: int  # chunks of state that may lie side by side
    order: Order = ()  # columns that order events of equal time

    def tables(self) -> list[pa.Table]:
        return [to_table(batch) for batch in self.batches]


@st.composite
def live_cases(draw: st.DrawFn, kind: str) -> LiveCase:
    """A random query over a random stream that arrives in disorder."""
    knobs = KINDS[kind]
    return draw(arrivals(draw(aimed(knobs) if isinstance(knobs, Aimed) else cases(knobs))))


@st.composite
def nested_live_cases(draw: st.DrawFn, kind: str) -> LiveCase:
    """A random nested query over such a stream."""
    return draw(arrivals(draw(nested_cases(NESTED[kind]))))


@st.composite
def ranked_live_cases(draw: st.DrawFn, rankings: Rankings) -> LiveCase:
    """A random ranked query over such a stream."""
    case = draw(ranked_cases(rankings))
    return draw(arrivals(Case(case.query, case.events)))


@st.composite
def ordered_live_cases(draw: st.DrawFn, kind: str) -> LiveCase:
    """The same for a stream full of equal times, with columns that order them."""
    case = draw(ordered_cases(KINDS[kind]))
    return replace(draw(arrivals(Case(case.query, case.events))), order=case.order)


@st.composite
def arrivals(draw: st.DrawFn, case: Case) -> LiveCase:
    """How the events of a case arrive."""
    disorder = draw(st.sampled_from([0, 2, 5, 20]))
    keyed = [(event["time"] + draw(st.integers(0, disorder)), n) for n, event in enumerate(case.events)]
    arrival = [case.events[n] for _, n in sorted(keyed)]
    cuts = sorted(draw(st.lists(st.integers(0, len(arrival)), max_size=5)))
    bounds = [0, *cuts, len(arrival)]
    batches = tuple(tuple(arrival[a:b]) for a, b in pairwise(bounds))
    return LiveCase(
        query=bounded(case.query, draw(st.integers(2, 9)), draw(st.integers(1, 9))),
        batches=batches,
        delay=draw(st.sampled_from([0, 1, 3, 8])),
        buckets=draw(st.integers(1, 4)),
        restarts=tuple(draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))),
        crowd=draw(st.sampled_from([0, 1, 2, 16])),
    )


def bounded(query: str, within: int, slide: int) -> str:
    """The query with a window: a live stream has no end."""
    return query if "WITHIN" in query else f"{query}\nWITHIN {within} s SLIDE {slide} s"
