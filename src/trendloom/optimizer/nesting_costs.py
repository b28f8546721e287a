"""How many partial matches a window makes: the cost model by which nested queries are planned.

A component of the pattern has |S| events in a window that fit it; conditions on one event alone are in that number
already and are not multiplied again. Each component after the first follows the one before it in half of the pairs
(`AFTER`), and a condition that is decided at a component lets a share of them through. The partial matches of a scope
are the sum over its components; every binding of a scope then tests each of its NOTs once, which costs the partial
matches of the NOT between two events, and joining what it finds. A short cut lets through the share of outer values
that a window holds inside, for the price of the table.
After Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 5: its equation 5.4 multiplies a
selectivity that |S| holds already, and 5.3 leaves out the join.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trendloom.expr.nodes import Attribute, Comparison, Expr, Junction, variables, walk
from trendloom.logical.plan import Condition, Plan
from trendloom.logical.statistics import Statistics
from trendloom.optimizer.look_up_equalities import is_join
from trendloom.pattern.algebra import Atom, Negation, Pattern, atoms, negations, scopes_of

AFTER = 0.5
"""The share of pairs of events of which one is after the other."""
EQUAL, RANGE, DIFFERENT, OTHER = 0.1, 1 / 3, 0.9, 1 / 3
"""What conditions let through where nothing is known of their values."""


@dataclass(frozen=True)
class NestingCosts:
    """Partial matches in a window: predicates tested on whole bindings, where they are decided, and with short cuts."""

    last: float
    early: float
    chosen: float


def costs_of(plan: Plan, statistics: Statistics) -> NestingCosts | None:
    """What a plan costs in each way; None: too little is known of the stream."""
    bare = replace(plan, conditions=tuple(replace(one, short_cut=False) for one in plan.conditions))
    late = replace(bare, conditions=tuple(replace(one, decided_at=None) for one in bare.conditions))
    found = [_Model(one, statistics).cost(0, plan.pattern) for one in (late, bare, plan)]
    if None in found:
        return None
    last, early, chosen = (one[0] for one in found if one is not None)
    return NestingCosts(last, early, chosen)


def is_nested(plan: Plan) -> bool:
    """Whether conditions relate what is inside a NOT with what is around it, or look events up by value."""
    return any(one.decided_at is not None and (one.scope or one.looked_up) for one in plan.conditions)


@dataclass(frozen=True)
class _Model:
    plan: Plan
    statistics: Statistics

    def cost(self, scope: int, body: Pattern, outside: frozenset[str] = frozenset()) -> tuple[float, float] | None:
        """Partial matches that a scope makes with all inside it, and its bindings; `outside` is bound already."""
        bound, rows, partial = set(outside), 1.0, 0.0
        conditions = [one for one in self.plan.conditions if one.scope == scope]
        for number, atom in enumerate(atoms(body, negated=False)):
            fitting = self.in_window(atom)
            if fitting is None:
                return None
            bound.add(atom.variable)
            rows *= fitting * (AFTER if number else 1.0)
            for one in list(conditions):
                if one.decided_at is not None and variables(one.expr) <= bound:
                    conditions.remove(one)
                    rows *= selectivity(one.expr, self.plan, self.statistics)
            rows *= math.prod(self.missing(scope, one, atom) for one in self.plan.conditions if one.short_cut)
            partial += rows
        rows *= math.prod(selectivity(one.expr, self.plan, self.statistics) for one in conditions)
        tested = 0.0
        for inner in negations(body):
            found = self.cost(inner.scope, inner.body, frozenset(bound))
            if found is None:
                return None
            tested += self.searched(inner) * (found[0] + found[1])
        return partial + rows * tested, rows

    def searched(self, inner: Negation) -> float:
        """The share of bindings around a NOT for which its matches are searched."""
        cuts = [one for one in self.plan.conditions if one.short_cut and one.scope == inner.scope]
        return math.prod(let_through(one, self.plan, self.statistics) or 1.0 for one in cuts)

    def missing(self, scope: int, condition: Condition, atom: Atom) -> float:
        """The share of events that a short cut of the match itself lets through, at the event that comes first."""
        if condition.scope != scope or scope != 0:
            return 1.0
        outer, _ = ends_of(condition, self.plan)
        if atom.variable != outer.variable:
            return 1.0
        return let_through(condition, self.plan, self.statistics) or 1.0

    def in_window(self, atom: Atom) -> float | None:
        """|S|: events of a window and key that fit a component."""
        statistics = self.statistics
        fitting = statistics.fitting.get(atom.position, statistics.types.get(atom.type))
        share = statistics.share_of_time(self.plan.window)
        if fitting is None or share is None:
            return None
        spread = statistics.spread(self.plan.keys)
        return fitting * share / max(spread.distinct if spread is not None else 1.0, 1.0)


def compared_values(plan: Plan) -> frozenset[tuple[str, str]]:
    """The types and columns of a plan whose values equalities compare: those of which domains are worth knowing."""
    types: dict[str, set[str]] = {}
    for atom in atoms(plan.pattern):
        types.setdefault(atom.variable, set()).add(atom.type)
    return frozenset(
        (kind, leaf.column)
        for condition in plan.conditions
        if is_join(condition)
        for leaf in walk(condition.expr)
        if isinstance(leaf, Attribute)
        for kind in types[leaf.variable]
    )


def selectivity(expr: Expr, plan: Plan, statistics: Statistics) -> float:
    """The share of choices of events of which a condition is true."""
    if isinstance(expr, Junction):
        shares = [selectivity(one, plan, statistics) for one in expr.operands]
        return math.prod(shares) if expr.operator == "and" else 1 - math.prod(1 - share for share in shares)
    if not isinstance(expr, Comparison):
        return OTHER
    if expr.operator in ("=", "!="):
        domains = [size for side in (expr.left, expr.right) if (size := _domain(side, plan, statistics))]
        equal = 1 / max(domains) if domains else EQUAL
        return equal if expr.operator == "=" else 1 - equal if domains else DIFFERENT
    return RANGE


def _domain(side: Expr, plan: Plan, statistics: Statistics) -> float | None:
    """How many values one side of a comparison has."""
    if not isinstance(side, Attribute):
        return None
    mine = [atom for atom in atoms(plan.pattern) if atom.variable == side.variable]
    sizes = [statistics.domains.get((atom.type, side.column)) for atom in mine]
    known = [size for size in sizes if size is not None]
    return max(known) if known else statistics.values.get(side.column)


def ends_of(condition: Condition, plan: Plan) -> tuple[Atom, Atom]:
    """The two events of an equality: the given one (the outer, or the first to be bound), and the one that is sought.

    Both by the first of their positions.
    """
    bodies = dict(scopes_of(plan.pattern))
    own = {atom.variable: atom for atom in reversed(list(atoms(bodies[condition.scope], negated=False)))}
    every = {atom.variable: atom for atom in reversed(list(atoms(plan.pattern)))}
    names = sorted(
        variables(condition.expr), key=lambda name: (name in own, (own if name in own else every)[name].position)
    )
    given, sought = ((own if name in own else every)[name] for name in names)
    return given, sought


def let_through(condition: Condition, plan: Plan, statistics: Statistics) -> float | None:
    """The share of given events whose value a window holds at the side that is sought; None: unknown.

    The values sought are as many as the inner domain has, of which each of the window's events picks one; of the outer
    domain they are a part.
    """
    given, sought = ends_of(condition, plan)
    sizes: dict[str, float] = {}
    for leaf in walk(condition.expr):
        if isinstance(leaf, Attribute):
            atom = given if leaf.variable == given.variable else sought
            size = statistics.domains.get((atom.type, leaf.column))
            if size is None:
                return None
            sizes[leaf.variable] = max(size, 1.0)
    inside = _Model(plan, statistics).in_window(sought)
    if inside is None:
        return None
    inner, outer = sizes[sought.variable], sizes[given.variable]
    held = 1 - math.pow(1 - 1 / inner, inside)
    return min(inner / outer, 1.0) * held


def table_cost(condition: Condition, plan: Plan, statistics: Statistics) -> float | None:
    """What the table of the values that are sought costs for each window."""
    _, sought = ends_of(condition, plan)
    inside = _Model(plan, statistics).in_window(sought)
    return None if inside is None else 1 + inside * max(1.0, math.log2(max(inside, 2.0)))
