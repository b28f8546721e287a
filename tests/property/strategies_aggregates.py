"""Random aggregating queries, aimed at what one-step kernels tell apart: shapes of patterns and classes of transitions.

`strategies.cases` draws everything the language has, so that a given class of predicate on a given transition is rare.
Here a query takes a pattern from a list, with its transitions, and conjuncts made for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Case, havings, streams, totals, windows
from tests.property.strategies_conditions import comparisons, equalities, local, orders, small
from tests.property.strategies_patterns import TYPES, Variable

Transition = tuple[str, str]


@dataclass(frozen=True)
class Shape:
    """A pattern, the types of its variables, and which of them can be adjacent."""

    pattern: str
    types: dict[str, str]
    transitions: tuple[Transition, ...]
    only_any: bool = False
    hidden: str = ""

    @property
    def variables(self) -> list[Variable]:
        repeated = {first for first, second in self.transitions if first == second}
        return [Variable(name, kind, (), name in repeated) for name, kind in self.types.items()]

    @property
    def shown(self) -> list[Variable]:
        return [variable for variable in self.variables if variable.name not in self.hidden]


def shape(pattern: str, types: str, transitions: str = "", *, only_any: bool = False, hidden: str = "") -> Shape:
    """`types`: "a=A b=B"; `transitions`: "aa ab"; `hidden`: "ab"."""
    by_name = dict(pair.split("=") for pair in types.split())
    return Shape(pattern, by_name, tuple((pair[0], pair[1]) for pair in transitions.split()), only_any, hidden)


PLAIN = (
    shape("A a+", "a=A", "aa"),
    shape("SEQ(A a+, B b)", "a=A b=B", "aa ab"),
    shape("SEQ(A a, B b+)", "a=A b=B", "ab bb"),
    shape("(SEQ(A a+, B b))+", "a=A b=B", "aa ab ba"),
    shape("SEQ(A a, B b+, A c)", "a=A b=B c=A", "ab bb bc"),
    shape("SEQ(A a*, B b)", "a=A b=B", "aa ab"),
    shape("SEQ(A a?, B b+)", "a=A b=B", "ab bb"),
    shape("A a{2,3}", "a=A", "aa"),
    shape("SEQ(A a{2,}, B b)", "a=A b=B", "aa ab"),
    shape("SEQ(A a, B b{0,2}, A c)", "a=A b=B c=A", "ab bb bc ac"),
    shape("(SEQ(A a, B b){1,2})", "a=A b=B", "ab ba"),
    shape("OR(A a+, B b+)", "a=A b=B", "aa bb"),
    shape("(A a | B b)+", "a=A b=B", "aa ab ba bb"),
    shape("SEQ(A a+, OR(B b, SEQ(A c, B d)))", "a=A b=B c=A d=B", "aa ab ac cd"),
    shape("SEQ(A a, A b)", "a=A b=A", "ab"),
    shape("SEQ(A a+, A b+)", "a=A b=A", "aa ab bb"),
    shape("SEQ((SEQ(A a+, B b))+, A c)", "a=A b=B c=A", "aa ab ba bc"),
    shape("(SEQ((SEQ(A a, B b))+, C c?))+", "a=A b=B c=C", "ab ba bc ca"),
    shape("((A a+)+ | B b)*", "a=A b=B", "aa ab ba bb"),
    shape("AND(A a, B b)", "a=A b=B", "ab ba", only_any=True),
    shape("SEQ(AND(A a, B b+), A c)", "a=A b=B c=A", "ab ba bb ac bc", only_any=True),
)
NEGATED = (
    shape("SEQ(A a+, NOT C, B b)", "a=A b=B", "aa ab"),
    shape("SEQ(NOT C, A a+)", "a=A", "aa"),
    shape("SEQ(A a+, NOT C)", "a=A", "aa"),
    shape("SEQ(NOT C, A a+, NOT B, B b, NOT C)", "a=A b=B", "aa ab"),
    shape("(SEQ(A a, NOT C, B b))+", "a=A b=B", "ab ba"),
    shape("(SEQ(A a+, NOT C, B b, NOT B))+", "a=A b=B", "aa ab ba"),
    shape("SEQ(A a, NOT C, B b?, A c)", "a=A b=B c=A", "ab bc ac"),
    shape("SEQ(A a+, NOT A, B b)", "a=A b=B", "aa ab"),
    shape("SEQ(A a+, NOT SEQ(C, B), A b)", "a=A b=A", "aa ab"),
    shape("SEQ(NOT SEQ(C, C), A a+, B b)", "a=A b=B", "aa ab"),
    shape("SEQ(A a+, B b, NOT SEQ(C+, B))", "a=A b=B", "aa ab"),
    shape("SEQ(A a+, NOT SEQ(B, NOT C, B), A b)", "a=A b=A", "aa ab"),
    shape("SEQ(A a+, NOT AND(B, C), A b)", "a=A b=A", "aa ab"),
    shape("SEQ(A a+, NOT (C c: c.x > 1), B b)", "a=A b=B", "aa ab"),
    shape("SEQ(A a, NOT (C c: c.k = a.k), B b+)", "a=A b=B", "ab bb"),
    shape("OR(SEQ(A a+, NOT C, B b), SEQ(NOT B, A d))", "a=A b=B d=A", "aa ab"),
)
HIDDEN = (
    shape("EXISTS c (SEQ(A a+, C c, B b))", "a=A c=C b=B", "aa ac cb", hidden="c"),
    shape("EXISTS c (SEQ(C c, A a, B b+))", "c=C a=A b=B", "ca ab bb", hidden="c"),
    shape("EXISTS c (SEQ(A a, B b+, C c))", "a=A b=B c=C", "ab bb bc", hidden="c"),
    shape("EXISTS c (SEQ(A a+, A c, A b))", "a=A c=A b=A", "aa ac cb", hidden="c"),
    shape("EXISTS c (SEQ(A a, C c+, B b+))", "a=A c=C b=B", "ac cc cb bb", hidden="c"),
    shape("EXISTS c (SEQ(A a+, C c{2,}, B b))", "a=A c=C b=B", "aa ac cc cb", hidden="c"),
    shape("EXISTS c (EXISTS d (SEQ(A a+, C c*, B b, A d?)))", "a=A c=C b=B d=A", "aa ab ac cc", hidden="cd"),
    shape("EXISTS c (EXISTS d (SEQ(C c, A a, C d, A b)))", "c=C a=A d=C b=A", "ca ad db", hidden="cd"),
    shape("EXISTS c (EXISTS d (SEQ(A a+, C c, B d, A b)))", "a=A c=C d=B b=A", "aa ac cd", hidden="cd"),
    shape("EXISTS b ((SEQ(A a, B b))+)", "a=A b=B", "ab ba", hidden="b"),
    shape("EXISTS b (EXISTS d (SEQ(B d, (SEQ(A a, B b, C c?))+)))", "a=A b=B c=C d=B", "ab ba bc ca", hidden="bd"),
    shape("EXISTS c (SEQ(A a?, C c, B b*, A d))", "a=A c=C b=B d=A", "ac bb bd", hidden="c"),
    shape("EXISTS c (SEQ(AND(A a, B b), C c, A d))", "a=A b=B c=C d=A", "cd", only_any=True, hidden="c"),
    shape("EXISTS c (SEQ(A a+, C c, NOT B, A b))", "a=A c=C b=A", "aa ac cb", hidden="c"),
    shape("EXISTS c (SEQ(A a, C c, NOT SEQ(B, C), A b+))", "a=A c=C b=A", "ac cb bb", hidden="c"),
    shape("EXISTS c (SEQ(A a, NOT B, A b, C c, NOT B))", "a=A b=A c=C", "ab bc", hidden="c"),
)
"""What EXISTS hides is a plain test at its place."""
ENTANGLED = (
    shape("EXISTS c (SEQ(A a+, NOT B, C c, A b))", "a=A c=C b=A", "aa ac", hidden="c"),
    shape("EXISTS c (SEQ(NOT B, C c, A a+))", "c=C a=A", "ca aa", hidden="c"),
    shape("EXISTS c (SEQ(A a, OR(C c, SEQ(B b, C d)), A e))", "a=A b=B c=C d=C e=A", "ac ce", hidden="c"),
    shape("EXISTS c (EXISTS d (SEQ(A a, OR(C c, B d), A b)))", "a=A b=A c=C d=B", "ac cb", hidden="cd"),
    shape("EXISTS c (SEQ(A a, NOT B, C c?, A b))", "a=A b=A c=C", "ab", hidden="c"),
    shape("EXISTS c (SEQ(C c, A a*))", "a=A c=C", "aa", hidden="c"),
    shape("EXISTS c (SEQ(AND(A a, C c), B b))", "a=A b=B c=C", "ab", only_any=True, hidden="c"),
)
"""Here remainders have to be compared."""

# ---------------------------------------------------------------------------------------------- classes of conjuncts


def operators(draw: st.DrawFn, one: Transition, _: Shape) -> list[str]:
    """One comparison of one event with the next."""
    first, second = one
    left, right = draw(st.sampled_from([("x", "x"), ("x", "x"), ("x", "y"), ("y", "x"), ("k", "x"), ("k", "k")]))
    return [f"{first}.{left} {draw(comparisons)} NEXT({second}).{right}"]


def two(draw: st.DrawFn, one: Transition, whole: Shape) -> list[str]:
    """Two comparisons on one transition."""
    return operators(draw, one, whole) + operators(draw, one, whole)


def equal_and_ordered(draw: st.DrawFn, one: Transition, _: Shape) -> list[str]:
    first, second = one
    same = draw(st.sampled_from("kg"))
    return [f"{first}.{same} = NEXT({second}).{same}", f"{first}.x {draw(orders)} NEXT({second}).x"]


def two_orders(draw: st.DrawFn, one: Transition, _: Shape) -> list[str]:
    first, second = one
    other = draw(st.sampled_from(["y", "k", "time", "x"]))
    return [
        f"{first}.x {draw(orders)} NEXT({second}).x",
        f"NEXT({second}).{other} {draw(orders)} {first}.{other}",
    ]


def expressions(draw: st.DrawFn, one: Transition, _: Shape) -> list[str]:
    """Conditions on adjacent events that are more than a comparison of one column with another."""
    first, second = one
    forms = [
        f"abs({first}.x - NEXT({second}).x) < 2",
        f"{first}.x * NEXT({second}).x > 0",
        f"({first}.x < NEXT({second}).x OR NEXT({second}).g = 'u')",
        f"NOT ({first}.x = NEXT({second}).x AND {first}.y < 1)",
        f"NEXT({second}).time - {first}.time <= {draw(st.integers(1, 4))}",
        f"{first}.x + {first}.y <= NEXT({second}).x * 2 - 1",
        f"NEXT({second}).x - {first}.x BETWEEN 0 AND 2",
        f"coalesce({first}.x, 0) < coalesce(NEXT({second}).x, 2)",
        f"({first}.x IS NULL OR NEXT({second}).x IS NULL)",
        f"{first}.g {draw(equalities)} NEXT({second}).g",
        f"NEXT({second}).x {draw(orders)} {draw(small)}",
        f"{first}.x / NEXT({second}).x >= 1",
        f"{first}.x % 2 = NEXT({second}).x % 2",
    ]
    return [draw(st.sampled_from(forms))]


def everywhere(draw: st.DrawFn, _: Transition, whole: Shape) -> list[str]:
    """On every transition something else."""
    kinds: list[Conjuncts] = [operators, operators, equal_and_ordered, expressions]
    return [text for one in whole.transitions for text in draw(st.sampled_from(kinds))(draw, one, whole)]


def previous(draw: st.DrawFn, one: Transition, _: Shape) -> list[str]:
    """About an event of a variable and the one before it in that variable."""
    name = one[0]
    forms = [
        f"{name}[i].x {draw(comparisons)} {name}[i-1].x",
        f"{name}[i].y {draw(orders)} {name}[i-1].x",
        f"{name}[i].time - {name}[i-1].time < {draw(st.integers(2, 4))}",
        f"{name}[i].k = {name}[i-1].k AND {name}[i].x > {name}[i-1].x",
    ]
    return [draw(st.sampled_from(forms))]


def distant(draw: st.DrawFn, _: Transition, whole: Shape) -> list[str]:
    """About two variables, whatever lies between their events."""
    names = [variable.name for variable in whole.variables]
    first, second = draw(st.permutations(names))[:2] if len(names) > 1 else names * 2
    forms = [
        f"{first}.x {draw(comparisons)} {second}.x",
        f"{first}.x {draw(orders)} {second}.y",
        f"{first}.k = {second}.k",
        f"{second}.time - {first}.time < {draw(st.integers(2, 6))}",
        f"abs({first}.x - {second}.x) <= 1",
    ]
    return [draw(st.sampled_from(forms))]


def alone(draw: st.DrawFn, _: Transition, whole: Shape) -> list[str]:
    """About single events."""
    return [draw(local(whole.variables))]


def nothing(draw: st.DrawFn, _: Transition, __: Shape) -> list[str]:
    return []


Conjuncts = Callable[[st.DrawFn, Transition, Shape], list[str]]
CLASSES: dict[str, Conjuncts] = {
    "nothing": nothing,
    "alone": alone,
    "operators": operators,
    "two": two,
    "equal and ordered": equal_and_ordered,
    "two orders": two_orders,
    "expressions": expressions,
    "everywhere": everywhere,
    "previous": previous,
    "distant": distant,
}

# --------------------------------------------------------------------------------------------------------- queries

Grouping = tuple[tuple[str, ...], tuple[str, ...]]
NO_GROUPS: tuple[Grouping, ...] = (((), ()),)
GROUPINGS: tuple[Grouping, ...] = (
    (("k",), ("k",)),
    (("k",), ()),  # added up over all keys
    (("k", "g"), ("g",)),  # coarser than the partition
    (("k",), ("g",)),
    ((), ("g", "k")),
)
"""Equivalence and GROUP BY attributes."""


@dataclass(frozen=True)
class Aimed:
    """Which shapes, conjuncts, partitions and windows take part."""

    shapes: tuple[Shape, ...] = PLAIN
    classes: tuple[str, ...] = ("nothing",)
    groupings: tuple[Grouping, ...] = NO_GROUPS
    semantics: tuple[str, ...] = (ANY, ANY, NEXT, CONTIGUOUS)
    windows: bool = True
    most_events: int = 8


@st.composite
def aimed(draw: st.DrawFn, knobs: Aimed) -> Case:
    """An aggregating query and a stream of the types of its pattern."""
    whole = draw(st.sampled_from(knobs.shapes))
    semantics = ANY if whole.only_any else draw(st.sampled_from(knobs.semantics))
    one = draw(st.sampled_from(whole.transitions))
    where = CLASSES[draw(st.sampled_from(knobs.classes))](draw, one, whole)
    equivalence, group_by = draw(st.sampled_from(knobs.groupings))
    where += [f"[{', '.join(equivalence)}]"] if equivalence else []
    listed = draw(st.lists(totals(whole.shown), min_size=1, max_size=4, unique=True))
    having = draw(havings(whole.shown, group_by)) if draw(st.integers(0, 4)) == 0 else None
    clauses = [
        f"RETURN {', '.join([*group_by, *listed])}",
        f"PATTERN {whole.pattern}",
        f"SEMANTICS {semantics}",
        *([f"WHERE {' AND '.join(where)}"] if where else []),
        *([f"GROUP BY {', '.join(group_by)}"] if group_by else []),
        *([f"HAVING {having}"] if having else []),
        *(draw(windows()) if knobs.windows else []),
    ]
    return Case("\n".join(clauses), draw(streams(knobs.most_events, _types(whole))))


def _types(whole: Shape) -> Sequence[str]:
    """The types of the pattern often, those under NOT sometimes, another one rarely."""
    used = sorted(set(whole.types.values()))
    return [*used * 4, *[kind for kind in TYPES if f" {kind}" in whole.pattern.replace("(", " ")], "D"]
