"""Expected aggregates where times are imprecise, and the probability of a match, without finding any."""

from __future__ import annotations

from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.uncertain.expected import PROBABILITY, ExpectedKernel, ExpectedOfSequence
from trendloom.logical.plan import Plan
from trendloom.pattern.template import Template
from trendloom.planner.algorithms.uncertain import overlapping
from trendloom.planner.measures import measures_of
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

DENSITIES = "densities: add up what is to be expected at each point of time, without finding a match"
WHY = "no event fits two components, and no condition relates events"
COST = "O(points of events), and of each point once more in every window over it"
FIRST_TIMES = "first times: when the first event of each component comes, one after the other"
PAIRS_OF_POINTS = "O(points · points until the next event has come for sure · events at a point), per window"


def consider(request: PlanningRequest) -> Choice | Refusal:
    chance, summed = split_measures(request.plan)
    refusal = refuse_expectation(request)
    if refusal is not None:
        return refusal
    return Choice(
        kernel_of(request, (*summed, *chance)),
        "; ".join([DENSITIES] * bool(summed) + [FIRST_TIMES] * bool(chance)),
        WHY,
        "; ".join([COST] * bool(summed) + [PAIRS_OF_POINTS] * bool(chance)),
        "one step: expected values per group and window",
    )


def refuse_expectation(request: PlanningRequest) -> Refusal | None:
    """Why some measure of a plan needs the matches; None: all can be computed without."""
    chance, summed = split_measures(request.plan)
    refusal = refuse_probability(request) if chance else None
    return refusal or (_refusal(request) or _refusal_of_sums(request) if summed else None)


def split_measures(plan: Plan) -> tuple[tuple[Measure, ...], tuple[Measure, ...]]:
    """The measures of a query that are probabilities, and those that are sums over matches."""
    measures = measures_of(plan)
    chance = tuple(measure for measure in measures if measure.function == PROBABILITY)
    return chance, tuple(measure for measure in measures if measure not in chance)


def kernel_of(request: PlanningRequest, measures: tuple[Measure, ...]) -> ExpectedKernel:
    """The kernel for some measures that are not refused."""
    imprecision = request.plan.schema.imprecision
    assert imprecision is not None
    return ExpectedKernel(
        ExpectedOfSequence(_required(request.pattern_spec), measures, request.plan.window), imprecision.longest
    )


def refuse_probability(request: PlanningRequest) -> Refusal | None:
    """Why PROBABILITY(*) cannot be computed."""
    if set(request.plan.keys) != set(request.plan.group_by):
        return Refusal(RefusalCode.PATTERN, "a group has several partitions")
    if not _required(request.pattern_spec):
        return Refusal(RefusalCode.PATTERN, "no component of the pattern must happen")
    return _refusal(request)


def _required(pattern_spec: PatternSpec) -> tuple[int, ...]:
    """The positions that every match binds, in order."""
    template = pattern_spec.scopes[0].template
    mine = [position for position, place in enumerate(pattern_spec.places) if place.scope == 0]
    return tuple(position for position in mine if not template.ends_without((position,)))


def _refusal(request: PlanningRequest) -> Refusal | None:
    """Why nothing can be computed without finding matches."""
    pattern_spec = request.pattern_spec
    if len(pattern_spec.scopes) > 1:
        return Refusal(RefusalCode.NEGATION, "the pattern has a NOT")
    if pattern_spec.scopes[0].rules:
        return Refusal(RefusalCode.PREDICATE, "a condition relates events")
    if request.plan.confidence is not None:
        return Refusal(RefusalCode.PATTERN, "CONFIDENCE leaves matches out")
    found = overlapping(request.plan, pattern_spec.places, _required(pattern_spec))
    if found is not None:
        names = [f"'{pattern_spec.places[position].variable}'" for position in found]
        return Refusal(RefusalCode.PATTERN, f"an event may fit {names[0]} and {names[1]}")
    return None


def _refusal_of_sums(request: PlanningRequest) -> Refusal | None:
    """Why sums over matches cannot be computed that way."""
    pattern_spec = request.pattern_spec
    if pattern_spec.earliest or pattern_spec.adjacent:
        return Refusal(
            RefusalCode.SEMANTICS, f"{request.plan.semantics.value}: what comes next is decided in each world"
        )
    if pattern_spec.plural:
        return Refusal(RefusalCode.PATTERN, "a component is repeated")
    if not _is_chain(pattern_spec.scopes[0].template, _required(pattern_spec)):
        return Refusal(RefusalCode.PATTERN, "a component may be left out")
    return None


def _is_chain(template: Template, sequence: tuple[int, ...]) -> bool:
    """Whether every match binds exactly these positions, one after the other."""
    follow = template.follow
    links = [follow[position] for position in template.position_of]
    return len(template.position_of) == len(sequence) and all(len(after) <= 1 for after in links)
