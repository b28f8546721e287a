"""Random nested queries: SEQ, AND, OR, EXISTS and NOT inside one another, with conditions between the levels.

Conditions are written at components and use variables of the same level and of those around it, mostly as equalities
of few values, so that NOTs hold for some matches and fail for others. In a third of the queries every component equals
another one, the way in which tools, cards and orders are followed.

What EXISTS hides is often optional or repeated, and often nothing compares the components outside NOT: only then does
a plan leave hidden components out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from tests.property.strategies import ANY, NEXT, Case, streams

TYPES = ("A", "B", "C")
WINDOWS = ("", "", "WITHIN 5", "WITHIN 8", "WITHIN 12 SLIDE 4", "WITHIN 8 SLIDE 8", "WITHIN 6 SLIDE 3")

ODDS = {"leading": 3, "inside": 16, "trailing": 16}
"""How often a NOT stands at each place of a SEQ, in 24."""
ODDS_OF_OPTIONAL = {"leading": 8, "inside": 6, "trailing": 18}
"""The same outside NOT where hidden components are optional."""


@dataclass(frozen=True)
class Nesting:
    """What nested queries may hold. `depth`: how many levels of SEQ and NOT are inside one another, at most."""

    depth: int = 4
    semantics: tuple[str, ...] = (ANY,)
    returns: tuple[str, ...] = ("TRENDS",)
    kleene: bool = True
    unordered: bool = False  # AND and OR
    exists: bool = False  # EXISTS hides one or two components, not all
    optional: bool = False  # hidden components may be missing or repeated; NOTs lead and trail, and are few in between
    counts: bool = False  # count(b[]) of a Kleene variable
    everywhere: bool = False  # every component equals another one
    apart: bool = False  # no condition speaks of hidden components, few NOTs are beside them: they can be left out
    most_components: int = 6


@dataclass
class _Writer:
    """Writes one pattern. `mine`, `around`: variables of this level's scope, and of those around it.

    `hidden`: the variables for EXISTS, where it is to be optional; `inside`: how many NOTs are around what is written.
    """

    draw: st.DrawFn
    nesting: Nesting
    column: str
    left: int
    names: int = 0
    first: str | None = None
    kleene: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    inside: int = 0

    def sequence(self, depth: int, around: tuple[str, ...], *, sealed: bool = False) -> tuple[str, tuple[str, ...]]:
        """A SEQ, and the variables that it binds."""
        mine: tuple[str, ...] = ()
        parts: list[str] = []
        whole = self.first is None
        count = self.draw(st.integers(2 if sealed or (whole and self.nesting.exists) else 1, 3))
        for number in range(count):
            text, names = self.component(depth, (*mine, *around), sealed=sealed)
            mine += names
            parts.append(text)
            place = "inside" if number < count - 1 else "trailing"
            if not (sealed and place == "trailing") and self.has_negation(place, depth, names[-1]):
                parts.append(f"NOT {self.negated(depth - 1, (*mine, *around))}")
        if not sealed and self.has_negation("leading", depth, mine[0]):
            parts.insert(0, f"NOT {self.negated(depth - 1, (*mine, *around))}")
        return (f"SEQ({', '.join(parts)})" if len(parts) > 1 else parts[0]), mine

    def has_negation(self, place: str, depth: int, beside: str) -> bool:
        """Whether a NOT is written beside a variable: "leading", "inside" or "trailing" in its SEQ."""
        hiding = self.nesting.optional and not self.inside
        if self.nesting.apart and beside in self.hidden:
            return False
        odds = ODDS_OF_OPTIONAL if hiding else ODDS
        return depth > 0 and (self.left > 0 or hiding) and self.draw(st.integers(1, 24)) > 24 - odds[place]

    def component(self, depth: int, visible: tuple[str, ...], *, sealed: bool) -> tuple[str, tuple[str, ...]]:
        shapes = ["event"] * 4
        if depth > 0 and self.left > 1:
            shapes += ["sequence"] + (["or", "and"] if self.nesting.unordered and not sealed else [])
        shape = self.draw(st.sampled_from(shapes))
        if shape == "event":
            return self.event(visible, may_repeat=self.nesting.kleene and not sealed)
        if shape == "sequence":
            text, names = self.sequence(depth - 1, visible, sealed=sealed)
            if self.nesting.optional and self.nesting.kleene and not self.inside and self.draw(st.integers(0, 3)) == 0:
                self.kleene.extend(names)
                return f"({text}){self.draw(st.sampled_from(['?', '+', '*']))}", names
            return text, names
        parts = [self.sequence(0, visible, sealed=False) for _ in range(2)]
        names = tuple(name for _, mine in parts for name in mine)
        return f"{shape.upper()}({parts[0][0]}, {parts[1][0]})", names

    def negated(self, depth: int, around: tuple[str, ...]) -> str:
        if self.nesting.apart:  # what a NOT compares with is not left out
            around = tuple(name for name in around if name not in self.hidden)
        self.inside += 1
        if depth <= 0 or self.left <= 1 or self.draw(st.integers(0, 1)) == 0:
            text, _ = self.event(around, may_repeat=False)
        else:
            text, _ = self.sequence(depth, around)
        self.inside -= 1
        return text if text.startswith("SEQ") else f"SEQ({text})" if text.startswith("NOT") else text

    def event(self, visible: tuple[str, ...], *, may_repeat: bool) -> tuple[str, tuple[str, ...]]:
        draw = self.draw
        self.left -= 1
        name, kind = f"v{self.names}", draw(st.sampled_from(TYPES))
        self.names += 1
        text = f"({kind} {name}{self.predicate(name, visible)})"
        self.first = self.first or name
        if self.nesting.optional and not self.inside and len(self.hidden) < 2 and draw(st.integers(0, 1)) == 0:
            self.hidden.append(name)
            self.kleene.append(name)
            return f"{text}{draw(st.sampled_from(['?', '*', '{0,2}', '?', '*', '+']))}", (name,)
        if may_repeat and draw(st.integers(0, 3)) == 0:
            self.kleene.append(name)
            return f"{text}{draw(st.sampled_from(['+', '+', '+', '?', '{1,2}']))}", (name,)
        return text, (name,)

    def predicate(self, name: str, visible: tuple[str, ...]) -> str:
        if self.nesting.apart and not self.inside:
            return f": {name}.x > 0" if self.draw(st.integers(0, 3)) == 0 else ""
        if self.nesting.everywhere and visible:
            other = self.draw(st.sampled_from(visible))
            return f": {name}.{self.column} = {other}.{self.column}"
        form = self.draw(st.integers(0, 5))
        if form > 3 or not visible:
            return f": {name}.x > 0" if form == 5 else ""
        other = self.draw(st.sampled_from(visible))
        column = self.draw(st.sampled_from([self.column, self.column, "k", "x"]))
        if form < 2:
            return f": {name}.{column} = {other}.{column}"
        operator = self.draw(st.sampled_from(["<", "<=", ">", ">=", "!="]))
        return f": {name}.x {operator} {other}.{self.draw(st.sampled_from(['x', 'x', 'y']))}"


@st.composite
def nested_queries(draw: st.DrawFn, nesting: Nesting) -> str:
    """The text of a nested query."""
    writer = _Writer(
        draw, nesting, draw(st.sampled_from(["k", "k", "g"])), draw(st.integers(2, nesting.most_components))
    )
    pattern, names = writer.sequence(nesting.depth, ())
    hidden = [name for name in writer.hidden if name in names][: len(names) - 1]
    if nesting.exists and not hidden:
        hidden = [draw(st.sampled_from(names))]
    for name in hidden:
        pattern = f"EXISTS {name} ({pattern})"
    where = []
    if len(names) > 1 and not nesting.apart and draw(st.integers(0, 3)) == 0:
        first, second = draw(st.permutations(names))[:2]
        where.append(f"{first}.{writer.column} = {second}.{writer.column}")
    plural = [name for name in writer.kleene if name in names]
    if nesting.counts and plural:
        low = draw(st.integers(1, 3))
        form = draw(st.sampled_from(["count({n}[]) >= {k}", "count({n}[]) = {k}", "count({n}[]) <= {k}",
                                     "count({n}[]) < {k}", "count({n}[]) BETWEEN {k} AND 3"]))  # fmt: skip
        where.append(form.format(n=draw(st.sampled_from(plural)), k=low))
    returns = draw(st.sampled_from(nesting.returns))
    shown = [name for name in names if name not in hidden]
    clauses = [
        f"RETURN {returns.format(v=draw(st.sampled_from(shown)))}",
        f"PATTERN {pattern}",
        f"SEMANTICS {draw(st.sampled_from(nesting.semantics))}",
        *([f"WHERE {' AND '.join(where)}"] if where else []),
        draw(st.sampled_from(WINDOWS)),
    ]
    return "\n".join(clauses)


@st.composite
def nested_cases(draw: st.DrawFn, nesting: Nesting) -> Case:
    """A nested query and a stream of few types."""
    nesting = replace(nesting, everywhere=draw(st.integers(0, 2)) == 0)
    if nesting.optional:
        plain = draw(st.integers(0, 3)) > 0
        nesting = replace(nesting, apart=plain, kleene=not plain)
    return Case(draw(nested_queries(nesting)), draw(streams(11, TYPES)))


def hides_optional_beside_not(query: str) -> bool:
    """Whether EXISTS hides a component that may be missing or repeated, in a pattern with NOT."""
    hidden = re.findall(r"EXISTS (v\d+) ", query)
    repeated = re.findall(r"\(\w (v\d+)[^()]*\)[?*+{]", query)
    return "NOT " in query and not set(hidden).isdisjoint(repeated)


AGGREGATES = ("COUNT(*)", "COUNT(*), SUM({v}.x)", "COUNT({v}), MIN({v}.x), MAX({v}.y)", "AVG({v}.x), COUNT(*)")

KINDS = {
    "rows": Nesting(unordered=True),
    "runs": Nesting(semantics=(NEXT, NEXT, "contiguous"), counts=True),
    "aggregates": Nesting(returns=AGGREGATES, semantics=(ANY, ANY, NEXT), depth=3),
    "complete and collapsed": Nesting(returns=("COMPLETE TRENDS", "COLLAPSED TRENDS"), depth=2),
    "counted in the pattern": Nesting(counts=True, semantics=(ANY, ANY, NEXT, "contiguous"), depth=1,
                                      returns=("TRENDS", "COUNT(*)", "count({v}[])", "COUNT({v}), MAX({v}.x)")),
    "exists": Nesting(exists=True, depth=2, semantics=(ANY, ANY, NEXT), returns=("TRENDS", *AGGREGATES[:3])),
    "optional and hidden": Nesting(exists=True, optional=True, depth=2, most_components=5,
                                   semantics=(ANY, ANY, ANY, ANY, NEXT),
                                   returns=("TRENDS", "TRENDS", "TRENDS", "COUNT(*)", "COUNT(*), SUM({v}.x)")),
}  # fmt: skip
"""Nested queries by what they are about."""
