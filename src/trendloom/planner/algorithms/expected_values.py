"""Expected aggregates where times are imprecise, and the probability of a match, without finding any."""

from __future__ import annotations

from trendloom.kernels.matching.spec import Detection
from trendloom.kernels.measures import Measure
from trendloom.kernels.uncertain.expected.kernel import ExpectedKernel
from trendloom.kernels.uncertain.expected.results import PROBABILITY, ExpectedOfSequence
from trendloom.logical.plan import Plan
from trendloom.pattern.template import Template
from trendloom.planner.aggregation import measures_of
from trendloom.planner.algorithms.uncertain import overlapping
from trendloom.planner.request import Candidate, Choice, Wanted

ALGORITHM = "densities: add up what is to be expected at each point of time, without finding a match"
WHY = "no event fits two components, and no condition relates events"
COST = "O(points of events), and of each point once more in every window over it"
FIRST_TIMES = "first times: when the first event of each component comes, one after the other"
PAIRS_OF_POINTS = "O(points · points until the next event has come for sure · events at a point), per window"


def consider(wanted: Wanted) -> Choice | str:
    if not wanted.aggregates:
        return "it adds up matches, and finds none"
    chance, summed = told_apart(wanted.plan)
    obstacle = obstacle_of_probability(wanted) if chance else None
    if summed:
        obstacle = obstacle or _obstacle(wanted) or _obstacle_of_sums(wanted)
    if obstacle is not None:
        return obstacle
    return Choice(
        kernel_of(wanted, (*summed, *chance)),
        "; ".join([ALGORITHM] * bool(summed) + [FIRST_TIMES] * bool(chance)),
        WHY,
        "; ".join([COST] * bool(summed) + [PAIRS_OF_POINTS] * bool(chance)),
        "one step: expected values per group and window",
    )


def told_apart(plan: Plan) -> tuple[tuple[Measure, ...], tuple[Measure, ...]]:
    """The measures of a query that are probabilities, and those that are sums over matches."""
    measures = measures_of(plan)
    chance = tuple(measure for measure in measures if measure.function == PROBABILITY)
    return chance, tuple(measure for measure in measures if measure not in chance)


def kernel_of(wanted: Wanted, measures: tuple[Measure, ...]) -> ExpectedKernel:
    """The kernel for some measures that nothing stands in the way of."""
    imprecision = wanted.plan.schema.imprecision
    assert imprecision is not None
    return ExpectedKernel(
        ExpectedOfSequence(_required(wanted.detection), measures, wanted.plan.window), imprecision.longest
    )


def obstacle_of_probability(wanted: Wanted) -> str | None:
    """What stands in the way of PROBABILITY(*)."""
    if set(wanted.plan.keys) != set(wanted.plan.group_by):
        return "a group has several partitions"
    if not _required(wanted.detection):
        return "no component of the pattern must happen"
    return _obstacle(wanted)


def _required(detection: Detection) -> tuple[int, ...]:
    """The positions that every match binds, in order."""
    template = detection.scopes[0].template
    mine = [position for position, place in enumerate(detection.places) if place.scope == 0]
    return tuple(position for position in mine if not template.ends_without((position,)))


def _obstacle(wanted: Wanted) -> str | None:
    """Why nothing can be said without finding matches."""
    detection = wanted.detection
    if len(detection.scopes) > 1:
        return "the pattern has a NOT"
    if detection.scopes[0].rules:
        return "a condition relates events"
    if wanted.plan.confidence is not None:
        return "CONFIDENCE leaves matches out"
    found = overlapping(wanted.plan, detection.places, _required(detection))
    if found is not None:
        names = [f"'{detection.places[position].variable}'" for position in found]
        return f"an event may fit {names[0]} and {names[1]}"
    return None


def _obstacle_of_sums(wanted: Wanted) -> str | None:
    """Why numbers of matches are not to be had that way."""
    detection = wanted.detection
    if detection.earliest or detection.adjacent:
        return f"{wanted.plan.semantics.value}: what comes next is decided in each world"
    if detection.plural:
        return "a component is repeated"
    if not _is_chain(detection.scopes[0].template, _required(detection)):
        return "a component may be left out"
    return None


def _is_chain(template: Template, sequence: tuple[int, ...]) -> bool:
    """Whether every match binds exactly these positions, one after the other."""
    follow = template.follow
    links = [follow[position] for position in template.position_of]
    return len(template.position_of) == len(sequence) and all(len(after) <= 1 for after in links)


CANDIDATE = Candidate("expected", consider)
