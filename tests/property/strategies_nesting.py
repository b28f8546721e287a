"""Random nested queries: SEQ, AND, OR, EXISTS and NOT inside one another, with conditions between the levels.

Conditions are written at components and use variables of the same level and of those around it, mostly as equalities
of few values, so that NOTs hold for some matches and fail for others. In a third of the queries every component equals
another one, the way in which tools, cards and orders are followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from tests.property.strategies import ANY, NEXT, Case, streams

TYPES = ("A", "B", "C")
WINDOWS = ("", "", "WITHIN 5", "WITHIN 8", "WITHIN 12 SLIDE 4", "WITHIN 8 SLIDE 8", "WITHIN 6 SLIDE 3")


@dataclass(frozen=True)
class Nesting:
    """What nested queries may hold. `depth`: how many levels of SEQ and NOT are inside one another, at most."""

    depth: int = 4
    semantics: tuple[str, ...] = (ANY,)
    returns: tuple[str, ...] = ("TRENDS",)
    kleene: bool = True
    unordered: bool = False  # AND and OR
    exists: bool = False
    counts: bool = False  # count(b[]) of a Kleene variable
    everywhere: bool = False  # every component equals another one
    most_components: int = 6


@dataclass
class _Writer:
    """Writes one pattern. `mine`, `around`: variables of this level's scope, and of those around it."""

    draw: st.DrawFn
    nesting: Nesting
    column: str
    left: int
    names: int = 0
    first: str | None = None
    kleene: list[str] = field(default_factory=list)

    def sequence(self, depth: int, around: tuple[str, ...], *, sealed: bool = False) -> tuple[str, tuple[str, ...]]:
        """A SEQ, and the variables that it binds."""
        mine: tuple[str, ...] = ()
        parts: list[str] = []
        count = self.draw(st.integers(1 if not sealed else 2, 3))
        for number in range(count):
            text, names = self.component(depth, (*mine, *around), sealed=sealed)
            mine += names
            parts.append(text)
            inside = not sealed or number < count - 1
            if inside and depth > 0 and self.left > 0 and self.draw(st.integers(0, 2)) > 0:
                parts.append(f"NOT {self.negated(depth - 1, (*mine, *around))}")
        if not sealed and depth > 0 and self.left > 0 and self.draw(st.integers(0, 7)) == 0:
            parts.insert(0, f"NOT {self.negated(depth - 1, (*mine, *around))}")
        return (f"SEQ({', '.join(parts)})" if len(parts) > 1 else parts[0]), mine

    def component(self, depth: int, visible: tuple[str, ...], *, sealed: bool) -> tuple[str, tuple[str, ...]]:
        shapes = ["event"] * 4
        if depth > 0 and self.left > 1:
            shapes += ["sequence"] + (["or", "and"] if self.nesting.unordered and not sealed else [])
        shape = self.draw(st.sampled_from(shapes))
        if shape == "event":
            return self.event(visible, may_repeat=self.nesting.kleene and not sealed)
        if shape == "sequence":
            return self.sequence(depth - 1, visible, sealed=sealed)
        parts = [self.sequence(0, visible, sealed=False) for _ in range(2)]
        names = tuple(name for _, mine in parts for name in mine)
        return f"{shape.upper()}({parts[0][0]}, {parts[1][0]})", names

    def negated(self, depth: int, around: tuple[str, ...]) -> str:
        if depth <= 0 or self.left <= 1 or self.draw(st.integers(0, 1)) == 0:
            return self.event(around, may_repeat=False)[0]
        text, _ = self.sequence(depth, around)
        return text if text.startswith("SEQ") else f"SEQ({text})" if text.startswith("NOT") else text

    def event(self, visible: tuple[str, ...], *, may_repeat: bool) -> tuple[str, tuple[str, ...]]:
        draw = self.draw
        self.left -= 1
        name, kind = f"v{self.names}", draw(st.sampled_from(TYPES))
        self.names += 1
        text = f"({kind} {name}{self.predicate(name, visible)})"
        self.first = self.first or name
        if may_repeat and draw(st.integers(0, 3)) == 0:
            self.kleene.append(name)
            return f"{text}{draw(st.sampled_from(['+', '+', '+', '?', '{1,2}']))}", (name,)
        return text, (name,)

    def predicate(self, name: str, visible: tuple[str, ...]) -> str:
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
    if nesting.exists and len(names) > 1:
        pattern = f"EXISTS {draw(st.sampled_from(names))} ({pattern})"
    where = []
    if len(names) > 1 and draw(st.integers(0, 3)) == 0:
        first, second = draw(st.permutations(names))[:2]
        where.append(f"{first}.{writer.column} = {second}.{writer.column}")
    plural = [name for name in writer.kleene if name in names]
    if nesting.counts and plural:
        low = draw(st.integers(1, 3))
        form = draw(st.sampled_from(["count({n}[]) >= {k}", "count({n}[]) = {k}", "count({n}[]) <= {k}",
                                     "count({n}[]) < {k}", "count({n}[]) BETWEEN {k} AND 3"]))  # fmt: skip
        where.append(form.format(n=draw(st.sampled_from(plural)), k=low))
    returns = draw(st.sampled_from(nesting.returns))
    shown = [name for name in names if f"EXISTS {name} " not in pattern]
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
    return Case(draw(nested_queries(nesting)), draw(streams(11, TYPES)))


AGGREGATES = ("COUNT(*)", "COUNT(*), SUM({v}.x)", "COUNT({v}), MIN({v}.x), MAX({v}.y)", "AVG({v}.x), COUNT(*)")

KINDS = {
    "rows": Nesting(unordered=True),
    "runs": Nesting(semantics=(NEXT, NEXT, "contiguous"), counts=True),
    "aggregates": Nesting(returns=AGGREGATES, semantics=(ANY, ANY, NEXT), depth=3),
    "complete and collapsed": Nesting(returns=("COMPLETE TRENDS", "COLLAPSED TRENDS"), depth=2),
    "counted in the pattern": Nesting(counts=True, semantics=(ANY, ANY, NEXT, "contiguous"), depth=1,
                                      returns=("TRENDS", "COUNT(*)", "count({v}[])", "COUNT({v}), MAX({v}.x)")),
    "exists": Nesting(exists=True, depth=2, semantics=(ANY, ANY, NEXT), returns=("TRENDS", *AGGREGATES[:3])),
}  # fmt: skip
"""Nested queries by what they are about."""
