"""Ranked matches of an OR: each branch by the algorithm that suits it, and of these the best."""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Arithmetic, Constant, variables
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.ranking.kernel import BranchesKernel, ListingKernel, RankingKernel
from trendloom.logical.display import Branch
from trendloom.logical.plan import Plan, Ranking
from trendloom.model.schema import Kind
from trendloom.model.selection import Semantics
from trendloom.model.time import Window
from trendloom.pattern.algebra import Either, Pattern, atoms
from trendloom.pattern.template import build_template
from trendloom.planner.algorithms import best_paths, list_matches, monotone_parts, rank_join
from trendloom.planner.estimates import estimate_search
from trendloom.planner.ranking import describe_ranking
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    plan = request.plan
    if plan.ranking is None or plan.ranking.merge is None or not isinstance(plan.pattern, Either):
        return Refusal(RefusalCode.OUTPUT, "it ranks the branches of an OR, whose preferences MERGE joins")
    if plan.semantics is not Semantics.ANY:
        return Refusal(RefusalCode.SEMANTICS, "it ranks branches under skip-till-any-match")
    if plan.hidden or len(request.pattern_spec.scopes) > 1:
        return Refusal(RefusalCode.PATTERN, "a branch has an EXISTS or a NOT")
    chosen = []
    for branch in plan.pattern.parts:
        found = _branch(request, branch)
        if isinstance(found, Refusal):
            return found
        chosen.append(_ranked(found))
    kernels = tuple(one.kernel for one in chosen if isinstance(one.kernel, RankingKernel))
    if all(isinstance(kernel, ListingKernel) for kernel in kernels):
        return Refusal(RefusalCode.PREFERENCE, "every branch has to be listed")
    listing = list_matches(request).kernel
    assert isinstance(listing, ListingKernel)
    below = tuple(Branch(f"branch {number}", one.algorithm) for number, one in enumerate(chosen, 1))
    return Choice(
        BranchesKernel(request.pattern_spec, listing.scoring, kernels, count=listing.count),
        "branches: the best of every branch of OR, and of these the best",
        "a match takes one branch, and only the preference of that one counts",
        "that of the branches",
        "the best matches, in the order of their ranks",
        notes=(describe_ranking(plan, "every branch on its own", below),),
        estimate=estimate_search(request),
    )


def _ranked(request: PlanningRequest) -> Choice:
    """The first algorithm that ranks a branch."""
    assert request.plan.ranking is not None
    alone = len(request.plan.ranking.preferences) == 1
    by_one = replace(request, plan=replace(request.plan, ranking=replace(request.plan.ranking, merge=None)))
    for consider_branch, of in (
        (best_paths.consider, by_one),
        (rank_join.consider, request),
        (monotone_parts.consider, by_one),
    ):
        if alone or of is request:
            found = consider_branch(of)
            if isinstance(found, Choice):
                return found
    return list_matches(request)


def _branch(request: PlanningRequest, branch: Pattern) -> PlanningRequest | Refusal:
    """The request for a branch by itself, or why it cannot be ranked by itself."""
    plan = request.plan
    positions, names = {atom.position for atom in atoms(branch)}, {atom.variable for atom in atoms(branch)}
    ranking = _ranking_of(plan, names)
    rules = _rules_of(request.pattern_spec.scopes[0].rules, names)
    if isinstance(ranking, Refusal):
        return ranking
    if isinstance(rules, Refusal):
        return rules
    if any(0 < len(set(one.positions) & positions) < len(one.positions) for one in plan.operand_windows):
        return Refusal(RefusalCode.PREFERENCE, "several branches have one window")
    changed = replace(
        plan,
        pattern=branch,
        ranking=ranking,
        operand_windows=tuple(one for one in plan.operand_windows if set(one.positions) <= positions),
        conditions=tuple(one for one in plan.conditions if variables(one.expr) <= names),
        kleene=plan.kleene & names,
    )
    changed = _with_own_span(changed, positions)
    scope = replace(request.pattern_spec.scopes[0], template=build_template(branch), rules=rules)
    places = tuple(
        place if position in positions else replace(place, parts=(), branch=())  # the places of others do not matter
        for position, place in enumerate(request.pattern_spec.places)
    )
    pattern_spec = replace(
        request.pattern_spec, places=places, scopes=(scope,), plural=changed.kleene, window=changed.window
    )
    return replace(request, plan=changed, pattern_spec=pattern_spec)


def _ranking_of(plan: Plan, names: set[str]) -> Ranking | Refusal:
    """How the matches of a branch are ranked among themselves: as they are among all, or what stands in the way.

    Beside doubles exact numbers become doubles, and those that are one double tie.
    """
    ranking = plan.ranking
    assert ranking is not None
    mine = tuple(one for one in ranking.preferences if variables(one) & names)
    if any(not variables(one) for one in ranking.preferences):
        return Refusal(RefusalCode.PREFERENCE, "a preference is a constant")
    if not mine or any(not variables(one) <= names for one in mine):
        return Refusal(RefusalCode.PREFERENCE, "a branch has no preference of its own")
    doubles = [one.kind is Kind.FLOAT for one in ranking.preferences]
    if len(mine) > 1:
        if any(doubles) and not all(one.kind is Kind.FLOAT for one in mine):
            return Refusal(RefusalCode.PREFERENCE, "a branch merges exact numbers, which are doubles in the score")
    elif (any(doubles) or ranking.merge == "avg") and mine[0].kind is not Kind.FLOAT:
        mine = (Arithmetic("+", mine[0], Constant(0.0, Kind.FLOAT), Kind.FLOAT),)
    return replace(ranking, preferences=mine)


def _rules_of(rules: tuple[Rule, ...], names: set[str]) -> tuple[Rule, ...] | Refusal:
    """The conditions on a branch: one on a single event of another branch holds, as there is none."""
    found = []
    for rule in rules:
        shape = rule.shape
        if shape.variables <= names:
            found.append(rule)
        elif shape.pair or shape.index or shape.whole or rule.part is not None:
            return Refusal(RefusalCode.PREDICATE, "a condition speaks of more than single events of several branches")
    return tuple(found)


def _with_own_span(plan: Plan, positions: set[int]) -> Plan:
    """Where spans are bounded and the branch has a bound of its own, that is the bound of its matches."""
    own = [one.within for one in plan.operand_windows if set(one.positions) == positions]
    if plan.window.sliding or not own:
        return plan
    window = Window(min([*own, *([] if plan.window.within is None else [plan.window.within])]))
    return replace(
        plan, window=window, operand_windows=tuple(o for o in plan.operand_windows if set(o.positions) != positions)
    )
