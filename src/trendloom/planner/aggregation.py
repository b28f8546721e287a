"""How aggregates over matches are computed: at which grain, or in two steps; see `kernels.contract.measures.Grain`.

The coarsest grain that is right wins: one aggregate per position where no predicate relates adjacent events, by event
where one does. Predicates that relate one *pivot* event of each match with others are decided pivot by pivot. What is
left is found first and added up then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trendloom.kernels.aggregate.event_grained.structures import structures
from trendloom.kernels.aggregate.kernel import AggregationKernel
from trendloom.kernels.aggregate.type_grained.exists import Existence
from trendloom.kernels.aggregate.type_grained.program import obstacle as program_obstacle
from trendloom.kernels.contract.measures import AggregationSpec, Grain, Measure, Pivot, Test
from trendloom.kernels.contract.pattern_spec import Compared, EmptyGap, Pair, PatternSpec, Rule
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation
from trendloom.planner.adjacency import FAR_APART, NO_COMPARISON, SEVERAL_WAYS, adjacent, empty_gaps, run_refusal
from trendloom.planner.estimates import estimate_totals
from trendloom.planner.exists import COUNTED, HIDING, describe_hiding
from trendloom.planner.measures import measures_of, summary_obstacle
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

RELATED, NO_RELATION = "a predicate relates adjacent events", "no predicate relates adjacent events"
NO_PIVOT = Refusal(RefusalCode.UNNEEDED, "predicates are about adjacent events alone")


@dataclass(frozen=True)
class Grained:
    """A grain that is right, why, and what it costs."""

    aggregation: AggregationSpec
    reason: str
    cost: str


@dataclass(frozen=True)
class _Adjacent:
    """A pattern without its rules, which are all about adjacent events; `no_program`: why events are not matrices."""

    bare: PatternSpec
    automaton: Automaton
    pairs: tuple[Compared, ...]
    tests: tuple[Test, ...]
    no_program: str | None

    @property
    def without_rules(self) -> bool:
        return not self.pairs and not self.tests

    def what(self, predicates: str) -> str:
        """What relates adjacent events: the predicates, in these words, or NOTs alone."""
        alone = not self.tests and all(isinstance(pair, EmptyGap) for pair in self.pairs)
        return "a NOT depends on an event next to it" if alone else predicates


def _adjacent(pattern_spec: PatternSpec) -> _Adjacent | Refusal:
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
    return _Adjacent(bare, automaton, (*pairs, *gaps), tests, program_obstacle(automaton))


# ------------------------------------------------------------------------------------------------- grains


def matrices(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One running aggregate per position."""
    rules = _adjacent(pattern_spec)
    if isinstance(rules, Refusal) or needs_pivot(pattern_spec):
        return Refusal(RefusalCode.PREDICATE, "a predicate relates events that are not adjacent")
    if not rules.without_rules:
        return Refusal(RefusalCode.PREDICATE, rules.what(RELATED))
    if rules.no_program is not None:
        hides = Existence(rules.automaton).obstacle is not None
        return Refusal(RefusalCode.HIDING if hides else RefusalCode.PATTERN, rules.no_program)
    if pattern_spec.earliest or pattern_spec.adjacent:
        grain, what = Grain.PATTERN, "one running aggregate per position for the runs that wait there"
    else:
        grain, what = Grain.TYPE, "one running aggregate per position for all partial matches that end there"
    if pattern_spec.hidden:
        what += "; what EXISTS hides is a plain test at its place"
    return Grained(
        AggregationSpec(rules.bare, grain, (), algebra=True),
        f"no predicate relates adjacent events: {what}",
        "O(events), however many windows overlap: panes are matrices, windows their products",
    )


