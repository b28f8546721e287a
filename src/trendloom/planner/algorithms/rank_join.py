"""Ranked combinations of sequences that have preferences of their own: read in order of these, and joined.

See Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.3.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Expr, variables
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.ranking.join_kernel import RankJoinKernel
from trendloom.kernels.ranking.join_operands import JoinBranch, JoinOperand
from trendloom.kernels.ranking.kernel import ListingKernel
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind
from trendloom.model.selection import Semantics
from trendloom.pattern.algebra import Atom, Both, Either, Pattern, Sequence
from trendloom.planner.algorithms import list_matches
from trendloom.planner.estimates import estimate_search
from trendloom.planner.ranking import describe_ranking, folded
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

Atoms = tuple[Atom, ...]


def consider(request: PlanningRequest) -> Choice | Refusal:
    plan, ranking = request.plan, request.plan.ranking
    if ranking is None or ranking.merge is None:
        return Refusal(RefusalCode.OUTPUT, "it ranks matches by preferences that MERGE joins")
    refusal = _refusal(plan)
    if refusal is not None:
        return refusal
    operands = _operands(plan)
    if isinstance(operands, Refusal):
        return operands
    rules = _rules(request.pattern_spec.scopes[0].rules, operands)
    if isinstance(rules, Refusal):
        return rules
    listing = list_matches(request).kernel
    assert isinstance(listing, ListingKernel)
    in_order = not isinstance(plan.pattern, Both)
    kernel = RankJoinKernel(
        request.pattern_spec, listing.scoring, operands, in_order, rules, listing, count=listing.count
    )
    return Choice(
        kernel,
        "rank join: sequences best first, joined no further than the best combinations need",
        "MERGE of preferences, each of one sequence of single events",
        "O(accesses up to the boundary + combinations that are not worse than the last), per window",
        "the best combinations, in the order of their ranks; all are listed where they are few",
        notes=(describe_ranking(plan, _how(kernel)),),
        estimate=estimate_search(request),
    )


def _how(kernel: RankJoinKernel) -> str:
    found = ["sequences best first, waste-avoiding schedule (WABS), corner bounds"]
    if kernel.equalities:
        found.append("what is equal is looked up by value")
    window = kernel.pattern_spec.window
    if window.spanning:
        found.append("WITHIN cuts the stream into stretches, of which only those are opened that can hold the best")
    elif window.sliding:
        found.append("the sequences of windows are found together, and each window is joined for itself")
    return "; ".join(found)


def _rules(rules: tuple[Rule, ...], operands: tuple[JoinOperand, ...]) -> tuple[Rule, ...] | Refusal:
    """The conditions that combinations have to pass; those on two branches of an OR hold of no match, so of all."""
    found = []
    for rule in rules:
        shape = rule.shape
        if rule.part is not None or shape.pair or shape.index or shape.whole:
            return Refusal(RefusalCode.PREDICATE, "a condition speaks of more than single events of several sequences")
        if any(shape.variables <= set(branch.variables) for operand in operands for branch in operand.branches):
            return Refusal(RefusalCode.PREDICATE, "a condition links events of one sequence")
        taken = [{n for n, one in enumerate(o.branches) if shape.variables & set(one.variables)} for o in operands]
        if all(len(branches) <= 1 for branches in taken):
            found.append(rule)
    return tuple(found)


def _refusal(plan: Plan) -> Refusal | None:
    if plan.semantics is not Semantics.ANY:
        return Refusal(RefusalCode.SEMANTICS, "it joins sequences under skip-till-any-match")
    if plan.hidden:
        return Refusal(RefusalCode.HIDING, "EXISTS hides events, and matches that then coincide are one")
    assert plan.ranking is not None
    kinds = [one.kind for one in plan.ranking.preferences]
    if plan.ranking.merge == "avg" and Kind.DECIMAL in kinds:
        return Refusal(RefusalCode.PREFERENCE, "means of decimals are rounded")
    if Kind.FLOAT in kinds and kinds.count(Kind.DECIMAL) > 1:
        return Refusal(RefusalCode.PREFERENCE, "decimals are added before they are rounded to doubles")
    return None


def _operands(plan: Plan) -> tuple[JoinOperand, ...] | Refusal:
    """The sequences that are joined, each with its preference."""
    assert plan.ranking is not None
    found = _parts(plan)
    if found is None:
        return Refusal(
            RefusalCode.PREFERENCE, "an operand is not a sequence of single events, or a choice of such sequences"
        )
    operands = []
    for sequences in found:
        branches = [_branch(atoms, plan.ranking.preferences) for atoms in sequences]
        known = tuple(one for one in branches if one is not None)
        if len(known) < len(branches):
            return Refusal(RefusalCode.PREFERENCE, "a sequence has no preference that is a sum of what its events give")
        operand = JoinOperand(known)
        within = [one.within for one in plan.operand_windows if set(one.positions) == set(operand.positions)]
        operands.append(replace(operand, within=min(within)) if within else operand)
    if sum(operand.within is not None for operand in operands) < len({one.positions for one in plan.operand_windows}):
        return Refusal(RefusalCode.PREFERENCE, "a part of a sequence has a window of its own")
    if [branch.preference for one in operands for branch in one.branches] != list(plan.ranking.preferences):
        return Refusal(
            RefusalCode.PREFERENCE, "not every sequence has a preference of its own, in the order of the sequences"
        )
    return tuple(operands)


def _branch(atoms: Atoms, preferences: tuple[Expr, ...]) -> JoinBranch | None:
    """A sequence with its preference; None: it has none of its own, or one of another form."""
    names = {atom.variable for atom in atoms}
    mine = [one for one in preferences if variables(one) & names]
    fold = folded(mine[0]) if len(mine) == 1 and variables(mine[0]) <= names else None
    if fold is None or fold.fold.operator != "+" or len(names) < len(atoms):
        return None
    positions = tuple(atom.position for atom in atoms)
    return JoinBranch(positions, tuple(atom.variable for atom in atoms), mine[0], fold.fold, fold.falling)


def _parts(plan: Plan) -> list[list[Atoms]] | None:
    """The operands of AND or SEQ, each with its branches; None: one is something else."""
    if isinstance(plan.pattern, Both):
        found = [_choice(part) for part in plan.pattern.parts]
        return None if None in found else [one for one in found if one is not None]
    operands: list[list[Atoms]] = []
    run: list[Atom] = []
    for part in plan.pattern.parts if isinstance(plan.pattern, Sequence) else (plan.pattern,):
        if isinstance(part, Atom):
            run.append(part)
            continue
        branches = _choice(part)
        if branches is None:
            return None
        operands += [*([one] for one in _divided(run, plan)), branches]
        run = []
    return [*operands, *([one] for one in _divided(run, plan))]


def _choice(part: Pattern) -> list[Atoms] | None:
    """A sequence of single events, or the several of which it is one; None: it is something else."""
    found = []
    for branch in part.parts if isinstance(part, Either) else (part,):
        atoms = branch.parts if isinstance(branch, Sequence) else (branch,)
        some = tuple(atom for atom in atoms if isinstance(atom, Atom))
        if len(some) < len(atoms):
            return None
        found.append(some)
    return found


def _divided(atoms: list[Atom], plan: Plan) -> list[Atoms]:
    """A sequence divided where another preference begins."""
    assert plan.ranking is not None
    found: list[list[Atom]] = []
    current: int | None = None
    for atom in atoms:
        users = [n for n, one in enumerate(plan.ranking.preferences) if atom.variable in variables(one)]
        if not found or (users and current is not None and users[0] != current):
            found.append([])
        found[-1].append(atom)
        current = users[0] if users else current
    return [tuple(some) for some in found]
