"""Matches of events whose times are intervals: signatures are grown many at a time, each with its confidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import Any

from trendloom.errors import PlanError
from trendloom.expr.nodes import MIRRORED, Attribute, Comparison, Constant, Expr, Junction
from trendloom.kernels.contract.pattern_spec import PatternPosition, PatternSpec
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.uncertain.depth_first import suits_depth_first
from trendloom.kernels.uncertain.kernel import ImpreciseKernel, check_supported
from trendloom.logical.display import Branch
from trendloom.logical.plan import Plan
from trendloom.model.selection import Semantics
from trendloom.planner.request import Choice, PlanningRequest

# Whether components of a pattern exclude each other: no event can stand at two of them.
#
# They do if their types differ, or if conditions on the event alone contradict each other: `a.place = 1` and
# `b.place = 2`, or `a.x < 3` and `b.x >= 3`. Others that never meet in the data are not seen; saying less is safe.


NUMBERS = (int, float, Decimal)


@dataclass(frozen=True)
class _ValueRange:
    """Values from `low` to `high`, each of which may belong to it (`low_in`, `high_in`); None: no bound."""

    low: Any = None
    low_in: bool = True
    high: Any = None
    high_in: bool = True

    def meets(self, other: _ValueRange) -> bool:
        return self._reaches(other) and other._reaches(self)

    def _reaches(self, other: _ValueRange) -> bool:
        """Whether its upper end is not below the other's lower end."""
        if self.high is None or other.low is None:
            return True
        return bool(self.high > other.low) or (self.high == other.low and self.high_in and other.low_in)


def overlapping(plan: Plan, places: Sequence[PatternPosition], positions: Sequence[int]) -> tuple[int, int] | None:
    """Two of the positions that an event may both fit; None: they all exclude each other."""
    for one, other in combinations(positions, 2):
        if places[one].type == places[other].type and not _contradict(plan, one, other):
            return one, other
    return None


def _contradict(plan: Plan, one: int, other: int) -> bool:
    mine, theirs = ([*_ranges(plan, position)] for position in (one, other))
    return any(a == b and _comparable(left, right) and not left.meets(right) for a, left in mine for b, right in theirs)


def _ranges(plan: Plan, position: int) -> list[tuple[str, _ValueRange]]:
    """What the conditions on an event at a position alone allow, by column."""
    conjuncts = [part for where, expr in plan.filters if where == position for part in _parts(expr)]
    return [found for part in conjuncts if (found := _range(part)) is not None]


def _parts(expr: Expr) -> Sequence[Expr]:
    if isinstance(expr, Junction) and expr.operator == "and":
        return [part for operand in expr.operands for part in _parts(operand)]
    return (expr,)


def _range(expr: Expr) -> tuple[str, _ValueRange] | None:
    """The values that a comparison of an attribute with a constant allows."""
    if isinstance(expr, Comparison) and isinstance(expr.left, Constant):
        expr = replace(expr, left=expr.right, operator=MIRRORED[expr.operator], right=expr.left)  # type: ignore[arg-type]
    if not (isinstance(expr, Comparison) and isinstance(expr.left, Attribute) and isinstance(expr.right, Constant)):
        return None
    value, operator = expr.right.value, expr.operator
    if value is None or operator == "!=" or expr.left.kind is not expr.right.kind:
        return None
    found = _ValueRange()
    if operator in ("=", "<", "<="):
        found = replace(found, high=value, high_in=operator != "<")
    if operator in ("=", ">", ">="):
        found = replace(found, low=value, low_in=operator != ">")
    return expr.left.column, found


def _comparable(one: _ValueRange, other: _ValueRange) -> bool:
    """Whether all their bounds are numbers, or all texts of an equality: the order of other texts is not defined."""
    bounds = [bound for side in (one, other) for bound in (side.low, side.high) if bound is not None]
    if all(isinstance(bound, NUMBERS) for bound in bounds):
        return True
    return all(isinstance(bound, str) for bound in bounds) and len(bounds) == 4


WALK = "signatures: walk from event to event by the bounds of their times, compiled, then weigh each match"
GROWTH = "signatures: extend partial matches by the bounds of their times, many at a time, then weigh each match"
COST = "O(partial matches that can still end in time); for each match O(length · points) to weigh it"
COST_WITH_RIVALS = "O(candidates tried); for each match O(length · points² · rivals) to weigh it"
IN_SEVERAL_GAPS = "exponential in the rivals that may lie in several of its gaps"
ADDED_UP_LATER = "two steps: find the matches, then add up their confidences per group and window"
AS_FOUND = "matches with their confidence and times as they are found, sorted where they fit in memory"


