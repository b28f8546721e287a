"""Ranked combinations of sequences that have preferences of their own: read in order of these, and joined.

See Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.3.
"""

from __future__ import annotations

from trendloom.expr.nodes import variables
from trendloom.kernels.ranking.joins.kernel import JoinOperand, RankJoinKernel
from trendloom.kernels.ranking.kernel import ListingKernel
from trendloom.model.schema import Kind
from trendloom.model.semantics import Semantics
from trendloom.pattern.algebra import Atom, Both, Pattern, Sequence
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.candidates.one_by_one import one_by_one
from trendloom.physical.estimates import estimate_search
from trendloom.physical.ranking import describe_ranking, folded
from trendloom.plan.logical import Plan


def consider(wanted: Wanted) -> Choice | str:
    plan, ranking = wanted.plan, wanted.plan.ranking
    if ranking is None or ranking.merge is None:
        return "it ranks matches by preferences that MERGE joins"
    obstacle = _obstacle(plan)
    if obstacle is not None:
        return obstacle
    operands = _operands(plan)
    if isinstance(operands, str):
        return operands
    rules = wanted.detection.scopes[0].rules
    for rule in rules:
        shape = rule.shape
        if rule.part is not None or shape.pair or shape.index or shape.whole:
            return "a condition speaks of more than single events of several sequences"
        if any(shape.variables <= set(operand.variables) for operand in operands):
            return "a condition links events of one sequence"
    listing = one_by_one(wanted).kernel
    assert isinstance(listing, ListingKernel)
    in_order = not isinstance(plan.pattern, Both)
    return Choice(
        RankJoinKernel(wanted.detection, listing.scoring, operands, in_order, rules, listing, count=listing.count),
        "rank join: sequences best first, joined no further than the best combinations need",
        "MERGE of preferences, each of one sequence of single events",
        "O(accesses up to the boundary + combinations that are not worse than the last), per window",
        "the best combinations, in the order of their ranks; all are listed where they are few",
        notes=(describe_ranking(plan, "sequences best first, waste-avoiding schedule (WABS), corner bounds"),),
        estimate=estimate_search(wanted),
    )


def _obstacle(plan: Plan) -> str | None:
    if plan.semantics is not Semantics.ANY:
        return "it joins sequences under skip-till-any-match"
    if plan.hidden:
        return "EXISTS hides events, and matches that then coincide are one"
    if plan.window.spanning:
        return "WITHIN without SLIDE bounds the span of whole matches"
    if plan.operand_windows and not plan.window.sliding:
        return "the windows of operands bound their spans"
    assert plan.ranking is not None
    if plan.ranking.merge == "avg" and any(one.kind is Kind.DECIMAL for one in plan.ranking.preferences):
        return "means of decimals are rounded"
    return None


def _operands(plan: Plan) -> tuple[JoinOperand, ...] | str:
    """The sequences that are joined, each with its preference."""
    assert plan.ranking is not None
    found = _sequences(plan.pattern)
    if isinstance(found, str):
        return found
    sequences = found if isinstance(plan.pattern, Both) else _divided(found[0], plan)
    if sequences is None or len(sequences) != len(plan.ranking.preferences):
        return "not every sequence has a preference of its own"
    operands = []
    for atoms in sequences:
        names = {atom.variable for atom in atoms}
        mine = [one for one in plan.ranking.preferences if variables(one) and variables(one) <= names]
        fold = folded(mine[0]) if len(mine) == 1 else None
        if fold is None or fold.fold.operator != "+":
            return "a sequence has no preference that is a sum of what its events give"
        positions = tuple(atom.position for atom in atoms)
        within = [one.within for one in plan.operand_windows if set(one.positions) == set(positions)]
        window = within[0] if within else None
        bound = tuple(atom.variable for atom in atoms)
        operands.append(JoinOperand(positions, bound, mine[0], fold.fold, fold.falling, window))
    if sum(operand.within is not None for operand in operands) < len(plan.operand_windows):
        return "a part of a sequence has a window of its own"
    if [operand.preference for operand in operands] != list(plan.ranking.preferences):
        return "preferences are not in the order of the sequences"
    return tuple(operands)


def _sequences(pattern: Pattern) -> list[tuple[Atom, ...]] | str:
    """The operands of AND, or the one sequence that there is."""
    found = []
    for part in pattern.parts if isinstance(pattern, Both) else (pattern,):
        atoms = part.parts if isinstance(part, Sequence) else (part,)
        some = tuple(atom for atom in atoms if isinstance(atom, Atom))
        if len(some) < len(atoms) or len({atom.variable for atom in some}) < len(some):
            return "an operand is not a sequence of single events"
        found.append(some)
    return found


def _divided(atoms: tuple[Atom, ...], plan: Plan) -> list[tuple[Atom, ...]] | None:
    """A sequence divided where another preference begins; None: preferences overlap."""
    assert plan.ranking is not None
    found: list[list[Atom]] = []
    current: int | None = None
    for atom in atoms:
        users = [n for n, one in enumerate(plan.ranking.preferences) if atom.variable in variables(one)]
        if len(users) > 1:
            return None
        if not found or (users and current is not None and users[0] != current):
            found.append([])
        found[-1].append(atom)
        current = users[0] if users else current
    return [tuple(some) for some in found]


CANDIDATE = Candidate("rank join", consider)
