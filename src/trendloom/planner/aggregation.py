"""How aggregates over matches are computed: at which grain, or in two steps; see `kernels.measures.Grain`.

The coarsest grain that is right wins: one aggregate per position where no predicate relates adjacent events, by event
where one does. Predicates that relate one *pivot* event of each match with others are decided pivot by pivot. What is
left is found first and added up then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trendloom.expr.nodes import Expr, Total, walk
from trendloom.kernels.aggregate.event_grained.structures import structures
from trendloom.kernels.aggregate.kernel import AggregationKernel
from trendloom.kernels.aggregate.type_grained.program import obstacle as program_obstacle
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Compared, Detection, EmptyGap, Pair, Rule
from trendloom.kernels.measures import AggregationSpec, Grain, Measure, Pivot, Test
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation, Plan
from trendloom.model.schema import Kind
from trendloom.planner.adjacency import SEVERAL_WAYS, adjacent, empty_gaps, run_obstacle
from trendloom.planner.estimates import estimate_totals
from trendloom.planner.exists import COUNTED, HIDING, describe_hiding
from trendloom.planner.request import Choice, Wanted

RELATED = "a predicate relates adjacent events"
NO_PIVOT = "predicates are about adjacent events alone"


@dataclass(frozen=True)
class Grained:
    """A grain that is right, why, and what it costs."""

    aggregation: AggregationSpec
    reason: str
    cost: str


@dataclass(frozen=True)
class _Adjacent:
    """A pattern without its rules, which are all about adjacent events; `no_program`: why events are not matrices."""

    bare: Detection
    machine: Machine
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


def _adjacent(detection: Detection) -> _Adjacent | str:
    """The rules as conditions on adjacent events, or why some rule is not."""
    bare = detection.without_rules()
    machine = Machine(bare)
    found: list[Pair | Test] = []
    for rule in detection.scopes[0].rules:
        one, reason = adjacent(rule, detection, machine)
        if one is None:
            return reason or ""
        found.append(one)
    gaps = empty_gaps(machine)
    if isinstance(gaps, str):
        return gaps
    pairs = tuple(one for one in found if isinstance(one, Pair))
    tests = tuple(one for one in found if isinstance(one, Test))
    return _Adjacent(bare, machine, (*pairs, *gaps), tests, program_obstacle(machine))


# ------------------------------------------------------------------------------------------------- grains


def matrices(detection: Detection) -> Grained | str:
    """One running aggregate per position."""
    rules = _adjacent(detection)
    if isinstance(rules, str) or needs_pivot(detection):
        return "a predicate relates events that are not adjacent"
    if not rules.without_rules:
        return rules.what(RELATED)
    if rules.no_program is not None:
        return rules.no_program
    if detection.earliest or detection.adjacent:
        grain, what = Grain.PATTERN, "one running aggregate per position for the runs that wait there"
    else:
        grain, what = Grain.TYPE, "one running aggregate per position for all partial matches that end there"
    if detection.hidden:
        what += "; what EXISTS hides is a plain test at its place"
    return Grained(
        AggregationSpec(rules.bare, grain, (), algebra=True),
        f"no predicate relates adjacent events: {what}",
        "O(events), however many windows overlap: panes are matrices, windows their products",
    )


def waiting_runs(detection: Detection) -> Grained | str:
    """One running aggregate per event at which runs wait, under skip-till-next-match and contiguous."""
    rules = _by_event(detection)
    if isinstance(rules, str):
        return rules
    if not (detection.earliest or detection.adjacent):
        return "skip-till-any-match: partial matches wait at no single event"
    aggregation = AggregationSpec(rules.bare, Grain.PATTERN, (), rules.pairs)
    cost = "O(events)" if detection.adjacent or not rules.pairs else "O(events · log events)"
    what = f"{rules.no_program}: " if rules.without_rules else f"{rules.what(RELATED)}: "
    return Grained(aggregation, f"{what}runs that wait at an event go to its successor", cost)


def by_event(detection: Detection) -> Grained | str:
    """One running aggregate per event, under skip-till-any-match."""
    rules = _by_event(detection)
    if isinstance(rules, str):
        return rules
    if detection.earliest or detection.adjacent:
        return "it is for skip-till-any-match"
    aggregation = AggregationSpec(rules.bare, Grain.MIXED, (), rules.pairs, rules.tests)
    used = sorted({name for _, _, name in structures(aggregation, rules.machine)} - {"sum"})
    if rules.without_rules:
        return Grained(aggregation, f"{rules.no_program}: sums by position, cut off by time", "O(events · log events)")
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


def _by_event(detection: Detection) -> _Adjacent | str:
    """The rules, or why values per event would be wrong."""
    if detection.hidden:
        return HIDING
    rules = _adjacent(detection)
    if isinstance(rules, str):
        return rules
    bare, machine = rules.bare, rules.machine
    if any(place.branch for place in bare.places):
        return "AND with predicates, with NOTs or over the same types"
    if bare.earliest or bare.adjacent:
        if rules.tests:
            return "a predicate is not a comparison of one event with the other"
        return run_obstacle(bare, machine) or rules
    if machine.ambiguous:
        return SEVERAL_WAYS
    for scope in bare.scopes[1:]:
        if scope.parent == 0 and (scope.waits or scope.open_ended):
            return "a NOT depends on the match around it"
    return rules


# ------------------------------------------------------------------------------------------------- pivots


def needs_pivot(detection: Detection) -> bool:
    """Whether rules relate events that are not adjacent, or NOTs use more of the match around them than an event."""
    if any(scope.waits for scope in detection.scopes[1:]):
        return True
    rules = detection.scopes[0].rules
    if not rules:
        return False
    machine = Machine(detection.without_rules())
    return any(adjacent(rule, detection, machine)[0] is None for rule in rules)


def by_pivot(detection: Detection) -> Grained | str:
    """One aggregate per event of a variable that binds once in every match."""
    if not needs_pivot(detection):
        return NO_PIVOT
    if detection.earliest or detection.adjacent:
        return "a predicate relates events that are not adjacent, and decides how a run goes on"
    for name in sorted({place.variable for place in detection.places if place.scope == 0} - detection.plural):
        rest = _after_pivot(detection, name)
        in_all = not detection.scopes[0].template.ends_without(detection.positions(0, name))
        if rest is None or not in_all or detection.hides(name):
            continue
        for grain in GRAINS:
            inner = grain(rest)
            if not isinstance(inner, str):
                each = f"one aggregate per event of {name}; there {inner.reason}"
                return Grained(
                    replace(inner.aggregation, pivot=_pivot(detection, rest, name)),
                    f"predicates relate {name} with other events: {each}",
                    f"for each event of {name}, over the windows it is in, {inner.cost}",
                )
    apart = "a predicate compares events that are not next to each other"
    machine = Machine(detection.without_rules())
    reasons = {adjacent(rule, detection, machine)[1] or apart for rule in detection.scopes[0].rules} - {apart}
    return min(reasons) if reasons else f"{apart}, and no single event of a match decides them"


def _after_pivot(detection: Detection, name: str) -> Detection | None:
    """The detection once the event of `name` is known: without the rules that are then about one event alone."""
    machine = Machine(detection.without_rules())
    scopes = []
    for scope in detection.scopes:
        kept = []
        uses = detection.binds(scope.number, name) == 0
        for rule in scope.rules:
            if scope.number == 0 and adjacent(rule, detection, machine)[0] is not None:
                kept.append(rule)
            elif uses and name in rule.shape.variables:
                if not _settled(rule, name):
                    return None
            elif scope.number == 0:
                return None
            else:
                kept.append(rule)
        absence = scope.absence if len(kept) == len(scope.rules) else None
        # events of an equal NOT may fail a condition with the pivot that this one does not have
        absence = None if absence is None else replace(absence, template=scope.template)
        scopes.append(replace(scope, rules=tuple(kept), outer=scope.outer - {name}, absence=absence, like=None))
    return replace(detection, scopes=tuple(scopes))


def _pivot(detection: Detection, rest: Detection, name: str) -> Pivot:
    rules = []
    for before, after in zip(detection.scopes, rest.scopes, strict=True):
        for rule in before.rules:
            if rule not in after.rules:
                (other,) = rule.shape.each - {name}
                owner = detection.binds(before.number, other)
                rules.append((detection.positions(owner, other), rule.expr))
    return Pivot(name, detection.positions(0, name), tuple(rules))


def _settled(rule: Rule, name: str) -> bool:
    """Whether a rule is about one event alone once that of `name` is known."""
    shape = rule.shape
    if shape.whole or shape.pair or shape.index or name not in shape.each:
        return False
    return len(shape.each) == 2


# ------------------------------------------------------------------------------------------------ measures

NEEDED = {"count": ("count",), "sum": ("sum", "count"), "avg": ("sum", "count"), "min": ("min",), "max": ("max",),
          "probability": ("probability",)}  # fmt: skip


def measures_of(plan: Plan) -> tuple[Measure, ...]:
    """What has to be kept to compute every aggregate of a query."""
    found: dict[str, Measure] = {}
    for total in totals_of(plan):
        for function in NEEDED[total.function]:
            measure = measure_of(total, function)
            found[measure.name] = measure
    return tuple(replace(measure, fractional=_fractional(plan, measure)) for measure in found.values())


def _fractional(plan: Plan, measure: Measure) -> bool:
    if measure.function != "sum" or measure.column is None:
        return False
    return plan.schema.kind(measure.column) is Kind.FLOAT


def totals_of(plan: Plan) -> list[Total]:
    assert isinstance(plan.output, Aggregation)
    exprs: list[Expr] = [value.expr for value in plan.output.values]
    exprs += [plan.output.having] if plan.output.having is not None else []
    return [node for expr in exprs for node in walk(expr) if isinstance(node, Total)]


def measure_of(total: Total, function: str) -> Measure:
    """The measure that an aggregate reads for one of the functions it needs."""
    if total.function == "probability":
        return Measure(total.function, total.function, None, None, total.kind)
    if total.positions is None:
        return Measure("matches", "matches", None, None, total.kind)
    counted = total.kind if total.function == "count" else Kind.INT
    kind = counted if function == "count" else Kind.FLOAT if total.function == "avg" else total.kind
    where = "_".join(map(str, total.positions))
    return Measure(f"{function}_{where}_{total.column or ''}", function, total.positions, total.column, kind)


# Whether stretches of events can be summed up as matrices, so that the events themselves need not be kept or moved.


NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT, Kind.BOOL)


def summary_obstacle(plan: Plan, spec: AggregationSpec) -> str | None:
    """Why not; None: they can."""
    if not spec.algebra or spec.pivot is not None:
        return "its predicates relate events, so stretches of events are not matrices"
    summed = [plan.schema.column(m.column) for m in spec.measures if m.function != "count" and m.column]
    if any(column is not None and column.wide for column in summed):
        return "its decimals may be beyond 64 bits"
    extremes = [
        m.column for m in spec.measures if m.function in ("min", "max") and m.column and m.column != plan.schema.time
    ]
    if any(plan.schema.kind(name) not in NUMBERS for name in extremes):
        return "MIN or MAX of values that are not numbers"
    return None


# Aggregates that are added up without finding the matches: what all grains share.


IDEAS = {
    Grain.TYPE: "add up all partial matches that end at a position, without building one",
    Grain.PATTERN: "add up all runs that wait at a position, without following one",
    Grain.MIXED: "add up partial matches per event, found by position or in ordered structures",
    Grain.EVENT: "add up partial matches per event, comparing it with the events before it",
}


def added_up(wanted: Wanted, grained: Callable[[Detection], Grained | str]) -> Choice | str:
    """A grain for an aggregating plan, if it is right."""
    output = wanted.plan.output
    if not isinstance(output, Aggregation):
        return "it adds up matches, and finds none"
    found = grained(replace(wanted.detection, sieves=()))  # they number steps of a machine that finds matches
    if isinstance(found, str):
        return found
    measures = tuple(_shown(measure, wanted.detection) for measure in measures_of(wanted.plan))
    spec = replace(found.aggregation, measures=measures)
    having = ", keep rows that pass HAVING" if output.having is not None else ""
    return Choice(
        AggregationKernel(spec, "exact", summary_obstacle(wanted.plan, spec) is None),
        f"{spec.grain.value}: {IDEAS[spec.grain]}",
        found.reason,
        found.cost,
        f"one step: aggregates per group and window{having}",
        structures=tuple(_structures(spec)),
        notes=describe_hiding(wanted.detection, COUNTED),
        estimate=estimate_totals(wanted),
    )


def _shown(measure: Measure, detection: Detection) -> Measure:
    """The measure over the events that EXISTS does not hide."""
    if measure.positions is None or not detection.hidden:
        return measure
    return replace(measure, positions=tuple(at for at in measure.positions if at not in detection.hidden))


def _structures(spec: AggregationSpec) -> Iterator[Branch]:
    """Where aggregates are looked up, transition by transition, if that differs."""
    if spec.grain not in (Grain.MIXED, Grain.EVENT):
        return
    places, of_state = spec.detection.places, spec.detection.scopes[0].template.position_of
    names = {number: f"{number}:{place.variable}" for number, place in enumerate(places)}
    for state, step, structure in structures(spec, Machine(spec.detection)):
        yield Branch(f"{names[of_state[state]]} → {names[step.position]}", structure)
