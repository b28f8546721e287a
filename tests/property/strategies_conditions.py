"""Random conjuncts of every class that an engine may treat in its own way, over the variables of a pattern.

Each class is a function from variables to text; they are valid by construction, so that nearly every query binds.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from tests.property.strategies_patterns import Variable

comparisons = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])
orders = st.sampled_from(["<", "<=", ">", ">="])
equalities = st.sampled_from(["=", "!="])
wildcards = st.sampled_from(["u%", "_", "%v%", "w"])
seconds = st.sampled_from(["1", "2", "3", "5", "2 s", "4 s"])
numbers = st.sampled_from(["x", "x", "y"])
small = st.integers(-2, 4).map(str)
halves = st.sampled_from(["-1.5", "0.5", "0", "1.25", "2"])

Variables = list[Variable]


def name(draw: st.DrawFn, variables: Variables, *others: str) -> str:
    """A variable, if possible another than those named."""
    fresh = [variable for variable in variables if variable.name not in others]
    return draw(st.sampled_from(fresh or variables)).name


def number_of(draw: st.DrawFn, event: str) -> str:
    """A number computed from one event, NULL where the column is, or where it is divided by zero."""
    column = draw(numbers)
    form = draw(st.sampled_from(["{e}.{c}"] * 6 + [
        "{e}.{c} + {n}", "{e}.{c} * 2", "{e}.x % 2", "-{e}.{c}", "abs({e}.{c})", "coalesce({e}.{c}, {n})",
        "{e}.x / {e}.y", "floor({e}.y)", "ceil({e}.y)", "round({e}.y)", "sqrt(abs({e}.x))",
        "length({e}.g)", "{e}.time", "{e}.k - 1",
    ]))  # fmt: skip
    return form.format(e=event, c=column, n=draw(small))


# ------------------------------------------------------------------------------------------- classes of conjuncts


@st.composite
def local(draw: st.DrawFn, variables: Variables) -> str:
    """About single events: it moves into the scan."""
    event = name(draw, variables)
    forms = [
        lambda: f"{number_of(draw, event)} {draw(comparisons)} {draw(halves)}",
        lambda: f"{event}.x {draw(orders)} {draw(small)}",
        lambda: f"{event}.x {draw(orders)} {event}.y",
        lambda: f"{event}.g {draw(equalities)} '{draw(st.sampled_from('uv'))}'",
        lambda: f"{event}.g {draw(st.sampled_from(['', 'NOT ']))}LIKE '{draw(wildcards)}'",
        lambda: f"{event}.{draw(st.sampled_from('xygk'))} IS {draw(st.sampled_from(['NOT ', 'NOT ', '']))}NULL",
        lambda: f"{event}.x {draw(st.sampled_from(['IN', 'NOT IN']))} (0, 1, {draw(small)})",
        lambda: f"{number_of(draw, event)} {draw(st.sampled_from(['BETWEEN', 'NOT BETWEEN']))} 0 AND {draw(small)}",
        lambda: f"upper({event}.g) = 'U'",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def adjacent(draw: st.DrawFn, variables: Variables) -> str:
    """About two events next to each other in the match."""
    first, second = name(draw, variables), name(draw, variables)
    forms = [
        lambda: f"{first}.x {draw(comparisons)} NEXT({second}).x",
        lambda: f"{number_of(draw, first)} {draw(orders)} {number_of(draw, f'NEXT({second})')}",
        lambda: f"NEXT({second}).x {draw(orders)} {draw(small)}",
        lambda: f"NEXT({second}).time - {first}.time {draw(orders)} {draw(st.integers(1, 4))}",
        lambda: f"{first}.g = NEXT({second}).g",
        lambda: f"({first}.x < NEXT({second}).x OR NEXT({second}).g = 'u')",
        lambda: f"NOT ({first}.x {draw(comparisons)} NEXT({second}).y)",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def previous(draw: st.DrawFn, variables: Variables) -> str:
    """About an event of a variable and the one before it in that variable."""
    event = name(draw, variables)
    forms = [
        lambda: f"{event}[i].x {draw(comparisons)} {event}[i-1].x",
        lambda: f"{event}[i].time - {event}[i-1].time {draw(orders)} {draw(st.integers(1, 4))}",
        lambda: f"{event}[i].x + {draw(small)} {draw(orders)} {event}[i-1].y",
        lambda: f"({event}[i].x > {event}[i-1].x OR {event}[i].g = {event}[i-1].g)",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def history(draw: st.DrawFn, variables: Variables) -> str:
    """About an event of a variable and all before it in that variable."""
    event = name(draw, variables)
    function = draw(st.sampled_from(["min", "max", "sum", "avg"]))
    forms = [
        lambda: f"{event}[i].x {draw(orders)} {function}({event}[..i-1].x)",
        lambda: f"{event}[i].y {draw(orders)} {function}({event}[..i-1].y) + {draw(small)}",
        lambda: f"{event}[i].x {draw(orders)} count({event}[..i-1])",
        lambda: f"{event}[i].x != count({event}[..i-1].x)",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def distant(draw: st.DrawFn, variables: Variables) -> str:
    """About two events, adjacent or not."""
    first = name(draw, variables)
    second = name(draw, variables, first)
    forms = [
        lambda: f"{first}.x {draw(comparisons)} {second}.x",
        lambda: f"{number_of(draw, first)} {draw(orders)} {number_of(draw, second)}",
        lambda: f"{second}.time - {first}.time {draw(orders)} {draw(seconds)}",
        lambda: f"{first}.k = {second}.k",
        lambda: f"{first}.g {draw(st.sampled_from(['=', '!=', '<']))} {second}.g",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def three(draw: st.DrawFn, variables: Variables) -> str:
    """About three events."""
    first = name(draw, variables)
    second = name(draw, variables, first)
    third = name(draw, variables, first, second)
    return f"{first}.x + {second}.{draw(numbers)} {draw(orders)} {third}.x"


@st.composite
def whole(draw: st.DrawFn, variables: Variables) -> str:
    """About all events of a variable in the match, alone or beside an event of another."""
    event = name(draw, variables)
    other = name(draw, variables, event)
    function = draw(st.sampled_from(["min", "max", "sum", "avg"]))
    end = draw(st.sampled_from(["first", "last"]))
    forms = [
        lambda: f"{event}[{end}].x {draw(comparisons)} {draw(small)}",
        lambda: f"{event}[last].x {draw(orders)} {event}[first].x",
        lambda: f"count({event}[]) {draw(comparisons)} {draw(st.integers(1, 3))}",
        lambda: f"{function}({event}[].{draw(numbers)}) {draw(orders)} {draw(small)}",
        lambda: f"max({event}[].x) - min({event}[].x) {draw(orders)} {draw(small)}",
        lambda: f"duration({event}) {draw(orders)} {draw(st.integers(0, 5))}",
        lambda: f"{other}.x {draw(orders)} {function}({event}[].x)",
        lambda: f"{other}.x {draw(orders)} {event}[{end}].x",
        lambda: f"count({event}[].x) * 2 > count({other}[])",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def combined(draw: st.DrawFn, variables: Variables) -> str:
    """OR, NOT and brackets over other classes."""
    parts = [draw(draw(st.sampled_from([local, local, distant, whole]))(variables)) for _ in range(2)]
    form = draw(st.sampled_from(["{} OR {}", "NOT ({} AND {})", "({} AND {})", "NOT ({}) OR {}", "NOT ({} OR {})"]))
    return form.format(*parts)


CLASSES: dict[str, Callable[[Variables], st.SearchStrategy[str]]] = {
    "local": local,
    "adjacent": adjacent,
    "previous": previous,
    "history": history,
    "distant": distant,
    "three": three,
    "whole": whole,
    "combined": combined,
}


@st.composite
def conjuncts(draw: st.DrawFn, variables: Variables, classes: tuple[str, ...]) -> str:
    """One conjunct of WHERE: over the variables of the match, or over those of one NOT and of what encloses it."""
    scopes = sorted({variable.scope for variable in variables})
    scope = draw(st.sampled_from([(), (), *scopes]))
    visible = [variable for variable in variables if scope[: len(variable.scope)] == variable.scope]
    kind = draw(st.sampled_from(classes))
    if kind in ("adjacent", "previous", "history") or not scope:
        # Neighbours and predecessors are events of one match, so their variables are of one scope.
        visible = [variable for variable in visible if variable.scope == scope] or visible
    plural = [variable for variable in visible if variable.plural]
    if kind in ("previous", "history") and plural:
        visible = plural
    return draw(CLASSES[kind](visible))


@st.composite
def attached(draw: st.DrawFn, variables: Variables, own: str, scope: tuple[int, ...]) -> str:
    """A predicate of one component: on its event alone, or together with a variable that is visible there."""
    visible = [variable for variable in variables if scope[: len(variable.scope)] == variable.scope]
    other = name(draw, visible, own)
    forms = [
        lambda: draw(local([Variable(own, "", scope, False)])),
        lambda: f"{own}.x {draw(comparisons)} {other}.x",
        lambda: f"{number_of(draw, own)} {draw(orders)} {number_of(draw, other)}",
        lambda: f"{own}.k = {other}.k",
        lambda: f"{own}.x > {draw(small)} AND {own}.g = {other}.g",
        lambda: f"({own}.x = {other}.x OR {own}.g IS NULL)",
    ]
    return draw(st.sampled_from(forms))()
