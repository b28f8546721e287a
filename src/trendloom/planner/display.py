"""How an optimized plan will run: the lowest part of EXPLAIN.

Every engine describes its own steps, so a new one is shown without a change here. A plan that no algorithm runs is
shown up to the refusal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from trendloom.errors import PlanError
from trendloom.kernels.contract.pattern_spec import PatternSpec, Scope
from trendloom.logical.display import Branch, describe_condition, describe_guard, show_component, show_expression
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import UNKNOWN, Statistics
from trendloom.model.amounts import show_bytes, show_count
from trendloom.pattern.template import Crossings
from trendloom.planner.pattern_tables import describe
from trendloom.planner.plan import Physical, choose
from trendloom.planner.request import Choice, Estimate

# ---------------------------------------------------------------------------------------------- physical


def describe_physical(
    plan: Plan, execution: Callable[[Physical], tuple[Branch, ...]], statistics: Statistics = UNKNOWN
) -> Branch:
    """The algorithm for an optimized plan and its reason, the templates, and the steps of an engine."""
    templates = tuple(_templates(plan))
    try:
        physical = choose(plan, statistics=statistics)
    except PlanError as refusal:
        hint = (Branch("hint", refusal.hint),) if refusal.hint else ()
        return Branch("Physical plan", below=(Branch("refused", refusal.message), *hint, *templates))
    result = Branch("result", physical.chosen.result, physical.chosen.obstacles)
    below = (*_algorithm(physical.chosen), *templates, result, *execution(physical))
    return Branch("Physical plan", below=below)


def describe_definitions(plan: Plan) -> Branch:
    """The same for the reference evaluator, which has no algorithm to choose."""
    idea = Branch("algorithm", "the definitions, executed: every binding is built and tested")
    cost = Branch("cost", "exponential: small streams only")
    return Branch("Physical plan", below=(idea, cost, *_templates(plan)))


def numbered(name: str, what: str, steps: Iterable[str]) -> Branch:
    """The steps of an engine, one below the other."""
    return Branch(name, what, tuple(Branch(f"{number}.", step) for number, step in enumerate(steps, 1)))


def scanned(plan: Plan) -> str:
    """How much of the events is read, in words."""
    read, all_columns, types = len(plan.scan.columns), len(plan.schema.names), plan.scan.types
    columns = f"all {read} columns" if read == all_columns else f"{read} of {all_columns} columns"
    if types is None:
        return f"{columns}, events of every type"
    return f"{columns}, events of {len(types)} type{'s' if len(types) > 1 else ''}"


def _algorithm(chosen: Choice) -> Iterator[Branch]:
    yield Branch("algorithm", chosen.algorithm)
    yield Branch("why", chosen.why)
    yield Branch("cost", chosen.cost, chosen.structures)
    if chosen.estimate is not None:
        yield Branch("estimate", _estimated(chosen.estimate))
    yield from chosen.notes


def _estimated(estimate: Estimate) -> str:
    """The cost in figures, as far as it is known."""
    looked_at = "" if estimate.events is None else f"{show_count(estimate.events)} of "
    figures = [] if estimate.read is None else [f"{looked_at}{show_count(estimate.read)} events"]
    figures += [f"{show_count(number)} {name}" for name, number in estimate.further.items()]
    if estimate.results is not None:
        rows = show_count(estimate.results)
        figures.append(f"{'at most' if estimate.at_most else 'about'} {rows} row{'' if rows == '1' else 's'}")
    if estimate.bytes is not None:
        figures.append(f"{show_bytes(estimate.bytes)} of columns")
    return f"{', '.join(figures)}, by {estimate.origin.value}"


# --------------------------------------------------------------------------------------------- templates


def _templates(plan: Plan) -> Iterator[Branch]:
    pattern_spec = describe(plan)
    for scope in pattern_spec.scopes:
        name = "template" if scope.number == 0 else f"NOT {scope.number}"
        yield Branch(name, _dependence(plan, scope), tuple(_template(plan, pattern_spec, scope)))


def _dependence(plan: Plan, scope: Scope) -> str:
    if scope.number == 0:
        return ""
    if plan.schema.imprecise:
        return "its events are rivals: how likely none lies in the gap is part of the confidence of each match"
    if scope.like is not None:
        return f"the same as NOT {scope.like}: evaluated once"
    if scope.negation_guard is not None:
        return describe_guard(plan, scope.negation_guard.links, follows=scope.negation_guard.follows)
    if scope.outer:
        return f"uses {', '.join(sorted(scope.outer))} of the match around it: searched in the gap of each match"
    if scope.open_ended:
        return "depends on where the gap begins and ends: searched in each gap"
    return "one threshold per event: only the latest start of its matches counts"


def _template(plan: Plan, pattern_spec: PatternSpec, scope: Scope) -> Iterator[Branch]:
    template = scope.template
    names = {number: f"{number}:{place.variable}" for number, place in enumerate(pattern_spec.places)}
    positions = sorted(set(template.position_of))
    yield Branch("positions", below=tuple(_position(plan, pattern_spec, position) for position in positions))
    if len(template.position_of) > len(positions):
        yield Branch("states", f"{len(template.position_of)}: AND keeps track of each of its parts")
    ends = zip(template.position_of, template.accepts, strict=True)
    yield Branch("first", _reached(names, ((edge.position, edge.crossings) for edge in template.starts)))
    yield Branch("last", _reached(names, ((position, way) for position, ways in ends for way in ways)))
    steps: dict[int, list[tuple[int, Crossings]]] = defaultdict(list)
    for position, edges in zip(template.position_of, template.edges, strict=True):
        for edge in edges:
            steps[position].append((edge.position, edge.crossings))
    follow = tuple(Branch(names[position], "→ " + _reached(names, steps[position])) for position in sorted(steps))
    yield Branch("follow", "" if steps else "nothing: a match is one event", follow)
    least = template.minimal_length
    yield Branch("least", f"{least} event{'s' if least > 1 else ''} in a match")
    rules = tuple(describe_condition(c) for c in plan.conditions if c.scope == scope.number)
    if rules:
        yield Branch("conditions", below=rules)


def _position(plan: Plan, pattern_spec: PatternSpec, position: int) -> Branch:
    place = pattern_spec.places[position]
    tests = [show_expression(expr, plan.schema.axis) for where, expr in plan.filters if where == position]
    name = f"{position} {show_component(place.type, place.variable)}"
    return Branch(name, "where " + " and ".join(tests) if tests else "")


def _reached(names: dict[int, str], found: Iterable[tuple[int, Crossings]]) -> str:
    """Positions that come next, each with the NOTs on the ways to it."""
    ways: dict[int, set[Crossings]] = defaultdict(set)
    for position, crossings in found:
        ways[position].add(crossings)
    return ", ".join(names[position] + _crossed(ways[position]) for position in sorted(ways))


def _crossed(alternatives: set[Crossings]) -> str:
    """The NOTs that lie on a transition; several ways to take it may cross different ones, or none."""
    ways = sorted({" and ".join(f"NOT {n}" for n in sorted({c.scope for c in way})) for way in alternatives if way})
    if not ways:
        return ""
    return f" ({' or '.join(ways)}{' on some ways' if any(not way for way in alternatives) else ''})"
