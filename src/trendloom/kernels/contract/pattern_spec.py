"""What a detection kernel receives: a pattern as tables, conditions as rules, free of plans and engines.

A specification is frozen and picklable, so it travels to Spark's workers as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from trendloom.expr.nodes import Comparison, Expr
from trendloom.expr.quantifiers import Shape, shape_of
from trendloom.model.time import Window
from trendloom.pattern.template import Template


@dataclass(frozen=True)
class PatternPosition:
    """A position of the pattern: what it binds, where it stands."""

    type: str
    variable: str
    scope: int
    parts: tuple[int, ...]  # Kleene, Round and AND parts around it
    branch: tuple[tuple[int, int], ...]  # (AND part, which of its operands) around it


@dataclass(frozen=True)
class Rule:
    """A conjunct on more than one event; see `logical.plan.Condition`."""

    expr: Expr
    part: int | None
    early: bool = True  # decided on partial matches as soon as its events are bound
    looked_up: bool = False  # an equality whose events are looked up by value
    short_cut: bool = False  # an equality whose values are known before its events are bound

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.expr)


@dataclass(frozen=True)
class NegationGuard:
    """A NOT whose matches depend on nothing outside but one event next to it, its *neighbour*.

    `follows`: the neighbour is bound after the NOT, else before it; `positions` are those where it is bound. `links`
    compare an expression of an event of the NOT (left) with one of the neighbour (right); every event of a match passes
    all of them. Leaves are attributes of the one event they are evaluated on. See `borders`.
    """

    template: Template
    follows: bool
    positions: tuple[int, ...]
    links: tuple[Comparison, ...]


@dataclass(frozen=True)
class Scope:
    """The pattern (scope 0) or one NOT: its template and the rules on its matches.

    `outer`: variables of enclosing scopes that the rules here or in NOTs inside use. `negation_guard`: all of that
    is one event next to the NOT. `like`: the first NOT with the same matches, if that is another one.
    """

    number: int
    parent: int
    template: Template
    rules: tuple[Rule, ...]
    outer: frozenset[str]
    parts: tuple[int, ...] = ()  # Kleene, Round and AND parts around the NOT
    branch: tuple[tuple[int, int], ...] = ()  # (AND part, which of its operands) around the NOT
    negation_guard: NegationGuard | None = None
    like: int | None = None

    @property
    def first_alike(self) -> int:
        return self.number if self.like is None else self.like

    @property
    def waits(self) -> bool:
        """Whether it is decided for each match around it, not for the two events around it."""
        return bool(self.outer) and self.negation_guard is None

    @property
    def open_ended(self) -> bool:
        """Its matches depend on where the gap begins or ends: a leading or trailing NOT of its own."""
        leading = any(edge.crossings for edge in self.template.starts)
        return leading or any(way for ways in self.template.accepts for way in ways)


@dataclass(frozen=True)
class PatternSpec:
    """All matches of a pattern. `adjacent`: only events with nothing between; `earliest`: only the next that fits.

    `hidden`: positions of EXISTS, whose events are matched and then left out; equal remainders are one match.
    """

    places: tuple[PatternPosition, ...]
    scopes: tuple[Scope, ...]
    window: Window
    earliest: bool = False
    adjacent: bool = False
    plural: frozenset[str] = frozenset()
    sieves: tuple[Sieve, ...] = ()
    hidden: frozenset[int] = frozenset()

    def without_rules(self) -> PatternSpec:
        """The same pattern without the conditions on its matches; those of NOTs stay."""
        first, *others = self.scopes
        return replace(self, scopes=(replace(first, rules=()), *others))

    def positions(self, scope: int | None, variable: str) -> tuple[int, ...]:
        """The positions at which a scope itself binds a variable."""
        places = enumerate(self.places)
        return tuple(at for at, place in places if place.scope == scope and place.variable == variable)

    def hides(self, variable: str) -> bool:
        """Whether EXISTS hides a variable of the match."""
        return any(self.places[position].variable == variable for position in self.hidden)

    def binds(self, scope: int, variable: str) -> int | None:
        """The scope, this one or the nearest around it, that binds a variable."""
        while True:
            if any(place.scope == scope and place.variable == variable for place in self.places):
                return scope
            if scope == 0:
                return None
            scope = self.scopes[scope].parent


@dataclass(frozen=True)
class Pair:
    """A comparison `left(e) operator right(f)` of two consecutive events of a run, on the steps where it applies.

    Leaves of `left` and `right` are attributes of the one event they are evaluated on. `steps` are (state before,
    step).
    """

    left: Expr
    operator: str
    right: Expr
    steps: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class EmptyGap:
    """No match of a NOT lies between two consecutive events of a run, on the steps that cross it.

    Like a pair, `left(e) operator right(f)`, of two columns that are computed (see `borders`).
    """

    negation_guard: NegationGuard
    steps: frozenset[tuple[int, int]]

    @property
    def operator(self) -> str:
        return ">" if self.negation_guard.follows else ">="


Compared = Pair | EmptyGap
"""What compares a column of one event with a column of the next."""


@dataclass(frozen=True)
class Sieve:
    """The steps of the pair can bind event f only if the pair is true of some earlier event e at these positions.

    A necessary condition, used to discard events early; a rule of the pattern still decides.
    """

    pair: Pair
    positions: tuple[int, ...]
