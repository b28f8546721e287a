"""EXISTS in the physical plan: description, refusal, and templates with fewer matches for the same remainders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from trendloom.kernels.contract.pattern_spec import PatternSpec, Scope
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.display import Branch
from trendloom.pattern.template import Template
from trendloom.planner.request import Refusal, RefusalCode

HIDING = Refusal(RefusalCode.HIDING, "EXISTS hides events, and equal remainders of different matches are one")


COMPARED = "found like all others, then left out of matches; equal remainders, found by hash, are one"
COUNTED = "one event at its place is enough: the latest one takes the place of those before it"


def describe_hiding(pattern_spec: PatternSpec, how: str) -> tuple[Branch, ...]:
    """What becomes of hidden events, for EXPLAIN; nothing without EXISTS."""
    if not pattern_spec.hidden:
        return ()
    names = ", ".join(sorted({pattern_spec.places[position].variable for position in pattern_spec.hidden}))
    return (Branch("EXISTS", f"{names}: {how}"),)


def with_single_witnesses(pattern_spec: PatternSpec) -> PatternSpec:
    """The detection with the same remainders and fewer matches; itself where nothing can be left out.

    Under skip-till-any-match a hidden event that repeats (`X x+`) makes a match of every set of events that fit, all
    with one remainder. One of them is enough, where no condition reads them: the last, if no NOT lies before, or the
    first, if none lies after. And where a step without NOTs leads past them (`X x*`), and no condition looks at
    neighbours, there need not be one. So the template loses the steps from such an event to itself, or its whole state,
    before an algorithm is chosen, and such matches are never found. Every state left can be reached from the start.
    """
    first = pattern_spec.scopes[0]
    hidden = {position for position in pattern_spec.hidden if not pattern_spec.places[position].branch}
    if not hidden or pattern_spec.earliest or pattern_spec.adjacent:
        return pattern_spec
    if pattern_spec.window.spanning and first.open_ended:  # these NOTs look from the first and last events of a match
        return pattern_spec
    read = set().union(*(rule.shape.variables for rule in first.rules), *(s.outer for s in pattern_spec.scopes[1:]))
    unread = {position for position in hidden if pattern_spec.places[position].variable not in read}
    looping = {state for state in _looping(first, unread) if _one_side_is_free(first, state)}
    found = _with_template(pattern_spec, _without_loops(first.template, looping)) if looping else pattern_spec
    if first.rules or unread != pattern_spec.hidden:
        return found
    from trendloom.kernels.aggregate.program import Existence

    needless = Existence(Automaton(found)).needless
    return _with_template(found, found.scopes[0].template.without_states(needless)) if needless else found


def _looping(scope: Scope, positions: set[int]) -> Iterator[int]:
    """The states at some positions from which a step leads to themselves."""
    template = scope.template
    for state, position in enumerate(template.position_of):
        if position in positions and any(edge.target == state for edge in template.edges[state]):
            yield state


def _one_side_is_free(scope: Scope, state: int) -> bool:
    """Whether no NOT lies on the steps into a state, or none on those out of it and at the end after it."""
    template = scope.template
    others = [edge for source, edges in enumerate(template.edges) for edge in edges if source != state]
    entering = [edge.crossings for edge in (*template.starts, *others) if edge.target == state]
    leaving = [edge.crossings for edge in template.edges[state] if edge.target != state]
    return not any(entering) or not any((*leaving, *template.accepts[state]))


def _without_loops(template: Template, states: Collection[int]) -> Template:
    """The template without the steps from some states to themselves."""
    edges = tuple(
        tuple(edge for edge in edges if edge.target != state) if state in states else edges
        for state, edges in enumerate(template.edges)
    )
    return replace(template, edges=edges)


def _with_template(pattern_spec: PatternSpec, template: Template) -> PatternSpec:
    """The detection with another template for the pattern itself."""
    first, *others = pattern_spec.scopes
    return replace(pattern_spec, scopes=(replace(first, template=template), *others))
