"""Queries for the dynamic program: patterns, predicates and windows as small values that also write themselves as text.

The text goes to the engine, the value to `dynamic.answers`. Positions and their order (Glushkov, "The abstract theory
of automata") are worked out here, apart from the engine's own templates: an oracle that shares code proves nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]

ANY, NEXT, CONTIGUOUS = "skip-till-any-match", "skip-till-next-match", "contiguous"

# ---------------------------------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class One:
    """An event of a type, bound to a variable; without a name the type is the variable."""

    type: str
    name: str | None = None

    @property
    def variable(self) -> str:
        return self.name or self.type

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else self.type


@dataclass(frozen=True)
class Not:
    """No event of a type at this place of a `Seq`. Unnamed, it shares the variable of its type."""

    type: str
    name: str | None = None

    def __str__(self) -> str:
        return f"NOT {self.type} {self.name}" if self.name else f"NOT {self.type}"


@dataclass(frozen=True)
class Seq:
    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"SEQ({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Either:
    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"OR({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Plus:
    body: Pattern

    def __str__(self) -> str:
        return f"({self.body})+"


@dataclass(frozen=True)
class Maybe:
    body: Pattern

    def __str__(self) -> str:
        return f"({self.body})?"


Pattern = One | Not | Seq | Either | Plus | Maybe


@dataclass(frozen=True)
class Compare:
    """`first.left op NEXT(second).right`, for all adjacent events bound to these variables; NULL is never true."""

    first: str
    left: str
    op: str
    second: str
    right: str

    def __str__(self) -> str:
        return f"{self.first}.{self.left} {self.op} NEXT({self.second}).{self.right}"

    def holds(self, before: Event, after: Event) -> bool:
        left, right = before[self.left], after[self.right]
        return left is not None and right is not None and bool(OPERATORS[self.op](left, right))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Adjacent:
    """Any other condition on two adjacent events: its text, and the function that decides it."""

    first: str
    second: str
    text: str
    test: Callable[[Event, Event], bool]

    def __str__(self) -> str:
        return self.text

    def holds(self, before: Event, after: Event) -> bool:
        return self.test(before, after)


@dataclass(frozen=True)
class Local:
    """A condition on every event of a variable."""

    variable: str
    text: str
    test: Callable[[Event], bool]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Query:
    """Aggregates of `of.column` over all matches, by window and, if `grouped`, by key."""

    pattern: Pattern
    semantics: str = ANY
    adjacent: tuple[Compare | Adjacent, ...] = ()
    local: tuple[Local, ...] = ()
    key: str | None = None
    grouped: bool = True
    within: int | None = None
    slide: int | None = None
    of: str = "A"
    column: str = "x"

    @property
    def text(self) -> str:
        where = [*([f"[{self.key}]"] if self.key else []), *map(str, (*self.adjacent, *self.local))]
        grouped = self.key is not None and self.grouped
        lines = [
            f"RETURN {', '.join(f'{total} AS {name}' for name, total in self.totals.items())}",
            f"PATTERN {self.pattern}",
            f"SEMANTICS {self.semantics}",
            f"WHERE {' AND '.join(where)}" if where else "",
            f"GROUP BY {self.key}" if grouped else "",
            f"WITHIN {self.within} SLIDE {self.slide or self.within}" if self.within else "",
        ]
        return "\n".join(line for line in lines if line)

    @property
    def totals(self) -> dict[str, str]:
        """What is returned, under the names that a `Tally` has."""
        value = f"{self.of}.{self.column}"
        return {
            "matches": "COUNT(*)",
            "occurrences": f"COUNT({self.of})",
            "values": f"COUNT({value})",
            "total": f"SUM({value})",
            "least": f"MIN({value})",
            "greatest": f"MAX({value})",
            "mean": f"AVG({value})",
        }


# ---------------------------------------------------------------------------------------------- positions of a pattern

Ways = frozenset[frozenset[str]]
"""Ways to get from one place to another, each by the types that are forbidden on it: one way must be free."""
FREE: Ways = frozenset({frozenset()})
NOWHERE: Ways = frozenset()


@dataclass(frozen=True)
class Template:
    """Where a match may start and end, which position may follow which, and how nothing at all may be bound."""

    first: dict[int, Ways]
    last: dict[int, Ways]
    follow: dict[tuple[int, int], Ways]
    empty: Ways
    atoms: dict[int, One] = field(default_factory=dict)


def template_of(pattern: Pattern, number: int = 0) -> Template:
    """Glushkov's construction, with the NOTs that lie on each edge. Positions count from `number`."""
    match pattern:
        case One():
            return Template({number: FREE}, {number: FREE}, {}, NOWHERE, {number: pattern})
        case Not(type=forbidden):
            return Template({}, {}, {}, frozenset({frozenset({forbidden})}))
        case Seq(parts):
            whole = Template({}, {}, {}, FREE)
            for part in parts:
                whole = _one_after_another(whole, template_of(part, number + len(whole.atoms)))
            return whole
        case Either(parts):
            whole = Template({}, {}, {}, NOWHERE)
            for part in parts:
                whole = _either(whole, template_of(part, number + len(whole.atoms)))
            return whole
        case Plus(body):
            inner = template_of(body, number)
            again = _joined(inner.last, inner.first)
            follow = {edge: inner.follow.get(edge, NOWHERE) | ways for edge, ways in again.items()}
            return Template(inner.first, inner.last, inner.follow | follow, inner.empty, inner.atoms)
        case Maybe(body):
            inner = template_of(body, number)
            return Template(inner.first, inner.last, inner.follow, inner.empty | FREE, inner.atoms)


def _one_after_another(p: Template, q: Template) -> Template:
    first = p.first | {at: found for at, ways in q.first.items() if (found := _both(p.empty, ways))}
    last = q.last | {at: found for at, ways in p.last.items() if (found := _both(ways, q.empty))}
    follow = p.follow | q.follow | _joined(p.last, q.first)
    return Template(first, last, follow, _both(p.empty, q.empty), p.atoms | q.atoms)


def _either(p: Template, q: Template) -> Template:
    return Template(p.first | q.first, p.last | q.last, p.follow | q.follow, p.empty | q.empty, p.atoms | q.atoms)


def _joined(last: dict[int, Ways], first: dict[int, Ways]) -> dict[tuple[int, int], Ways]:
    return {(i, j): _both(end, start) for i, end in last.items() for j, start in first.items()}


def _both(one: Ways, other: Ways) -> Ways:
    return frozenset(a | b for a in one for b in other)


def the_way(ways: Ways) -> frozenset[str]:
    """The types forbidden on an edge. A way that forbids more than another one adds nothing."""
    weakest = [way for way in ways if not any(other < way for other in ways)]
    if len(weakest) != 1:
        raise ValueError("NOTs of which one or the other may fail are beyond this oracle")
    return weakest[0]
