"""What a detection kernel receives: a pattern as tables, conditions as rules, free of plans and engines.

A specification is frozen and picklable, so it travels to Spark's workers as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from trendloom.expr.nodes import Expr
from trendloom.expr.shape import Shape, shape_of
from trendloom.model.window import Window
from trendloom.pattern.template import Template


@dataclass(frozen=True)
class Place:
    """A position of the pattern: what it binds, where it stands."""

    type: str
    variable: str
    scope: int
    parts: tuple[int, ...]  # Kleene, Round and AND parts around it
    branch: tuple[tuple[int, int], ...]  # (AND part, which of its operands) around it


@dataclass(frozen=True)
class Rule:
    """A conjunct that speaks of more than one event; see `plan.logical.Condition`."""

    expr: Expr
    part: int | None

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.expr)


@dataclass(frozen=True)
class Scope:
    """The pattern (scope 0) or one NOT: its template and the rules on its matches.

    `outer`: variables of enclosing scopes that the rules here or in NOTs inside use.
    """

    number: int
    parent: int
    template: Template
    rules: tuple[Rule, ...]
    outer: frozenset[str]
    parts: tuple[int, ...] = ()  # Kleene, Round and AND parts around the NOT
    branch: tuple[tuple[int, int], ...] = ()  # (AND part, which of its operands) around the NOT

    @property
    def open_ended(self) -> bool:
        """Its matches depend on where the gap begins or ends: a leading or trailing NOT of its own."""
        leading = any(edge.crossings for edge in self.template.starts)
        return leading or any(way for ways in self.template.accepts for way in ways)


@dataclass(frozen=True)
class Detection:
    """All matches of a pattern. `adjacent`: only events with nothing between; `earliest`: only the next that fits.

    `hidden`: positions of EXISTS, whose events are matched and then left out; equal remainders are one match.
    """

    places: tuple[Place, ...]
    scopes: tuple[Scope, ...]
    window: Window
    earliest: bool = False
    adjacent: bool = False
    plural: frozenset[str] = frozenset()
    sieves: tuple[Sieve, ...] = ()
    hidden: frozenset[int] = frozenset()

    def without_rules(self) -> Detection:
        """The same pattern without the conditions on its matches; those of NOTs stay."""
        first, *others = self.scopes
        return replace(self, scopes=(replace(first, rules=()), *others))

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
class Sieve:
    """The steps of the pair can bind event f only if the pair is true of some earlier event e at these positions.

    A necessary condition, used to discard events early; a rule of the pattern still decides.
    """

    pair: Pair
    positions: tuple[int, ...]