def waiting_runs(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One running aggregate per event at which runs wait, under skip-till-next-match and contiguous."""
    rules = _by_event(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    if not (pattern_spec.earliest or pattern_spec.adjacent):
        return Refusal(RefusalCode.SEMANTICS, "skip-till-any-match: partial matches wait at no single event")
    aggregation = AggregationSpec(rules.bare, Grain.PATTERN, (), rules.pairs)
    cost = "O(events)" if pattern_spec.adjacent or not rules.pairs else "O(events · log events)"
    what = rules.no_program or NO_RELATION if rules.without_rules else rules.what(RELATED)
    return Grained(aggregation, f"{what}: runs that wait at an event go to its successor", cost)


def by_event(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One running aggregate per event, under skip-till-any-match."""
    rules = _by_event(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    if pattern_spec.earliest or pattern_spec.adjacent:
        return Refusal(RefusalCode.SEMANTICS, "it is for skip-till-any-match")
    aggregation = AggregationSpec(rules.bare, Grain.MIXED, (), rules.pairs, rules.tests)
    used = sorted({name for _, _, name in structures(aggregation, rules.automaton)} - {"sum"})
    if rules.without_rules:
        reason = f"{rules.no_program or NO_RELATION}: sums by position, cut off by time"
        return Grained(aggregation, reason, "O(events · log events)")
    if "scan" in used:
        reason = "a predicate on adjacent events fits no ordered structure: each event is compared with those before it"
        return Grained(replace(aggregation, grain=Grain.EVENT), reason, "O(events²) per window, vectorised")
    cost = "O(events)" if used == ["hash"] else "O(events · log events)"
    cost = "O(events · log² events)" if "two-level fenwick" in used else cost
    return Grained(
        aggregation, f"{rules.what('predicates relate adjacent events')}: sums by {' and '.join(used)}", cost
    )


GRAINS = (matrices, waiting_runs, by_event)
"""The grains of patterns whose rules are about adjacent events, the coarsest first."""


def _by_event(pattern_spec: PatternSpec) -> _Adjacent | Refusal:
    """The rules, or why values per event would be wrong."""
    if pattern_spec.hidden:
        return HIDING
    rules = _adjacent(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    bare, automaton = rules.bare, rules.automaton
    if any(place.branch for place in bare.places):
        return Refusal(RefusalCode.PREDICATE, "AND with predicates, with NOTs or over the same types")
    if bare.earliest or bare.adjacent:
        if rules.tests:
            return NO_COMPARISON
        return run_refusal(bare, automaton) or rules
    if automaton.ambiguous:
        return SEVERAL_WAYS
    for scope in bare.scopes[1:]:
        if scope.parent == 0 and (scope.waits or scope.open_ended):
            return Refusal(RefusalCode.NEGATION, "a NOT depends on the match around it")
    return rules


# ------------------------------------------------------------------------------------------------- pivots


def needs_pivot(pattern_spec: PatternSpec) -> bool:
    """Whether rules relate events that are not adjacent, or NOTs use more of the match around them than an event."""
    if any(scope.waits for scope in pattern_spec.scopes[1:]):
        return True
    rules = pattern_spec.scopes[0].rules
    if not rules:
        return False
    automaton = Automaton(pattern_spec.without_rules())
    return any(isinstance(adjacent(rule, pattern_spec, automaton), Refusal) for rule in rules)


def by_pivot(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One aggregate per event of a variable that binds once in every match."""
    if not needs_pivot(pattern_spec):
        return NO_PIVOT
    if pattern_spec.earliest or pattern_spec.adjacent:
        return Refusal(
            RefusalCode.PREDICATE, "a predicate relates events that are not adjacent, and decides how a run goes on"
        )
    for name in sorted({place.variable for place in pattern_spec.places if place.scope == 0} - pattern_spec.plural):
        rest = _after_pivot(pattern_spec, name)
        in_all = not pattern_spec.scopes[0].template.ends_without(pattern_spec.positions(0, name))
        if rest is None or not in_all or pattern_spec.hides(name):
            continue
        for grain in GRAINS:
            inner = grain(rest)
            if not isinstance(inner, Refusal):
                each = f"one aggregate per event of {name}; there {inner.reason}"
                return Grained(
                    replace(inner.aggregation, pivot=_pivot(pattern_spec, rest, name)),
                    f"predicates relate {name} with other events: {each}",
                    f"for each event of {name}, over the windows it is in, {inner.cost}",
                )
    automaton = Automaton(pattern_spec.without_rules())
    rules = [adjacent(rule, pattern_spec, automaton) for rule in pattern_spec.scopes[0].rules]
    refusals = [one for one in rules if isinstance(one, Refusal) and one != FAR_APART]
    if refusals:
        return min(refusals, key=lambda one: one.text)
    return replace(FAR_APART, text=f"{FAR_APART.text}, and no single event of a match decides them")


def _after_pivot(pattern_spec: PatternSpec, name: str) -> PatternSpec | None:
    """The detection once the event of `name` is known: without the rules that are then about one event alone."""
    automaton = Automaton(pattern_spec.without_rules())
    scopes = []
    for scope in pattern_spec.scopes:
        kept = []
        uses = pattern_spec.binds(scope.number, name) == 0
        for rule in scope.rules:
            if scope.number == 0 and not isinstance(adjacent(rule, pattern_spec, automaton), Refusal):
                kept.append(rule)
            elif uses and name in rule.shape.variables:
                if not _settled(rule, name):
                    return None
            elif scope.number == 0:
                return None
            else:
                kept.append(rule)
        negation_guard = scope.negation_guard if len(kept) == len(scope.rules) else None
        # events of an equal NOT may fail a condition with the pivot that this one does not have
        negation_guard = None if negation_guard is None else replace(negation_guard, template=scope.template)
        scopes.append(
            replace(scope, rules=tuple(kept), outer=scope.outer - {name}, negation_guard=negation_guard, like=None)
        )
    return replace(pattern_spec, scopes=tuple(scopes))


def _pivot(pattern_spec: PatternSpec, rest: PatternSpec, name: str) -> Pivot:
    rules = []
    for before, after in zip(pattern_spec.scopes, rest.scopes, strict=True):
        for rule in before.rules:
            if rule not in after.rules:
                (other,) = rule.shape.each - {name}
                owner = pattern_spec.binds(before.number, other)
                rules.append((pattern_spec.positions(owner, other), rule.expr))
    return Pivot(name, pattern_spec.positions(0, name), tuple(rules))


def _settled(rule: Rule, name: str) -> bool:
    """Whether a rule is about one event alone once that of `name` is known."""
    shape = rule.shape
    if shape.whole or shape.pair or shape.index or name not in shape.each:
        return False
    return len(shape.each) == 2


def refuse_grains(pattern_spec: PatternSpec) -> Refusal | None:
    """Why no grain is right, so that matches have to be found; None: one is.

    Only the coarsest grain supports EXISTS, so its refusal is the decisive one there.
    """
    found = by_pivot(pattern_spec)
    if found == NO_PIVOT:
        runs = pattern_spec.earliest or pattern_spec.adjacent
        found = (matrices if pattern_spec.hidden else waiting_runs if runs else by_event)(pattern_spec)
    return found if isinstance(found, Refusal) else None


# Aggregates that are added up without finding the matches: what all grains share.


IDEAS = {
    Grain.TYPE: "add up all partial matches that end at a position, without building one",
    Grain.PATTERN: "add up all runs that wait at a position, without following one",
    Grain.MIXED: "add up partial matches per event, found by position or in ordered structures",
    Grain.EVENT: "add up partial matches per event, comparing it with the events before it",
}


def added_up(request: PlanningRequest, grained: Callable[[PatternSpec], Grained | Refusal]) -> Choice | Refusal:
    """A grain for an aggregating plan, if it is right."""
    output = request.plan.output
    assert isinstance(output, Aggregation)
    found = grained(replace(request.pattern_spec, sieves=()))  # they number steps of a machine that finds matches
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