def consider(request: PlanningRequest) -> Choice:
    plan, pattern_spec, how = request.plan, request.pattern_spec, request.plan.schema.imprecision
    assert how is not None
    _refuse(request)
    kernel = ImpreciseKernel(
        pattern_spec, whole_windows=request.aggregates, threshold=plan.confidence, slack=how.longest
    )
    notes = (Branch("pruning", below=tuple(_pruned(request))), Branch("confidence", _weighed(request)))
    algorithm = WALK if suits_depth_first(pattern_spec) else GROWTH
    result = ADDED_UP_LATER if request.aggregates else AS_FOUND
    return Choice(kernel, algorithm, _why(request), _cost(request), result, notes=notes)


def _refuse(request: PlanningRequest) -> None:
    """Refuse a pattern that signatures cannot express, with its place."""
    query = request.plan.query
    try:
        check_supported(Automaton(request.pattern_spec))
    except PlanError as refused:
        raise PlanError(refused.message, query.clause("PATTERN"), hint=refused.hint, text=query.text) from None


def _has_rivals(pattern_spec: PatternSpec) -> bool:
    """Whether a match depends on other events: the next that fits, or those that must not lie in between."""
    return pattern_spec.earliest or len(pattern_spec.scopes) > 1


def _cost(request: PlanningRequest) -> str:
    if not _has_rivals(request.pattern_spec):
        return COST
    return COST_WITH_RIVALS if _in_one_gap(request) else f"{COST_WITH_RIVALS}, and {IN_SEVERAL_GAPS}"


def _why(request: PlanningRequest) -> str:
    """Why in the order of the query, and why in this way."""
    pattern_spec = request.pattern_spec
    found = overlapping(request.plan, pattern_spec.places, _positions(pattern_spec))
    if found is None:
        fits = "an event fits one component: all in the order of the query"
    else:
        one, other = (f"'{pattern_spec.places[position].variable}'" for position in found)
        of = one if one == other else f"{one} and {other}"
        fits = f"an event may fit several places, of {of}: all in the order of the query as well"
    if suits_depth_first(pattern_spec):
        way = "no condition links events"
    elif pattern_spec.earliest:
        way = "what comes next is found for many partial matches at once"
    else:
        way = "conditions link events, and are tested on whole columns"
    return f"times are imprecise, {request.plan.semantics.value}; {fits}, events sorted by their earliest times; {way}"


def _positions(pattern_spec: PatternSpec) -> list[int]:
    """Those of the pattern itself, NOTs left out."""
    return [position for position, place in enumerate(pattern_spec.places) if place.scope == 0]


def _pruned(request: PlanningRequest) -> Iterator[Branch]:
    plan = request.plan
    yield Branch("by time", "two bounds of every partial match, exact: its last event not before it, all within WITHIN")
    if plan.window.within is not None:
        rare = _rarest(request)
        yield Branch("by what must follow", f"how early a match can end that goes on from an event{rare}")
    if plan.semantics is Semantics.NEXT:
        yield Branch("by what surely came", "what begins after the first sure follower extends no run")
    if plan.confidence is not None:
        bar = f"{float(plan.confidence):g}"
        yield Branch("by confidence", f"partial matches that are in order with less than {bar}, which only falls")


def _rarest(request: PlanningRequest) -> str:
    """Which component stops most partial matches, if statistics are enough to decide."""
    types = request.statistics.types
    kinds = {place.type for place in request.pattern_spec.places if place.scope == 0}
    if not types or len(kinds) < 2:
        return ""
    rare = min(sorted(kinds), key=lambda kind: types.get(kind, 0.0))
    return f": {rare} is the rarest type, with {types.get(rare, 0.0):,.0f} events"


def _weighed(request: PlanningRequest) -> str:
    if not _has_rivals(request.pattern_spec):
        return "sums over points in order, O(length · points), for each start where the window binds"
    factors = "factors for every two neighbouring points"
    if _in_one_gap(request):
        return f"{factors}: what must not come between can lie in one gap of a match alone"
    return f"{factors}; a sweep over time where events may lie in several gaps"


def _in_one_gap(request: PlanningRequest) -> bool:
    """Whether every event that a match depends on can lie in one of its gaps only, by the types."""
    pattern_spec = request.pattern_spec
    if not pattern_spec.earliest:
        deciding = [position for position, place in enumerate(pattern_spec.places) if place.scope]
        return overlapping(request.plan, pattern_spec.places, deciding) is None
    follow = pattern_spec.scopes[0].template.follow
    chain = not pattern_spec.plural and all(len(follow[position]) <= 1 for position in _positions(pattern_spec))
    return chain and overlapping(request.plan, pattern_spec.places, range(len(pattern_spec.places))) is None
