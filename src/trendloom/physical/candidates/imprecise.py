"""Matches of events whose times are intervals: signatures are grown many at a time, each with its confidence."""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.errors import PlanError
from trendloom.kernels.ground.machine import Machine
from trendloom.kernels.ground.spec import Detection
from trendloom.kernels.imprecise.kernel import ImpreciseKernel
from trendloom.kernels.imprecise.supported import check_supported
from trendloom.model.semantics import Semantics
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.search import ADDED_UP
from trendloom.plan.display import Branch

ALGORITHM = "signatures: extend partial matches by the bounds of their times, many at a time, then weigh each match"
COST = "O(partial matches that can still end in time); for each match O(length · points) to weigh it"
COST_WITH_RIVALS = (
    "O(candidates tried); for each match O(length · points² · rivals) to weigh it, "
    "and exponential in the rivals that may lie in several of its gaps"
)
ADDED_UP_LATER = "two steps: find the matches, then add up their confidences per group and window"
AS_FOUND = "matches with their confidence and times as they are found, sorted where they fit in memory"


def consider(wanted: Wanted) -> Choice | str:
    return ADDED_UP if wanted.aggregates else search(wanted)


def search(wanted: Wanted) -> Choice:
    """The same, whatever becomes of the matches."""
    plan, detection, how = wanted.plan, wanted.detection, wanted.plan.schema.imprecision
    assert how is not None
    _refuse(wanted)
    kernel = ImpreciseKernel(detection, whole_windows=wanted.aggregates, threshold=plan.confidence, slack=how.longest)
    cost = COST_WITH_RIVALS if _has_rivals(detection) else COST
    notes = (Branch("pruning", below=tuple(_pruned(wanted))), Branch("confidence", _weighed(detection)))
    return Choice(kernel, ALGORITHM, _why(wanted), cost, ADDED_UP_LATER if wanted.aggregates else AS_FOUND, notes=notes)


def _refuse(wanted: Wanted) -> None:
    """Refuse a pattern that signatures cannot express, with its place."""
    query = wanted.plan.query
    try:
        check_supported(Machine(wanted.detection))
    except PlanError as refused:
        raise PlanError(refused.message, query.clause("PATTERN"), hint=refused.hint, text=query.text) from None


def _has_rivals(detection: Detection) -> bool:
    """Whether other events decide about a match: the next that fits, or those that must not lie in between."""
    return detection.earliest or len(detection.scopes) > 1


def _why(wanted: Wanted) -> str:
    kinds = [place.type for place in wanted.detection.places if place.scope == 0]
    order = (
        "an event fits one component: all in the order of the query"
        if len(set(kinds)) == len(kinds)
        else "an event may fit several components: all in the order of the query as well"
    )
    return f"times are imprecise, {wanted.plan.semantics.value}; {order}, events sorted by their earliest times"


def _pruned(wanted: Wanted) -> Iterator[Branch]:
    plan = wanted.plan
    yield Branch("by time", "two bounds of every partial match, exact: its last event not before it, all within WITHIN")
    if plan.window.within is not None:
        rare = _rarest(wanted)
        yield Branch("by what must follow", f"how early a match can end that goes on from an event{rare}")
    if plan.semantics is Semantics.NEXT:
        yield Branch("by what surely came", "what begins after the first sure follower extends no run")
    if plan.confidence is not None:
        bar = f"{float(plan.confidence):g}"
        yield Branch("by confidence", f"partial matches that are in order with less than {bar}, which only falls")


def _rarest(wanted: Wanted) -> str:
    """Which component stops most partial matches, where statistics tell."""
    types = wanted.statistics.types
    kinds = {place.type for place in wanted.detection.places if place.scope == 0}
    if not types or len(kinds) < 2:
        return ""
    rare = min(sorted(kinds), key=lambda kind: types.get(kind, 0.0))
    return f": {rare} is the rarest type, with {types.get(rare, 0.0):,.0f} events"


def _weighed(detection: Detection) -> str:
    if not _has_rivals(detection):
        return "sums over points in order, O(length · points), for each start where the window binds"
    return "factors for every two neighbouring points; a sweep over time where events may lie in several gaps"


CANDIDATE = Candidate("signatures", consider)
