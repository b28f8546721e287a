"""Groups of queries that one kernel answers together, and how: the way that should take the least time.

Prefixes are shared by a sweep at no cost, suffixes by one that begins at the end of the stream. Segments in the middle
can be counted per START event; which of them, the optimizer of `planner.sharing` finds, by what each would save here.
The plan as a whole is then judged against the others, and against every query by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from trendloom.expr.nodes import Group, of_any_event, with_attributes
from trendloom.kernels.shared.kernel import ApartQuery, SharedKernel
from trendloom.kernels.shared.steps import CountedQuery, CountedStep, Family, SharedSteps, families_of
from trendloom.logical.display import show_expression
from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.logical.workload import Attributes, Workload
from trendloom.model.time import TimeAxis
from trendloom.planner.plan import Physical
from trendloom.planner.sharing.choose_plan import SharingChoice, choose_plan
from trendloom.planner.sharing.costs import (
    Rates,
    often_asked,
    rates_of,
    seconds_alone,
    seconds_together,
    segment_cost,
    step_cost,
)
from trendloom.planner.sharing.queries import QueryEventFilters, counted_query
from trendloom.planner.sharing.segments import SharedSegment, mine_segments

# What was weighed for a group of queries that may share work, for EXPLAIN and its picture.


@dataclass(frozen=True)
class Way:
    """A way to answer all queries of a group, and how many seconds it should take; None: unknown."""

    name: str
    seconds: float | None = None


@dataclass(frozen=True)
class Considered:
    """The ways that were weighed, the first of which is that every query is answered by itself, and the one taken.

    `names`: of the queries; `words`: their patterns, letter by letter, for people to read. Queries in `choice`, which
    says what segments they have in common, are numbered as here.
    """

    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    choice: SharingChoice
    ways: tuple[Way, ...]
    taken: int
    unit: str = ""  # of what segments save
    measured: float | None = None  # how many seconds the way took, where it was tried

    @property
    def way(self) -> Way:
        return self.ways[self.taken]


ALONE = "every query by itself"
FORWARDS, BACKWARDS = "one sweep, common prefixes once", "one sweep from the end, common suffixes once"
PER_START = "one sweep, common prefixes once, segments per START event"
SHARE_OF_TIME = 0.1
"""How much of the time that the queries should take by themselves the search for the best segments may take."""
MOST_SECONDS = 5.0
LONG_COUNTS = 90.0
"""Events of a repeated step in a window beyond which numbers of matches do not fit a sweep."""


@dataclass(frozen=True)
class SharingQuestion:
    """Queries of one set of keys that may be counted together, and what is known of their events."""

    names: tuple[str, ...] = field(compare=False)
    queries: tuple[CountedQuery, ...]
    asked: tuple[Any, ...]
    rates: Rates
    shown: tuple[str, ...] = field(default=(), compare=False)  # by letter, for people to read

    @cached_property
    def families(self) -> dict[int, Family]:
        """By query the family of its windows."""
        found = families_of(self.queries)
        return {
            number: next(family for family in found if query.window in family.windows)
            for number, query in enumerate(self.queries)
        }

    @property
    def words(self) -> tuple[tuple[CountedStep, ...], ...]:
        return tuple(query.steps for query in self.queries)

    def saved(self, segment: SharedSegment) -> float:
        """What a segment saves, in microseconds: as a prefix, or counted per START event."""
        return (self._as_prefix(segment) if _is_prefix(segment) else self._per_start(segment)) / 1000

    def _as_prefix(self, segment: SharedSegment) -> float:
        families = [self.families[query] for query, _ in segment.places]
        each = {
            family: sum(step_cost(step.letter, family, self.rates) for step in _steps(segment)) for family in families
        }
        return sum(each[family] for family in families) - sum(each.values())

    def _per_start(self, segment: SharedSegment) -> float:
        if not self.is_countable(segment):
            return -1.0
        event_filters = [step.letter for step in _steps(segment)]
        found = 0.0
        for family in {self.families[query] for query, _ in segment.places}:
            places = [(query, first) for query, first in segment.places if self.families[query] is family]
            nodes = {
                self.queries[query].steps[: at + 1]
                for query, first in places
                for at in range(first, first + len(event_filters))
            }
            followers = [_letter_at(self.queries[query], first + len(event_filters)) for query, first in places]
            asked = [often_asked(follower, family, self.rates) for follower in followers]
            found += sum(step_cost(node[-1].letter, family, self.rates) for node in nodes)
            found -= segment_cost(event_filters, asked, family, self.rates)
        return found

    def is_countable(self, segment: SharedSegment) -> bool:
        """Whether it can be counted per START event: numbers of matches, no NOT inside or right after it."""
        for query, first in segment.places:
            one = self.queries[query]
            inside = one.steps[first + 1 : first + len(segment.letters) + 1]
            if one.measures or any(step.forbidden for step in inside):
                return False
        return True

    def choice(self, seconds: float | None) -> SharingChoice:
        """What the queries have in common, and the best plan to share it."""
        return choose_plan(self.words, self.saved, seconds)

    def segments(self) -> tuple[SharedSteps, ...]:
        """What is best counted per START event, or the best that was found in time; prefixes are shared anyway."""
        if self not in SEARCHED:
            mined = mine_segments(self.words)
            if not any(self.saved(one) > 0 for one in mined if not _is_prefix(one)):
                return ()
            seconds = min(SHARE_OF_TIME * seconds_alone(self.queries, self.rates), MOST_SECONDS)
            self._remember(self.choice(seconds))
        return SEARCHED[self].segments

    @property
    def is_open(self) -> bool:
        """Whether there may be a better plan than the one that was found in time."""
        return self in SEARCHED and not SEARCHED[self].best

    def search_on(self) -> None:
        """Find the best plan, however long it takes; `segments` returns its segments from then on."""
        self._remember(self.choice(None))

    def _remember(self, choice: SharingChoice) -> None:
        while len(SEARCHED) >= MOST_SEARCHED:
            SEARCHED.pop(next(iter(SEARCHED)))
        found = [shared_steps(one) for one in choice.segments if not _is_prefix(one)]
        SEARCHED[self] = Searched(tuple(found), choice.found.is_best)


@dataclass(frozen=True)
class Searched:
    """What a search has found, and whether there is certainly nothing better."""

    segments: tuple[SharedSteps, ...]
    best: bool


SEARCHED: dict[SharingQuestion, Searched] = {}
"""The plans that were found, of the questions asked last."""
MOST_SEARCHED = 32


def _is_prefix(segment: SharedSegment) -> bool:
    return all(first == 0 for _, first in segment.places)


def shared_steps(segment: SharedSegment) -> SharedSteps:
    """A segment as the kernel reads it."""
    return SharedSteps(_steps(segment), segment.places)


def _steps(segment: SharedSegment) -> tuple[CountedStep, ...]:
    return tuple(step for step in segment.letters if isinstance(step, CountedStep))


def _letter_at(query: CountedQuery, place: int) -> int | None:
    return query.steps[place].letter if place < len(query.steps) else None


@dataclass(frozen=True)
class AnsweredTogether:
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
        """What was weighed; what segments there are to be shared is found out here."""
        shown = self.question.shown
        words = tuple(tuple(_named(step, shown) for step in query.steps) for query in self.question.queries)
        choice = self.question.choice(MOST_SECONDS)
        return Considered(self.question.names, words, choice, self.ways, self.taken, " µs")


def _shown(asked: Any, axis: TimeAxis) -> str:
    """A type, with the conditions on its event: `Pickup[zone = 132]`."""
    kind, tests = asked
    bare = [with_attributes(test, lambda one: Group(one.column, one.kind)) for test in tests]
    return f"{kind}[{' AND '.join(show_expression(test, axis) for test in bare)}]" if bare else str(kind)


def _named(step: CountedStep, shown: tuple[str, ...]) -> str:
    gaps = "".join(f"NOT {shown[letter]}, " for letter in sorted(step.forbidden))
    return f"{gaps}{shown[step.letter]}{'+' if step.repeats else ''}"


def answered_together(
    workload: Workload, queries: tuple[Physical, ...], statistics: StatisticsOf = nothing_known
) -> tuple[AnsweredTogether, ...]:
    """The groups of queries that are answered by one kernel."""
    found = []
    for keys in workload.key_sets:
        event_filters = QueryEventFilters()
        taken = [(number, counted_query(queries[number], event_filters)) for number in keys.members]
        known = statistics(queries[keys.members[0]].plan)
        rates = rates_of(event_filters.listed, keys.attributes, known)
        counted = [
            (number, one) for number, one in taken if isinstance(one, CountedQuery) and not _overflows(one, rates)
        ]
        if len(counted) > 1:
            names = tuple(str(queries[number].plan.name) for number, _ in counted)
            axis = queries[counted[0][0]].plan.schema.axis
            shown = tuple(_shown(asked, axis) for asked in event_filters.listed)
            question = SharingQuestion(names, tuple(one for _, one in counted), event_filters.listed, rates, shown)
            group = _best(tuple(number for number, _ in counted), question)
            if group is not None:
                some = [queries[number] for number in group.members]
                found.append(replace(group, kernel=with_queries_apart(group.kernel, some)))
    return tuple(found)


def with_queries_apart(kernel: SharedKernel, queries: Sequence[Physical]) -> SharedKernel:
    """The kernel with each of its queries by itself, for numbers that are too large for a sweep."""
    letters: dict[Any, int] = {asked: number for number, asked in enumerate(kernel.asked)}
    apart = []
    for physical in queries:
        asked = ((kind, tuple(map(of_any_event, tests))) for kind, tests in physical.filters)
        apart.append(ApartQuery(physical.kernel, tuple(letters.setdefault(one, len(letters)) for one in asked)))
    return replace(kernel, asked=tuple(letters), apart=tuple(apart))


def _overflows(query: CountedQuery, rates: Rates) -> bool:
    """Whether the matches of a repeated step are certainly too many for a sweep."""
    if not rates.known:
        return False
    (family,) = families_of([query])
    return any(step.repeats and rates.within_reach(step.letter, family) > LONG_COUNTS for step in query.steps)


def _best(members: tuple[int, ...], question: SharingQuestion) -> AnsweredTogether | None:
    """The way that should take the least time; None: every query by itself."""
    kernels = _kernels(question)
    seconds = {name: seconds_together(kernel.merged, question.rates) for name, kernel in kernels.items()}
    seconds = {ALONE: seconds_alone(question.queries, question.rates)} | seconds
    best = min(seconds, key=lambda name: seconds[name])
    if best == ALONE:
        return None
    ways = tuple(Way(name, one if question.rates.known else None) for name, one in seconds.items())
    return AnsweredTogether(members, question, kernels[best], ways, list(seconds).index(best))


def _kernels(question: SharingQuestion) -> dict[str, SharedKernel]:
    """The ways to answer queries together."""
    found = {
        FORWARDS: SharedKernel(question.queries, question.asked),
        BACKWARDS: SharedKernel(question.queries, question.asked, backwards=True),
    }
    segments = question.segments()
    if segments:
        found[PER_START] = SharedKernel(question.queries, question.asked, segments=segments)
    return found


def kernel_for(
    queries: Sequence[Physical], attributes: Attributes, statistics: StatisticsOf, numeric: str
) -> SharedKernel:
    """The best kernel for queries with these keys that are to be counted together, one or more."""
    event_filters = QueryEventFilters()
    counted = [counted_query(physical, event_filters) for physical in queries]
    known = tuple(one for one in counted if isinstance(one, CountedQuery))
    assert len(known) == len(queries)
    rates = rates_of(event_filters.listed, attributes, statistics(queries[0].plan))
    kernels = _kernels(SharingQuestion((), known, event_filters.listed, rates)).values()
    best = min(kernels, key=lambda kernel: seconds_together(kernel.merged, rates))
    return with_queries_apart(best, queries).in_numbers(numeric)
