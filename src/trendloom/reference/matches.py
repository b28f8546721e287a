"""The matches of a pattern on one stream, straight from the definitions.

skip-till-any-match: every binding is built, event by event in order, and tested when it is complete. Building
stops early only where no continuation can help: an instance of a predicate that is false stays false, because the
predicate is about all events, and a NOT without outer variables stays violated once the events around it are bound.

skip-till-next-match and contiguous: a run holds a binding with all its derivations; the earliest instant at which some
event can extend it decides, and every event that can at that instant makes a run of its own.

A binding is kept together with all its derivations: it is a match if one of them passes every test.
Cost: the number of bindings, which is exponential; `StepBudget` ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from trendloom.logical.plan import Plan
from trendloom.model.selection import Semantics
from trendloom.model.time import Window
from trendloom.pattern.algebra import Atom, Pattern
from trendloom.reference.conditions import Conjunct, Match, ScopeRules, bound_to, holds, read_scopes
from trendloom.reference.derive import TOP, BoundEvent, Crossed, Growth, Nesting, NextEvent, Rest, Trace
from trendloom.reference.stream import Instant, StepBudget, Stream, StreamEvent

Binding = tuple[tuple[StreamEvent, Atom], ...]
"""A match: its events in order, each with the position that binds it."""


@dataclass(frozen=True)
class Derivation:
    """One way of deriving a binding so far, and what remains of the pattern."""

    trace: Trace
    rest: Rest


Derivations = tuple[Derivation, ...]
Steps = tuple[tuple[Derivation, NextEvent], ...]
Viable = Callable[["Problem", Trace, int], bool]
"""Whether a derivation may go on: its trace, and how many items of it are new (NOTs passed, then the new event)."""


@dataclass(frozen=True)
class Problem:
    """A pattern to match on a stream, and the rules of its scope; of a NOT, also the match around it and its place."""

    scope: ScopeRules
    body: Pattern
    stream: Stream
    outer: Match | None = None
    site: Nesting = TOP

    def match(self, trace: Trace) -> Match:
        return Match(self.scope, trace, self.outer, self.site)


@dataclass(frozen=True)
class Search:
    """Finds matches of one plan. `prune` False leaves every test to the complete binding, to check the shortcuts."""

    plan: Plan
    budget: StepBudget
    prune: bool = True

    @cached_property
    def scopes(self) -> Mapping[int, ScopeRules]:
        return read_scopes(self.plan)

    @cached_property
    def growth(self) -> Growth:
        """How the pattern grows, with the rounds of the parts that predicates are about."""
        of_conjuncts = {conjunct.part for scope in self.scopes.values() for conjunct in scope.conjuncts}
        of_needs = {part for scope in self.scopes.values() for _, part in scope.needs}
        return Growth(frozenset(part for part in of_conjuncts | of_needs if part is not None))

    def matches(self, stream: Stream) -> Iterator[Binding]:
        """Every match of the query's pattern on a stream, each once."""
        problem = Problem(self.scopes[0], self.plan.pattern, stream)
        if self.plan.semantics is Semantics.ANY:
            return self._any(problem)
        return self._runs(problem, contiguous=self.plan.semantics is Semantics.CONTIGUOUS)

    # -------------------------------------------------------------------------------- the two ways of building

    def _any(self, problem: Problem) -> Iterator[Binding]:
        start: Derivations = (Derivation((), problem.body),)
        waiting: list[tuple[int, Derivations]] = [(0, start)]
        while waiting:
            index, derivations = waiting.pop()
            if self._complete(problem, derivations):
                yield _binding(derivations)
            steps = self._steps(derivations)
            for later in range(index, len(problem.stream)):
                event = problem.stream[later]
                self.budget.spend()
                if self._too_far(problem, derivations, event):
                    break
                for grown in self._extend(problem, steps, event, self._hopeful):
                    waiting.append((_first_of_its_instant(problem.stream, later), grown))

    def _runs(self, problem: Problem, *, contiguous: bool) -> Iterator[Binding]:
        first = self._steps((Derivation((), problem.body),))
        waiting = [run for event in problem.stream for run in self._extend(problem, first, event, self._allowed)]
        while waiting:
            run = waiting.pop()
            if self._complete(problem, run):
                yield _binding(run)
            waiting.extend(self._next_runs(problem, run, contiguous))

    def _next_runs(self, problem: Problem, run: Derivations, contiguous: bool) -> list[Derivations]:
        """The runs that a run is extended to: by all that fits at the earliest instant at which something does."""
        steps = self._steps(run)
        last = _binding(run)[-1][0].instant
        extended: list[Derivations] = []
        earliest: Instant | None = None
        for event in problem.stream:
            if event.instant <= last:
                continue
            self.budget.spend()
            if extended and event.instant != earliest:
                break
            if (contiguous and earliest not in (None, event.instant)) or self._too_far(problem, run, event):
                break
            earliest = event.instant
            extended.extend(self._extend(problem, steps, event, self._allowed))
        return extended

    def _steps(self, derivations: Derivations) -> Steps:
        return tuple(
            (derivation, step)
            for derivation in derivations
            for step in self.growth.advance(derivation.rest, TOP, len(derivation.trace))
        )

    def _extend(self, problem: Problem, steps: Steps, event: StreamEvent, viable: Viable) -> list[Derivations]:
        """The derivations that take the event, together where they bind it at the same position."""
        grown: dict[int, dict[Derivation, None]] = {}
        for derivation, step in steps:
            if step.atom.type != event.type or not _may_follow(derivation.trace, event, step):
                continue
            trace = (*derivation.trace, *step.crossed, BoundEvent(event, step.atom, step.place))
            self.budget.spend(len(trace))
            if viable(problem, trace, len(step.crossed) + 1):
                grown.setdefault(step.atom.position, {})[Derivation(trace, step.rest)] = None
        return [tuple(derivations) for derivations in grown.values()]

    def _too_far(self, problem: Problem, derivations: Derivations, event: StreamEvent) -> bool:
        """WITHIN without SLIDE bounds the match: last − first < within."""
        trace = derivations[0].trace
        span = _span(self.plan.window)
        if span is None or problem.outer is not None or not trace:
            return False
        return event.time - problem.match(trace).bound[0].event.time >= span

    # ---------------------------------------------------------------------------------------------- the tests

    def _complete(self, problem: Problem, derivations: Derivations) -> bool:
        """Whether some derivation can end here and then passes everything."""
        for derivation in derivations:
            if not derivation.trace:
                continue
            for crossed in self.growth.finish(derivation.rest, TOP, len(derivation.trace)):
                if self._passes(problem, (*derivation.trace, *crossed)):
                    return True
        return False

    def _passes(self, problem: Problem, trace: Trace) -> bool:
        match = problem.match(trace)
        return all(holds(conjunct, match, self.budget) for conjunct in problem.scope.conjuncts) and not any(
            self._violated(problem, trace, item) for item in range(len(trace)) if isinstance(trace[item], Crossed)
        )

    def _hopeful(self, problem: Problem, trace: Trace, added: int) -> bool:
        """Under skip-till-any-match: whether the binding can still become a match, as far as is certain now."""
        if not self.prune:
            return True
        if not self._new_event_fits(problem, trace, lambda conjunct: not conjunct.whole & problem.scope.variables):
            return False
        passed = range(len(trace) - added, len(trace) - 1)
        return not any(
            self._gap(trace, item)[0] is not None
            and not self.scopes[_crossed(trace, item).negation.scope].needs
            and self._violated(problem, trace, item)
            for item in passed
        )

    def _allowed(self, problem: Problem, trace: Trace, added: int) -> bool:
        """Under skip-till-next-match: whether the new event can extend the run."""
        if not self._new_event_fits(problem, trace, lambda conjunct: True):
            return False
        before = trace[: len(trace) - added]
        for item in range(len(trace) - 1):
            if not isinstance(trace[item], Crossed) or self._gap(trace, item)[0] is None:
                continue
            tested = item < len(before) and self._ready(problem, before, item)
            if not tested and self._ready(problem, trace, item) and self._violated(problem, trace, item):
                return False
        return True

    def _new_event_fits(self, problem: Problem, trace: Trace, among: Callable[[Conjunct], bool]) -> bool:
        """Whether all instances that include the new event, and can be evaluated, are true.

        A conjunct that reads the whole of a variable is not tested when that variable grows.
        """
        match, new = problem.match(trace), trace[-1]
        assert isinstance(new, BoundEvent)
        return all(
            holds(conjunct, match, self.budget, new)
            for conjunct in problem.scope.conjuncts
            if new.atom.variable in conjunct.variables - conjunct.whole and among(conjunct)
        )

    # ------------------------------------------------------------------------------------------------ negation

    def _ready(self, problem: Problem, trace: Trace, item: int) -> bool:
        """Whether all outer variables are bound that the predicates of the NOT (and of those inside it) use."""
        crossed = _crossed(trace, item)
        match = problem.match(trace)
        return all(
            bound_to(name, part, match, None if part is None else crossed.place.round(part))
            for name, part in self.scopes[crossed.negation.scope].needs
        )

    def _violated(self, problem: Problem, trace: Trace, item: int) -> bool:
        """Whether the pattern under the NOT has a match between the events around it."""
        crossed = _crossed(trace, item)
        low, high = self._gap(trace, item)
        between = tuple(
            event
            for event in self._in_reach(problem, trace, low is None, high is None)
            if (low is None or low < event.instant) and (high is None or event.instant < high)
        )
        self.budget.spend(len(problem.stream))
        scope = self.scopes[crossed.negation.scope]
        inner = Problem(scope, crossed.negation.body, between, problem.match(trace), crossed.place)
        return any(True for _ in self._any(inner))

    def _in_reach(self, problem: Problem, trace: Trace, leading: bool, trailing: bool) -> Stream:
        """The events that a NOT may look at: a span bounds, by time alone, how far a leading or trailing one looks."""
        span = _span(self.plan.window) if problem.outer is None else None
        if span is None:
            return problem.stream
        times = [bound.event.time for bound in problem.match(trace).bound]
        first, last = min(times), max(times)
        return tuple(
            event
            for event in problem.stream
            if not (leading and event.time <= last - span) and not (trailing and event.time >= first + span)
        )

    def _gap(self, trace: Trace, item: int) -> tuple[Instant | None, Instant | None]:
        """The instants of the last event bound before the NOT and of the first after it; None: there is none."""
        crossed = _crossed(trace, item)
        before = _instants(trace[:item], crossed.place)
        after = _instants(trace[item + 1 :], crossed.place)
        return (max(before) if before else None), (min(after) if after else None)


