"""What the algorithms share that add up matches without finding them, one for each grain (COGRA, GRETA).

The coarsest grain that is right wins: one aggregate per position where no predicate relates adjacent events, per event
where one does; see `kernels.contract.aggregates.Grain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trendloom.kernels.aggregate.event_grained.structures import structures
from trendloom.kernels.aggregate.kernel import AggregationKernel
from trendloom.kernels.aggregate.program import obstacle as program_obstacle
from trendloom.kernels.contract.aggregates import AggregationSpec, Grain, Measure, Test
from trendloom.kernels.contract.pattern_spec import Compared, EmptyGap, Pair, PatternSpec
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation
from trendloom.planner.adjacency import NO_COMPARISON, SEVERAL_WAYS, adjacent, empty_gaps, run_refusal
from trendloom.planner.estimates import estimate_totals
from trendloom.planner.exists import COUNTED, HIDING, describe_hiding
from trendloom.planner.measures import measures_of, summary_obstacle
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

RELATED, NO_RELATION = "a predicate relates adjacent events", "no predicate relates adjacent events"

IDEAS = {
    Grain.TYPE: "add up all partial matches that end at a position, without building one",
    Grain.PATTERN: "add up all runs that wait at a position, without following one",
    Grain.MIXED: "add up partial matches per event, found by position or in ordered structures",
    Grain.EVENT: "add up partial matches per event, comparing it with the events before it",
}


@dataclass(frozen=True)
class Grained:
    """A grain that is right, why, and what it costs."""

    aggregation: AggregationSpec
    reason: str
    cost: str


FindGrain = Callable[[PatternSpec], Grained | Refusal]


@dataclass(frozen=True)
class AdjacentRules:
    """A pattern without its rules, which are all about adjacent events; `no_program`: why events are not matrices."""

    bare: PatternSpec
    automaton: Automaton
    pairs: tuple[Compared, ...]
    tests: tuple[Test, ...]
    no_program: str | None

    @property
    def none(self) -> bool:
        return not self.pairs and not self.tests

    def what(self, predicates: str) -> str:
        """What relates adjacent events: the predicates, in these words, or NOTs alone."""
        alone = not self.tests and all(isinstance(pair, EmptyGap) for pair in self.pairs)
        return "a NOT depends on an event next to it" if alone else predicates


def adjacent_rules(pattern_spec: PatternSpec) -> AdjacentRules | Refusal:
    """The rules as conditions on adjacent events, or why some rule is not."""
    bare = pattern_spec.without_rules()
    automaton = Automaton(bare)
    found: list[Pair | Test] = []
    for rule in pattern_spec.scopes[0].rules:
        one = adjacent(rule, pattern_spec, automaton)
        if isinstance(one, Refusal):
            return one
        found.append(one)
    gaps = empty_gaps(automaton)
    if isinstance(gaps, Refusal):
        return gaps
    pairs = tuple(one for one in found if isinstance(one, Pair))
    tests = tuple(one for one in found if isinstance(one, Test))
    return AdjacentRules(bare, automaton, (*pairs, *gaps), tests, program_obstacle(automaton))


def rules_per_event(pattern_spec: PatternSpec) -> AdjacentRules | Refusal:
    """The rules, or why one aggregate per event would be wrong."""
    if pattern_spec.hidden:
        return HIDING
    rules = adjacent_rules(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    bare, automaton = rules.bare, rules.automaton
    if any(place.branch for place in bare.places):
        return Refusal(RefusalCode.PREDICATE, "AND with predicates, with NOTs or over the same types")
    if bare.earliest or bare.adjacent:
        return NO_COMPARISON if rules.tests else run_refusal(bare, automaton) or rules
    if automaton.ambiguous:
        return SEVERAL_WAYS
    if any(scope.parent == 0 and (scope.waits or scope.open_ended) for scope in bare.scopes[1:]):
        return Refusal(RefusalCode.NEGATION, "a NOT depends on the match around it")
    return rules


def needs_pivot(pattern_spec: PatternSpec) -> bool:
    """Whether rules relate events that are not adjacent, or NOTs use more of the match around them than an event."""
    if any(scope.waits for scope in pattern_spec.scopes[1:]):
        return True
    rules = pattern_spec.scopes[0].rules
    if not rules:
        return False
    automaton = Automaton(pattern_spec.without_rules())
    return any(isinstance(adjacent(rule, pattern_spec, automaton), Refusal) for rule in rules)


def added_up(request: PlanningRequest, find_grain: FindGrain) -> Choice | Refusal:
    """The choice of a grain for an aggregating plan, if it is right."""
    output = request.plan.output
    assert isinstance(output, Aggregation)
    found = find_grain(replace(request.pattern_spec, sieves=()))  # sieves number the steps of a search for matches
    if isinstance(found, Refusal):
        return found
    measures = tuple(_shown(measure, request.pattern_spec) for measure in measures_of(request.plan))
    spec = replace(found.aggregation, measures=measures)
    having = ", keep rows that pass HAVING" if output.having is not None else ""
    return Choice(
        AggregationKernel(spec, "exact", summary_obstacle(request.plan, spec) is None),
        f"{spec.grain.value}: {IDEAS[spec.grain]}",
        found.reason,
        found.cost,
        f"one step: aggregates per group and window{having}",
        structures=tuple(_structures(spec)),
        notes=describe_hiding(request.pattern_spec, COUNTED),
        estimate=estimate_totals(request),
    )


def _shown(measure: Measure, pattern_spec: PatternSpec) -> Measure:
    """The measure over the events that EXISTS does not hide."""
    if measure.positions is None or not pattern_spec.hidden:
        return measure
    return replace(measure, positions=tuple(at for at in measure.positions if at not in pattern_spec.hidden))


def _structures(spec: AggregationSpec) -> Iterator[Branch]:
    """Where aggregates are looked up, transition by transition, if that differs."""
    if spec.grain not in (Grain.MIXED, Grain.EVENT):
        return
    places, of_state = spec.pattern_spec.places, spec.pattern_spec.scopes[0].template.position_of
    names = {number: f"{number}:{place.variable}" for number, place in enumerate(places)}
    for state, step, structure in structures(spec, Automaton(spec.pattern_spec)):
        yield Branch(f"{names[of_state[state]]} → {names[step.position]}", structure)
