"""How matches are ranked: the scoring of a plan, and the fold that its preference is monotone in."""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.expr.nodes import Arithmetic, Constant, Expr, Fold, Function, Negate, variables, walk
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, MatchValues
from trendloom.kernels.ranking.scores import OperandSpan, Scoring, best_of, scored, scores_of
from trendloom.logical.display import Branch
from trendloom.logical.plan import Plan
from trendloom.pattern.template import in_every_match
from trendloom.planner.request import Refusal, RefusalCode


def scoring_of(plan: Plan, names: tuple[str, ...]) -> Scoring | None:
    """How the matches of a plan are scored; `names`: the variables of its positions. None: they are not ranked."""
    ranking = plan.ranking
    if ranking is None:
        return None
    used = tuple(tuple(sorted(variables(expr))) for expr in ranking.preferences)
    spans = tuple(OperandSpan(one.positions, one.within) for one in plan.operand_windows)
    overall = plan.ranks_across_keys
    return Scoring(
        ranking.preferences,
        ranking.merge,
        ranking.descending,
        ranking.limit,
        overall,
        used,
        names,
        spans,
        ranking.scale,
        ranking.kind,
    )


def best_matches(plan: Plan, names: tuple[str, ...], block: Block, values: MatchValues) -> Matches:
    """The best of matches that were ranked apart, by the kernels' own code; `names` as in `scoring_of`."""
    scoring = scoring_of(plan, names)
    assert scoring is not None
    found = scored(values.matches, scores_of(scoring, values), descending=scoring.descending)
    return best_of(found, block, scoring).matches


def describe_ranking(plan: Plan, how: str, obstacles: tuple[Branch, ...] = ()) -> Branch:
    """How the best matches of a plan are found; `obstacles`: why not otherwise."""
    ranking = plan.ranking
    assert ranking is not None
    of = "of each window" if plan.window.sliding else "of the stream"
    of += " and partition" if plan.partition and not ranking.overall else ""
    return Branch("ranking", f"the best {ranking.limit} {of}: {how}", obstacles)


@dataclass(frozen=True)
class Folded:
    """A preference that grows with a fold, or falls with it."""

    fold: Fold
    falling: bool


def fold_of(plan: Plan) -> Folded | Refusal:
    """The fold that a plan is ranked by, or what stands in the way."""
    ranking = plan.ranking
    assert ranking is not None
    if ranking.merge is not None:
        return Refusal(RefusalCode.PREFERENCE, "MERGE joins the preferences of several sequences")
    if plan.operand_windows:
        return Refusal(RefusalCode.PATTERN, "operands have windows of their own")
    if plan.hidden:
        return Refusal(RefusalCode.HIDING, "EXISTS hides events, and matches that then coincide are one")
    (preference,) = ranking.preferences
    found = folded(preference)
    if found is None:
        return Refusal(
            RefusalCode.PREFERENCE, "the score is not a sum, product, least or greatest of what each event gives"
        )
    for part in found.fold.parts:
        if not part.counts and not in_every_match(plan.pattern, part.variable):
            return Refusal(RefusalCode.PREFERENCE, f"a match may lack {part.variable}, and then has no score")
    return found


def folded(preference: Expr) -> Folded | None:
    """The fold of a preference that is monotone in it; None: it is another one."""
    falling = _falls(preference)
    if falling is None:
        return None
    (fold,) = (one for one in walk(preference) if isinstance(one, Fold))
    return Folded(fold, falling)


def _falls(expr: Expr) -> bool | None:
    """Whether an expression over a fold falls as the fold grows; None: it is none, or not monotone."""
    match expr:
        case Fold():
            return False
        case Negate(operand):
            return _turned(_falls(operand), True)
        case Arithmetic("+" | "-" as operator, left, right):
            if isinstance(right, Constant):
                return _falls(left)
            return _turned(_falls(right), operator == "-") if isinstance(left, Constant) else None
        case Arithmetic("*" | "/" as operator, left, right):
            constant, other = (right, left) if operator == "/" or isinstance(right, Constant) else (left, right)
            value = constant.value if isinstance(constant, Constant) else None
            if isinstance(value, str | bool | None) or value == 0:
                return None
            return _turned(_falls(other), value < 0)
        case Function("sqrt" | "exp" | "ln" | "floor" | "ceil", (operand,)):
            return _falls(operand)
        case Function("round", (operand, *rest)) if all(isinstance(one, Constant) for one in rest):
            return _falls(operand)
        case Function("least" | "greatest", arguments):
            others = [one for one in arguments if not isinstance(one, Constant)]
            return _falls(others[0]) if len(others) == 1 else None
    return None


def _turned(falls: bool | None, turn: bool) -> bool | None:
    return None if falls is None else falls != turn
