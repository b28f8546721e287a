"""Ranked sequences of single events whose preference is monotone in the part of each: parts are read best first.

See Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2, on preferences
that are not linear.
"""

from __future__ import annotations

from dataclasses import fields, replace

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Which, variables, walk
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.join_order import is_straight
from trendloom.kernels.ranking.kernel import ListingKernel
from trendloom.kernels.ranking.parts import PART, PartsKernel, SequenceParts, directions_of
from trendloom.model.schema import Kind
from trendloom.model.selection import Semantics
from trendloom.planner.algorithms import list_matches
from trendloom.planner.algorithms.join_order import NOT_STRAIGHT
from trendloom.planner.estimates import estimate_search
from trendloom.planner.ranking import describe_ranking
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    plan, ranking = request.plan, request.plan.ranking
    if ranking is None or ranking.merge is not None:
        return Refusal(RefusalCode.OUTPUT, "it ranks matches by one preference")
    if plan.semantics is not Semantics.ANY or plan.hidden or plan.operand_windows or plan.window.spanning:
        return Refusal(RefusalCode.WINDOW, "it ranks whole windows under skip-till-any-match")
    if len(request.pattern_spec.scopes) > 1 or request.pattern_spec.scopes[0].rules:
        return Refusal(RefusalCode.PREDICATE, "a condition links events, or a NOT lies between them")
    if not is_straight(Automaton(request.pattern_spec), 0):
        return NOT_STRAIGHT
    found = _sequence(request)
    if isinstance(found, Refusal):
        return found
    listing = list_matches(request).kernel
    assert isinstance(listing, ListingKernel)
    return Choice(
        PartsKernel(request.pattern_spec, listing.scoring, found, listing, count=listing.count),
        "parts: events in the order of what they can give to a score, joined no further than the best need",
        "the score is not a fold of its events, but has one part for each of them",
        "O(events · log events + sequences that are not worse than the last), per window",
        "the best matches, in the order of their ranks; all are listed where the events make a score not monotone",
        notes=(describe_ranking(plan, "events by their parts, as far as a score can still be among the best"),),
        estimate=estimate_search(request),
    )


def _sequence(request: PlanningRequest) -> SequenceParts | Refusal:
    assert request.plan.ranking is not None
    (preference,) = request.plan.ranking.preferences
    if any(isinstance(one, Aggregate | Extent | Fold | Group) for one in walk(preference)):
        return Refusal(RefusalCode.PREFERENCE, "the score is not made of values of single events")
    if not preference.kind.numeric or preference.kind is Kind.DECIMAL:
        return Refusal(RefusalCode.PREFERENCE, "decimals are ranked exactly, by listing")
    parts: dict[str, Expr] = {}
    whole = _divided(preference, parts)
    if whole is None:
        return Refusal(RefusalCode.PREFERENCE, "a variable has several parts in the score")
    if directions_of(whole, dict.fromkeys(parts, (1.0, 2.0))) is None:
        return Refusal(
            RefusalCode.PREFERENCE, "the score does not only grow, or only fall, with the value of each event"
        )
    template = request.pattern_spec.scopes[0].template
    names = tuple(request.pattern_spec.places[position].variable for position in template.position_of)
    return SequenceParts(template.position_of, names, tuple(parts.items()), whole)


def _divided(expr: Expr, parts: dict[str, Expr]) -> Expr | None:
    """The expression with one attribute in the place of each part; None: a variable has several."""
    used = variables(expr)
    if not used:
        return expr
    if len(used) == 1:
        (name,) = used
        if name in parts:
            return None
        parts[name] = expr
        return Attribute(name, Which.EACH, PART, expr.kind)
    changed: dict[str, object] = {}
    for field in fields(expr):
        value = getattr(expr, field.name)
        if isinstance(value, Expr):
            changed[field.name] = _divided(value, parts)
        elif isinstance(value, tuple):
            changed[field.name] = tuple(_divided(one, parts) if isinstance(one, Expr) else one for one in value)
    if any(one is None or (isinstance(one, tuple) and None in one) for one in changed.values()):
        return None
    return replace(expr, **changed)  # type: ignore[arg-type]
