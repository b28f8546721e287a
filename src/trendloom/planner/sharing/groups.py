"""Groups of queries that one kernel answers, and how: the way that should take the least time.

Prefixes are shared by a sweep at no cost, suffixes by one that begins at the end of the stream. Segments in the middle
can be counted per START event; which of them, `choose_plan` finds, by what each would save here. The plan as a whole is
then judged against the others, and against every query by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import cast

from trendloom.expr.nodes import Group, with_attributes
from trendloom.kernels.shared import CountedQuery, CountedStep, Family, SharedSteps, families_of
from trendloom.kernels.shared.kernel import ApartQuery, SharedKernel
from trendloom.logical.display import show_expression
from trendloom.logical.plan import Attributes, Workload
from trendloom.logical.statistics import Statistics, StatisticsOf, nothing_known
from trendloom.model.amounts import MOST_SHARING_STEPS
from trendloom.model.time import TimeAxis
from trendloom.planner.plan import Physical
from trendloom.planner.sharing.choose_plan import SharingChoice, choose_plan
from trendloom.planner.sharing.conflict_graph import SharedSegment, mine_segments
from trendloom.planner.sharing.queries import (
    Rates,
    SharedFilter,
    counted_query,
    rates_of,
    reads_of_outcome,
    seconds_alone,
    seconds_of_sweep,
    segment_cost,
    shared_filters,
    step_cost,
)

ALONE = "every query by itself"
FORWARDS, BACKWARDS = "one sweep, common prefixes once", "one sweep from the end, common suffixes once"
PER_START = "one sweep, common prefixes once, segments per START event"
SHARE_OF_TIME = 0.1
"""How much of the time that the queries should take by themselves the search for the best segments may take."""
STEPS_PER_SECOND = 1e6
"""Steps of the search, about: a rate, so that the bound depends on the queries and not on the machine."""
LONG_COUNTS = 90.0
"""Events of a repeated step in a window beyond which numbers of matches do not fit a sweep."""


@dataclass(frozen=True)
class Way:
    """A way to answer all queries of a group, and how many seconds it should take; None: unknown."""

    name: str
    seconds: float | None = None


@dataclass(frozen=True)
class Considered:
    """The ways that were weighed, the first of which is that every query is answered by itself, and the one taken.

    `names`: of the queries; `patterns`: their steps as text. Queries are numbered as in
    `choice`, which holds the segments that they have in common.
    """

    names: tuple[str, ...]
    patterns: tuple[tuple[str, ...], ...]
    choice: SharingChoice
    ways: tuple[Way, ...]
    taken: int
    unit: str = ""  # of what segments save
    measured: float | None = None  # how many seconds the way took, where it was tried

    @property
    def way(self) -> Way:
        return self.ways[self.taken]


@dataclass(frozen=True)
class SharingQuestion:
    """Queries of one set of keys that may be counted in one sweep, and what is known of their events."""

    names: tuple[str, ...] = field(compare=False)
    queries: tuple[CountedQuery, ...]
    event_filters: tuple[SharedFilter, ...]
    rates: Rates
    shown: tuple[str, ...] = field(default=(), compare=False)  # by event filter, as text
    limit: int | None = MOST_SHARING_STEPS  # steps of the search; None: until the best segments are found

    @cached_property
    def families(self) -> dict[int, Family]:
        """By query the family of its windows."""
        found = families_of(self.queries)
        return {
            number: next(family for family in found if query.window in family.windows)
            for number, query in enumerate(self.queries)
        }

    @property
    def patterns(self) -> tuple[tuple[CountedStep, ...], ...]:
        return tuple(query.steps for query in self.queries)

    def saved(self, segment: SharedSegment) -> float:
        """What a segment saves, in microseconds: as a prefix, or counted per START event."""
        return (self._as_prefix(segment) if segment.is_prefix else self._per_start(segment)) / 1000

    def _as_prefix(self, segment: SharedSegment) -> float:
        families = [self.families[query] for query, _ in segment.places]
        each = {
            family: sum(step_cost(step.letter, family, self.rates) for step in _steps(segment)) for family in families
        }
        return sum(each[family] for family in families) - sum(each.values())

    def _per_start(self, segment: SharedSegment) -> float:
        if not self.is_countable(segment):
            return -1.0
        letters = [step.letter for step in _steps(segment)]
        found = 0.0
        for family in {self.families[query] for query, _ in segment.places}:
            places = [(query, first) for query, first in segment.places if self.families[query] is family]
            nodes = {
                self.queries[query].steps[: at + 1]
                for query, first in places
                for at in range(first, first + len(letters))
            }
            followers = [self.queries[query].steps[first + len(letters) :] for query, first in places]
            read = [reads_of_outcome(some[0].letter if some else None, family, self.rates) for some in followers]
            found += sum(step_cost(node[-1].letter, family, self.rates) for node in nodes)
            found -= segment_cost(letters, read, family, self.rates)
        return found

    def is_countable(self, segment: SharedSegment) -> bool:
        """Whether it can be counted per START event: numbers of matches, no NOT inside or right after it."""
        for query, first in segment.places:
            one = self.queries[query]
            inside = one.steps[first + 1 : first + len(segment.steps) + 1]
            if one.measures or any(step.forbidden for step in inside):
                return False
        return True

    def choice(self, steps: float | None = None) -> SharingChoice:
        """What the queries have in common, and the best plan to share it; None: however long the search takes."""
        return choose_plan(self.patterns, self.saved, steps)

    @property
    def search(self) -> FoundSegments:
        """What is best counted per START event, or the best within the limit; prefixes are shared anyway."""
        return _search(self)

    @property
    def without_limit(self) -> SharingQuestion:
        return replace(self, limit=None)


@dataclass(frozen=True)
class FoundSegments:
    """The segments that a search has found, and whether there is certainly nothing better."""

    segments: tuple[SharedSteps, ...] = ()
    best: bool = True


@lru_cache(maxsize=16)
def _search(question: SharingQuestion) -> FoundSegments:
    """A function of the question alone, cached because a workload is planned more than once."""
    mined = mine_segments(question.patterns)
    if not any(question.saved(one) > 0 for one in mined if not one.is_prefix):
        return FoundSegments()
    steps = None
    if question.limit is not None:
        worth = SHARE_OF_TIME * seconds_alone(question.queries, question.rates) * STEPS_PER_SECOND
        steps = min(worth, question.limit)
    choice = question.choice(steps)
    found = tuple(shared_steps(one) for one in choice.segments if not one.is_prefix)
    return FoundSegments(found, choice.found.is_best)


def shared_steps(segment: SharedSegment) -> SharedSteps:
    """A segment as the kernel reads it."""
    return SharedSteps(_steps(segment), segment.places)


def _steps(segment: SharedSegment) -> tuple[CountedStep, ...]:
    return cast("tuple[CountedStep, ...]", segment.steps)


@dataclass(frozen=True)
class SharedGroup:
    """Queries of one set of keys, by their numbers in the workload, that one kernel answers.

    `ways`: those that were weighed, and which of them was taken.
    """

    members: tuple[int, ...]
    question: SharingQuestion
    kernel: SharedKernel
    ways: tuple[Way, ...]
    taken: int

    @property
    def saved(self) -> str:
        """What is not done twice, for EXPLAIN."""
        positions = sum(len(query.steps) for query in self.question.queries)
        what = "suffixes" if self.kernel.backwards else "prefixes"
        segments = len(self.kernel.merged.segments.family)
        more = f", {segments} segments per START event" if segments else ""
        return f"{self.kernel.merged.nodes} {what} for {positions} positions{more}"

    @property
    def considered(self) -> Considered:
        """What was weighed; the segments that could be shared are found here."""
        shown = self.question.shown
        patterns = tuple(tuple(_named(step, shown) for step in query.steps) for query in self.question.queries)
        choice = self.question.choice(self.question.limit)
        return Considered(self.question.names, patterns, choice, self.ways, self.taken, " µs")


def _shown(event_filter: SharedFilter, axis: TimeAxis) -> str:
    """A type, with the conditions on its event: `Pickup[zone = 132]`."""
    kind, tests = event_filter
    bare = [with_attributes(test, lambda one: Group(one.column, one.kind)) for test in tests]
    return f"{kind}[{' AND '.join(show_expression(test, axis) for test in bare)}]" if bare else str(kind)


def _named(step: CountedStep, shown: tuple[str, ...]) -> str:
    gaps = "".join(f"NOT {shown[number]}, " for number in sorted(step.forbidden))
    return f"{gaps}{shown[step.letter]}{'+' if step.repeats else ''}"


def shared_groups(
    workload: Workload, queries: tuple[Physical, ...], statistics: StatisticsOf = nothing_known
) -> tuple[SharedGroup, ...]:
    """The groups of queries that are answered by one kernel."""
    found = []
    for keys in workload.key_sets:
        known = statistics(queries[keys.members[0]].plan)
        members = tuple(number for number in keys.members if _fits_a_sweep(queries[number], keys.attributes, known))
        some = [queries[number] for number in members]
        group = _best(members, question_of(some, keys.attributes, known)) if len(some) > 1 else None
        if group is not None:
            found.append(replace(group, kernel=with_queries_apart(group.kernel, some)))
    return tuple(found)


def question_of(queries: Sequence[Physical], attributes: Attributes, statistics: Statistics) -> SharingQuestion:
    """What queries with these keys may share; each of them is a counted sequence."""
    letters: dict[SharedFilter, int] = {}
    counted = [counted_query(physical, letters) for physical in queries]
    first = queries[0]
    return SharingQuestion(
        tuple(str(physical.plan.name) for physical in queries),
        tuple(one for one in counted if one is not None),
        tuple(letters),
        rates_of(letters, attributes, statistics),
        tuple(_shown(one, first.plan.schema.axis) for one in letters),
        first.limits.sharing_steps,
    )


def with_queries_apart(kernel: SharedKernel, queries: Sequence[Physical]) -> SharedKernel:
    """The kernel with each of its queries by itself, for numbers that are too large for a sweep."""
    numbers: dict[SharedFilter, int] = {one: number for number, one in enumerate(kernel.asked)}
    apart = []
    for physical in queries:
        filters = tuple(numbers.setdefault(one, len(numbers)) for one in shared_filters(physical))
        apart.append(ApartQuery(physical.kernel, filters))
    return replace(kernel, asked=tuple(numbers), apart=tuple(apart))


def _fits_a_sweep(physical: Physical, attributes: Attributes, statistics: Statistics) -> bool:
    """Whether a query is a counted sequence, and its repeated steps are not certain to have too many matches."""
    letters: dict[SharedFilter, int] = {}
    query = counted_query(physical, letters)
    if query is None:
        return False
    rates, (family,) = rates_of(letters, attributes, statistics), families_of([query])
    long = (rates.within_reach(step.letter, family) > LONG_COUNTS for step in query.steps if step.repeats)
    return not (rates.known and any(long))


def _best(members: tuple[int, ...], question: SharingQuestion) -> SharedGroup | None:
    """The way that should take the least time; None: every query by itself."""
    kernels = _kernels(question)
    seconds = {ALONE: seconds_alone(question.queries, question.rates)}
    seconds |= {name: seconds_of_sweep(kernel.merged, question.rates) for name, kernel in kernels.items()}
    best = min(seconds, key=lambda name: seconds[name])
    if best == ALONE:
        return None
    ways = tuple(Way(name, one if question.rates.known else None) for name, one in seconds.items())
    return SharedGroup(members, question, kernels[best], ways, list(seconds).index(best))


def _kernels(question: SharingQuestion) -> dict[str, SharedKernel]:
    """The ways to answer queries by one kernel."""
    forwards = SharedKernel(question.queries, question.event_filters)
    found = {FORWARDS: forwards, BACKWARDS: replace(forwards, backwards=True)}
    segments = question.search.segments
    return found | ({PER_START: replace(forwards, segments=segments)} if segments else {})


def kernel_for(
    queries: Sequence[Physical], attributes: Attributes, statistics: StatisticsOf, numeric: str
) -> SharedKernel:
    """The best kernel for queries with these keys that are to be counted in one sweep, one or more."""
    question = question_of(queries, attributes, statistics(queries[0].plan))
    best = min(_kernels(question).values(), key=lambda kernel: seconds_of_sweep(kernel.merged, question.rates))
    return with_queries_apart(best, queries).in_numbers(numeric)
