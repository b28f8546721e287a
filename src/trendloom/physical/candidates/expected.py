"""Expected aggregates where times are imprecise, and the probability of a match, without finding any."""

from __future__ import annotations

from trendloom.kernels.ground.spec import Detection
from trendloom.kernels.imprecise.expected.kernel import ExpectedKernel
from trendloom.kernels.imprecise.expected.results import PROBABILITY, Expectation
from trendloom.pattern.template import Template
from trendloom.physical.aggregation import measures_of
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.exclusive import overlapping

ALGORITHM = "densities: add up what is to be expected at each point of time, without finding a match"
SUMMED = "no event fits two components, and no condition relates events"
COST = "O(points of events), and of each point once more in every window over it"
FIRST_TIMES = "first times: when the first event of each component comes, one after the other"
PAIRS_OF_POINTS = "O(points · points until the next event has come for sure · events at a point), per window"


def consider(wanted: Wanted) -> Choice | str:
    if not wanted.aggregates:
        return "it adds up matches, and finds none"
    measures = measures_of(wanted.plan)
    chance = [measure for measure in measures if measure.function == PROBABILITY]
    summed = len(chance) < len(measures)
    obstacle = (_obstacle(wanted) or _obstacle_of_sums(wanted)) if summed else _obstacle(wanted)
    if chance:
        obstacle = _of_probability(wanted, obstacle)
    if obstacle is not None:
        return obstacle
    sequence = _required(wanted.detection)
    imprecision = wanted.plan.schema.imprecision
    assert imprecision is not None
    return Choice(
        ExpectedKernel(Expectation(sequence, measures, wanted.plan.window), imprecision.longest),
        "; ".join([ALGORITHM] * summed + [FIRST_TIMES] * bool(chance)),
        SUMMED,
        "; ".join([COST] * summed + [PAIRS_OF_POINTS] * bool(chance)),
        "one step: expected values per group and window",
    )


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


def _of_probability(wanted: Wanted, obstacle: str | None) -> str | None:
    """What stands in the way of PROBABILITY(*), and of sums that stand beside it."""
    if set(wanted.plan.keys) != set(wanted.plan.group_by):
        obstacle = "a group has several partitions"
    elif not _required(wanted.detection):
        obstacle = "no component of the pattern must happen"
    if obstacle is None:
        return None
    return f"PROBABILITY(*), and all that stands beside it, is computed without finding matches, but {obstacle}"


CANDIDATE = Candidate("expected", consider)
