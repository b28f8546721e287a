"""What the optimizer made of a plan, rule by rule: a part of EXPLAIN.

Every rule is shown by comparing the plan before and after it, so a new rule is shown without a change here.
"""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.logical.display import (
    Branch,
    describe_guard,
    describe_pattern,
    show_component,
    show_expression,
)
from trendloom.logical.plan import Condition, Plan
from trendloom.logical.statistics import UNKNOWN, Statistics
from trendloom.model.amounts import show_count
from trendloom.optimizer import applied_rules
from trendloom.optimizer.nesting_costs import NestingCosts, costs_of, is_nested
from trendloom.pattern.algebra import atoms


def describe_optimized(plan: Plan, statistics: Statistics = UNKNOWN) -> Branch:
    """What each rule changed, in their order, then those that changed nothing."""
    below, idle = [], []
    for name, rule in applied_rules(plan, statistics):
        after = rule(plan)
        changes = tuple(_changes(plan, after))
        if changes:
            below.append(Branch(name, below=changes))
        else:
            idle.append(name)
        plan = after
    costs = costs_of(plan, statistics) if is_nested(plan) else None
    if costs is not None:
        below.append(_costs(costs))
    unchanged = (Branch("no change by", ", ".join(idle)),) if idle else ()
    return Branch("Optimized plan", below=(*below, *unchanged))


def _costs(costs: NestingCosts) -> Branch:
    """The cost model's figures for conditions between several events."""
    figures = [
        Branch("predicates on whole bindings", show_count(costs.last)),
        Branch("predicates where decided", show_count(costs.early)),
    ]
    if costs.chosen != costs.early:
        figures.append(Branch("with short cuts", show_count(costs.chosen)))
    return Branch("partial matches in a window, estimated", below=tuple(figures))


def _changes(before: Plan, after: Plan) -> Iterator[Branch]:
    components = _components_of(after) if len(after.filters) > len(before.filters) else {}
    for position, expr in after.filters[len(before.filters) :]:
        yield Branch(f"{components[position]} must pass", show_expression(expr, after.schema.axis))
    added = after.split[len(before.split) :]
    if added:
        names = ", ".join(added)
        yield Branch(f"split by {names}", f"every event of a match has the same {names}")
    yield from _changed_conditions(before, after)
    if after.scan.types != before.scan.types:
        yield Branch("reads only events of type", ", ".join(after.scan.types or ("any",)))
    if after.scan.columns != before.scan.columns:
        unread = [name for name in before.scan.columns if name not in after.scan.columns]
        yield Branch("reads only columns", ", ".join(after.scan.columns))
        yield Branch("leaves out", ", ".join(unread))
    for noted in after.decorrelated[len(before.decorrelated) :]:
        yield Branch(f"NOT {noted.scope}", describe_guard(after, noted.links, follows=noted.follows))
    for one, other in after.alike[len(before.alike) :]:
        yield Branch(f"NOT {one}", f"has the matches of NOT {other}: evaluated once")
    if after.pattern != before.pattern:
        yield Branch("rewrites the pattern", below=(describe_pattern(after.pattern),))


def _changed_conditions(before: Plan, after: Plan) -> Iterator[Branch]:
    left = [condition for condition in before.conditions if condition not in after.conditions]
    if len(after.conditions) != len(before.conditions):
        if len(after.filters) == len(before.filters):
            yield from (Branch("dropped", condition.text) for condition in left)
    elif not left:
        if after.conditions != before.conditions:
            yield Branch("asks first", after.conditions[0].text)
    else:
        both = zip(before.conditions, after.conditions, strict=True)
        yield from (Branch(old.text, _change(old, new)) for old, new in both if old != new)


def _change(old: Condition, new: Condition) -> str:
    """What became of a condition."""
    if new.short_cut and not old.short_cut:
        return "cut short: where a value is nowhere inside, nothing more is tried"
    if new.looked_up and not old.looked_up:
        return "events are looked up by value"
    if new.decided_at != old.decided_at:
        return f"decided at {new.decided_at}"
    return f"rewritten as {new.text}"


def _components_of(plan: Plan) -> dict[int, str]:
    return {
        atom.position: f"{atom.position} {show_component(atom.type, atom.variable)}" for atom in atoms(plan.pattern)
    }