def _instants(trace: Trace, place: Nesting) -> list[Instant]:
    """The instants of bound events, without those of other branches of an AND: they are neither before nor after."""
    return [item.event.instant for item in trace if isinstance(item, BoundEvent) and not item.place.beside(place)]


def _may_follow(trace: Trace, event: StreamEvent, step: NextEvent) -> bool:
    """Instants increase strictly; only in different branches of one AND they may be equal.

    Equal instants have no order of their own: they are bound in the order of the pattern, so that one binding is found
    once, and `b[first]` does not depend on the rows.
    """
    for item in trace:
        if isinstance(item, BoundEvent) and item.event.instant >= event.instant:
            in_order = item.event.instant == event.instant and item.atom.position < step.atom.position
            if item.event is event or not (in_order and item.place.beside(step.place)):
                return False
    return True


def _first_of_its_instant(stream: Stream, index: int) -> int:
    while index and stream[index - 1].instant == stream[index].instant:
        index -= 1
    return index


def _crossed(trace: Trace, item: int) -> Crossed:
    crossed = trace[item]
    assert isinstance(crossed, Crossed)
    return crossed


def _binding(derivations: Derivations) -> Binding:
    return tuple((item.event, item.atom) for item in derivations[0].trace if isinstance(item, BoundEvent))


def _span(window: Window) -> int | None:
    return window.within if window.spanning else None
