"""Random ranked queries with random streams, each with its scores written down a second time, in plain Python.

Preferences are sums of integers, decimals and doubles with many ties and NULLs, least and greatest values, products,
functions around them, and what is ranked by listing alone; over sequences with Kleene parts and NOT, and over AND, OR
and SEQ of sequences, merged, with windows of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.property.strategies import ANY, ARROW, CONTIGUOUS, NEXT, Row, streams
from tests.property.strategies_decimals import FLAVOURS, arrow_of, in_decimals

TYPES = ("A", "A", "A", "A", "B", "B", "C")
"""Few types, so that there are many matches."""

WINDOWS = ("", "", "", "WITHIN 5", "WITHIN 9", "WITHIN 8 SLIDE 4", "WITHIN 6 SLIDE 6", "WITHIN 5 SLIDE 2")
BOUNDED = ("WITHIN 9", "WITHIN 5", "WITHIN 5", "WITHIN 8 SLIDE 4", "WITHIN 5 SLIDE 2")
ROUGH = [0.1, 0.2, 0.3, -0.1, 1e16, -1e16, 1.7e308, None]
"""Doubles whose sums depend on the order of addition, and overflow."""

Number = int | float | Fraction
Bound = Sequence[tuple[str, Row]]
"""The events of a match in their order, each with its variable."""


@dataclass(frozen=True)
class Component:
    """A variable of a pattern: `plural` can bind several events, `needed` is bound wherever its sequence is."""

    name: str
    text: str
    plural: bool = False
    needed: bool = True


@dataclass(frozen=True)
class Preference:
    """A preference, its variables, its score by plain Python, and conditions without which it means something else."""

    text: str
    variables: frozenset[str]
    score: Callable[[Bound], Number | None]
    kind: str
    where: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operand:
    """A sequence of a pattern, with a WITHIN of its own where `within` says so."""

    components: tuple[Component, ...]
    text: str
    within: int | None = None

    @property
    def ranked(self) -> str:
        return self.text if self.within is None else f"{self.text} WITHIN {self.within}"


@dataclass(frozen=True)
class RankedCase:
    """A ranked query over a stream. `flavour` None: x are integers and y doubles; else see `strategies_decimals`."""

    operands: tuple[Operand, ...]
    connective: str  # AND, OR, SEQ; empty where there is one operand
    clauses: tuple[str, ...]  # SEMANTICS, WHERE, WITHIN
    preferences: tuple[Preference, ...]
    merge: str
    descending: bool
    limit: int
    overall: bool
    returns: str
    events: tuple[Row, ...]
    flavour: str | None = None

    @property
    def query(self) -> str:
        preference = ", ".join(one.text for one in self.preferences)
        preference = f"MERGE({self.merge}, {preference})" if self.merge else preference
        direction, overall = " DESC" if self.descending else "", " OVERALL" if self.overall else ""
        ranking = f"RANK BY {preference}{direction} LIMIT {self.limit}{overall}"
        return "\n".join([f"RETURN {self.returns}", self._pattern(ranked=True), *self.clauses, ranking])

    @property
    def unranked(self) -> str:
        """The query that lists every match, with the windows of operands left out."""
        return "\n".join(["RETURN TRENDS", self._pattern(ranked=False), *self.clauses])

    def _pattern(self, *, ranked: bool) -> str:
        parts = [one.ranked if ranked else one.text for one in self.operands]
        if self.connective:
            return f"PATTERN {self.connective}({', '.join(parts)})"
        return f"PATTERN ({parts[0]})" if self.operands[0].within is not None else f"PATTERN {parts[0]}"

    @property
    def arrow(self) -> pa.Schema:
        return ARROW if self.flavour is None else arrow_of(self.flavour)

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(list(self.events), schema=self.arrow)

    def score(self, bound: Bound) -> Number | None:
        """The score of a match."""
        names = {name for name, _ in bound}
        taken = [one for one in self.preferences if not self.merge or one.variables & names]
        scores = [one.score(bound) for one in taken]
        known = [score for score in scores if score is not None]
        if not known or len(known) < len(scores):
            return None
        if self.merge and "float" in [one.kind for one in self.preferences]:
            known = [float(score) for score in known]
        return merged(self.merge, known) if self.merge else known[0]


def merged(function: str, scores: Sequence[Number]) -> Number | None:
    if function in ("min", "max"):
        return min(scores) if function == "min" else max(scores)
    total = folded(lambda one, other: one + other, scores)
    if function == "sum" or total is None:
        return total
    return total / len(scores) if isinstance(total, float) else float(Fraction(total) / len(scores))


def folded(combine: Callable[[Number, Number], Number], values: Sequence[Number]) -> Number | None:
    """The values from left to right; NULL where that is not a number, or infinite though every value is finite."""
    found, *rest = values
    for value in rest:
        found = combine(found, value)
    return None if isinstance(found, float) and not math.isfinite(found) else found


# ----------------------------------------------------------------------------------------------------- preferences


@dataclass(frozen=True)
class Term:
    """`weight * a.x`, `weight * sum(b[].x)`, or `weight * count(b[])` where `column` is empty."""

    component: Component
    column: str
    weight: str
    function: str = "sum"

    @property
    def text(self) -> str:
        name = self.component.name
        if not self.column:
            return f"{self.weight}count({name}[])"
        attribute = f"{name}[].{self.column}" if self.component.plural else f"{name}.{self.column}"
        return f"{self.weight}{self.function}({attribute})" if self.component.plural else f"{self.weight}{attribute}"

    def value(self, row: Row, kind: str) -> Number | None:
        """What one event gives, as a number of the kind of the whole."""
        value = row[self.column] if self.column else 1
        if value is None:
            return None
        value = float(value) if isinstance(value, float) or kind == "float" else Fraction(value)
        factor = {"": 1, "-": -1, "2 * ": 2, "0.5 * ": Fraction(1, 2)}[self.weight]
        product = value * (float(factor) if isinstance(value, float) else factor)
        return int(product) if kind == "integer" else product


def kind_of(terms: Sequence[Term], flavour: str | None) -> str:
    """In which numbers terms meet."""
    kinds = {term.column: flavour is not None and flavour != "beside doubles" for term in terms if term.column}
    doubles = "y" in kinds and not kinds["y"]
    decimals = flavour is not None and ("x" in kinds or kinds.get("y", False))
    if doubles or (not decimals and any(term.weight.startswith("0.5") for term in terms)):
        return "float"
    return "decimal" if decimals else "integer"


def combined(
    terms: Sequence[Term], kind: str, combine: Callable[[Number, Number], Number], start: Number | None = None
) -> Callable[[Bound], Number | None]:
    """The score that combines what the events of a match give, in their order."""
    of = {term.component.name: term for term in terms}

    def score(bound: Bound) -> Number | None:
        given = [(name, of[name].value(row, kind)) for name, row in bound if name in of]
        known = {name for name, value in given if value is not None}
        if any(term.column and term.component.name not in known for term in terms):
            return None
        values = [value for _, value in given if value is not None]
        return folded(combine, values) if values else start

    return score


@st.composite
def preferences(draw: st.DrawFn, components: Sequence[Component], flavour: str | None) -> Preference:
    """A preference over some of these variables."""
    form = draw(st.sampled_from(["sum"] * 5 + ["around"] * 2 + ["least", "greatest", "product", "seconds"]))
    chosen = draw(st.permutations(components))[: draw(st.integers(1, min(3, len(components))))]
    names = frozenset(one.name for one in chosen)
    if form in ("sum", "around"):
        terms = [draw(summands(one)) for one in chosen]
        text = " + ".join(term.text if term.weight != "-" else f"({term.text})" for term in terms)
        kind = kind_of(terms, flavour)
        found = Preference(text, names, combined(terms, kind, lambda one, other: one + other, 0), kind)
        return found if form == "sum" else draw(surrounded(found))
    if form in ("least", "greatest"):
        function = "min" if form == "least" else "max"
        terms = [Term(one, draw(st.sampled_from("xxy")), "", function) for one in chosen]
        text = ", ".join(term.text for term in terms)
        text = f"{function}({text})" if len(terms) > 1 else text
        kind = kind_of(terms, flavour)
        return Preference(text, names, combined(terms, kind, min if form == "least" else max), kind)
    single = [one for one in components if not one.plural and one.needed]
    if len(single) < 2:
        return draw(preferences(components, flavour).filter(lambda one: one is not None))
    first, second = draw(st.permutations(single))[:2]
    both = frozenset({first.name, second.name})
    if form == "seconds":
        return Preference(f"{second.name}.time - {first.name}.time", both, seconds(first.name, second.name), "integer")
    terms = [Term(one, "x", "") for one in (first, second)]
    kind = kind_of(terms, flavour)
    score = combined(terms, kind, lambda one, other: one * other)
    where = draw(st.sampled_from([(), tuple(f"{one.name}.x >= 0" for one in (first, second))]))
    return Preference(" * ".join(term.text for term in terms), both, score, kind, where)


@st.composite
def summands(draw: st.DrawFn, component: Component) -> Term:
    weight = draw(st.sampled_from(["", "", "", "-", "2 * ", "0.5 * "]))
    column = draw(st.sampled_from("xxxy"))
    return Term(component, "" if component.plural and draw(st.integers(0, 3)) == 0 else column, weight)


@st.composite
def surrounded(draw: st.DrawFn, inner: Preference) -> Preference:
    """A function around a preference, or a constant beside it."""
    around: list[tuple[str, str, Callable[[Any], Number]]] = [
        ("({}) + 3", inner.kind, lambda value: value + 3),
        ("sqrt({})", "float", math.sqrt),
        ("({}) / 2", "float", lambda value: value / 2 if isinstance(value, float) else float(Fraction(value) / 2)),
        ("floor({})", "integer", math.floor),
    ]
    text, kind, function = draw(st.sampled_from(around))

    def score(bound: Bound) -> Number | None:
        value = inner.score(bound)
        if value is None or ("sqrt" in text and value < 0):
            return None
        return function(value)

    return replace(inner, text=text.format(inner.text), score=score, kind=kind)


def seconds(first: str, second: str) -> Callable[[Bound], Number | None]:
    def score(bound: Bound) -> Number | None:
        times = {name: row["time"] for name, row in bound}
        return times[second] - times[first] if first in times and second in times else None

    return score


# -------------------------------------------------------------------------------------------------------- patterns


@st.composite
def operands(draw: st.DrawFn, first: int, most: int, *, sealed: bool, windows: bool) -> Operand:
    """A sequence. `sealed`: nothing but components and NOTs between them, as inside an AND."""
    count = draw(st.integers(1, most))
    components = tuple(draw(written(first + number)) for number in range(count))
    parts: list[str] = []
    for number, component in enumerate(components):
        parts.append(component.text)
        if number < count - 1 and draw(st.integers(0, 4)) == 0:
            parts.append(f"NOT {draw(st.sampled_from(sorted(TYPES, reverse=True)))}")
    if sealed and not any(one.needed for one in components):
        components = (replace(components[0], needed=True), *components[1:])
        parts[0] = parts[0].rstrip("?")
    within = draw(st.sampled_from([None, None, None, 3, 5, 8] if windows else [None] * 5 + [4]))
    return Operand(components, f"SEQ({', '.join(parts)})", within)


@st.composite
def written(draw: st.DrawFn, number: int) -> Component:
    name, form = f"v{number}", draw(st.sampled_from(["one"] * 4 + ["kleene", "kleene", "optional"]))
    text = f"{draw(st.sampled_from(TYPES))} {name}"
    if form == "kleene":
        return Component(name, f"{text}+", plural=True)
    return Component(name, f"{text}?", needed=False) if form == "optional" else Component(name, text)


@dataclass(frozen=True)
class Rankings:
    """What ranked queries may hold."""

    semantics: tuple[str, ...] = (ANY, ANY, NEXT, CONTIGUOUS)
    joined: bool = False
    flavours: tuple[str | None, ...] = (None,)
    rough: bool = False
    blank: bool = False  # half of the values are NULL, and a partition has no event of the pattern
    most_events: int = 10


@st.composite
def ranked_cases(draw: st.DrawFn, rankings: Rankings) -> RankedCase:
    """A ranked query and a stream of few types."""
    semantics = draw(st.sampled_from(rankings.semantics))
    connective = draw(st.sampled_from(["AND", "OR", "SEQ"] if semantics == ANY else ["OR", "SEQ"]))
    connective = connective if rankings.joined else ""
    found: list[Operand] = []
    for _ in range(draw(st.sampled_from([2, 2, 2, 3])) if connective else 1):
        first = sum(len(one.components) for one in found)
        most = 2 if connective else 3
        found.append(draw(operands(first, most, sealed=bool(connective), windows=bool(connective))))
    window = draw(st.sampled_from(BOUNDED if rankings.blank else WINDOWS))
    found = [replace(one, within=_fitting(one.within, window)) for one in found]
    flavour = draw(st.sampled_from(rankings.flavours))
    several = [draw(preferences(one.components, flavour)) for one in found]
    everything = [component for one in found for component in one.components]
    merge = draw(st.sampled_from(["avg", "min", "max", "sum"])) if connective and draw(st.integers(0, 2)) else ""
    chosen = several if merge else [draw(preferences(everything, flavour))]
    partition = draw(st.sampled_from(["k"] if rankings.blank else ["", "k"]))
    conditions = [f"[{partition}]"] if partition else []
    conditions += draw(conditions_on(everything)) + [text for one in chosen for text in one.where]
    where = [f"WHERE {' AND '.join(conditions)}"] if conditions else []
    events = draw(streams(rankings.most_events, TYPES).filter(lambda rows: len(rows) > rankings.most_events // 2))
    if partition:
        keys = [1, 1, 1, 2] if rankings.blank else [1, 2]
        events = tuple({**row, "k": draw(st.sampled_from(keys))} for row in events)
    if rankings.blank:
        changes: list[Row] = [{}, {}, {"x": None}, {"x": None, "y": None}, {"k": 3, "type": "D"}]
        events = tuple({**row, **draw(st.sampled_from(changes))} for row in events)
    if rankings.rough:
        events = tuple({**row, "y": draw(st.sampled_from(ROUGH))} for row in events)
    shown = draw(st.sampled_from(everything)).name
    return RankedCase(
        tuple(found),
        connective,
        tuple(clause for clause in (f"SEMANTICS {semantics}", *where, window) if clause),
        tuple(chosen),
        merge,
        draw(st.booleans()),
        draw(st.sampled_from([1, 1, 2, 5] if rankings.blank else [2, 1, 3, 5, 20])),
        draw(st.sampled_from([True, False, bool(partition)])),
        draw(st.sampled_from(["TRENDS", "TRENDS", f"{shown}[first].x AS first, count({shown}[]) AS n"])),
        events if flavour is None else in_decimals(events, flavour),
        flavour,
    )


def _fitting(within: int | None, window: str) -> int | None:
    return within if within is None or not window else min(within, int(window.split()[1]))


@st.composite
def conditions_on(draw: st.DrawFn, components: Sequence[Component]) -> list[str]:
    """Few conditions: each one loses matches."""
    plural = [one.name for one in components if one.plural]
    found = []
    if plural and draw(st.integers(0, 2)) == 0:
        name = draw(st.sampled_from(plural))
        found.append(f"{name}.x <= NEXT({name}).x")
    single = [one.name for one in components if not one.plural]
    if len(single) > 1 and draw(st.integers(0, 3)) == 0:
        first, second = draw(st.permutations(single))[:2]
        found.append(f"{first}.x {draw(st.sampled_from(['<=', '!=', '>']))} {second}.x")
    return found


KINDS = {
    "sequences": Rankings(),
    "decimals": Rankings(flavours=FLAVOURS),
    "rough doubles": Rankings(rough=True),
    "NULL scores": Rankings(blank=True),
    "joined": Rankings(joined=True),
    "joined NULL scores": Rankings(joined=True, blank=True),
    "joined decimals": Rankings(joined=True, flavours=FLAVOURS, semantics=(ANY,)),
}
"""Ranked queries by what they are about."""
