"""Logical plans of queries and workloads: what a bound query means, free of how it is run.

Everything is resolved: the pattern has numbered positions, conditions are conjuncts with the scope that they restrict,
durations are ticks. The reference evaluator executes this plan as it stands. The optimizer narrows `scan`, moves
conditions to `filters` or rewrites them, and finds what more keeps events apart, without changing the answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from trendloom.errors import QueryWarning
from trendloom.expr.nodes import Comparison, Expr
from trendloom.frontend.tree import Query
from trendloom.model.schema import Kind, Schema
from trendloom.model.selection import Semantics, Trends
from trendloom.model.time import Window
from trendloom.pattern.algebra import Pattern


@dataclass(frozen=True)
class Condition:
    """One conjunct of WHERE or of a predicate attached to a component.

    `scope` is what it restricts: 0 the matches of the query, else the matches of that NOT. A variable that the scope
    binds itself means its events there; any other belongs to the nearest enclosing scope that binds it.
    `part` is None for WHERE: the conjunct is about all events of its variables. For an attached predicate it is the
    innermost Kleene or Round part that holds all its variables (None: there is none): the conjunct is then about the
    events of one round of that part, and holds for every round.
    """

    expr: Expr
    scope: int
    part: int | None
    text: str
    decided_at: str | None = None  # the component at which it is decided; None: on whole matches. Set by the optimizer
    looked_up: bool = False  # an equality: events are looked up by value. Set by the optimizer
    short_cut: bool = False  # an equality: a value that is nowhere ends the search. Set by the optimizer


@dataclass(frozen=True)
class Decorrelated:
    """A NOT whose matches depend on nothing outside but the event bound right before it, or after it (`follows`).

    `links` are what its conditions come to: every event of a match (left sides) is compared with that event (right).
    """

    scope: int
    follows: bool
    links: tuple[Comparison, ...]


@dataclass(frozen=True)
class Value:
    """A named value of RETURN; `scale`: the digits after the point of a decimal."""

    name: str
    expr: Expr
    kind: Kind
    scale: int = 0


@dataclass(frozen=True)
class Projection:
    """One row per match with these values."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Aggregation:
    """One row per group and window with these values over all matches."""

    values: tuple[Value, ...]
    having: Expr | None = None


Output = Trends | Projection | Aggregation

Attributes = tuple[str, ...]
"""The columns that partition a stream."""

RANK = "rank"
"""The column of the ranks of matches: 1 is the best."""

SCORE = "score"
"""The column of scores, after that of ranks."""


@dataclass(frozen=True)
class Ranking:
    """The k best matches of each window and partition; `overall`: of each window.

    `merge` names the function of MERGE, None for one preference. A preference that is a fold of what each event adds
    is an expression over a `Fold` (see `logical.bind.ranking`). `kind` and `scale` are those of the score.
    """

    preferences: tuple[Expr, ...]
    merge: str | None
    descending: bool
    limit: int
    overall: bool = False
    kind: Kind = Kind.FLOAT
    scale: int = 0


@dataclass(frozen=True)
class OperandWindow:
    """An operand of the pattern with a WITHIN of its own: what it binds at these positions.

    In a window [s, e) these events lie in [e - within, e); without SLIDE the last is less than `within` after the
    first.
    """

    positions: tuple[int, ...]
    within: int
    text: str


@dataclass(frozen=True)
class Scan:
    """The columns and types that the query can possibly need: all by the binder, fewer by the optimizer."""

    columns: tuple[str, ...]
    types: tuple[str, ...] | None = None  # None: events of every type matter


@dataclass(frozen=True)
class Plan:
    """A bound query."""

    query: Query
    schema: Schema
    pattern: Pattern
    semantics: Semantics
    conditions: tuple[Condition, ...]
    partition: tuple[str, ...]  # equivalence attributes, then GROUP BY attributes not among them
    group_by: tuple[str, ...]
    window: Window
    output: Output
    hidden: frozenset[str]  # variables of EXISTS: matched, then left out of the result
    kleene: frozenset[str]  # variables of scope 0 that can bind more than one event in a match
    scan: Scan
    ranking: Ranking | None = None
    operand_windows: tuple[OperandWindow, ...] = ()
    confidence: Fraction | None = None
    filters: tuple[tuple[int, Expr], ...] = ()  # (position, predicate on that event alone): set by the optimizer
    split: tuple[str, ...] = ()  # attributes that are equal in all events of a match: set by the optimizer
    decorrelated: tuple[Decorrelated, ...] = ()  # NOTs that need not be tested match by match: set by the optimizer
    alike: tuple[tuple[int, int], ...] = ()  # (NOT, earlier NOT with the same matches): set by the optimizer
    warnings: tuple[QueryWarning, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str | None:
        return self.query.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which events are kept apart; results are distinguished by `partition` alone."""
        return (*self.partition, *self.split)

    @property
    def ranks_across_keys(self) -> bool:
        """Whether matches of several keys are ranked together: a task with some of the keys has candidates only."""
        return self.ranking is not None and self.ranking.overall and bool(self.keys)


@dataclass(frozen=True)
class KeySet:
    """Queries with the same partition attributes, in whatever order; `members`: their numbers in the workload."""

    attributes: Attributes
    members: tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """The plans of several queries over one stream, in the order of their answers, and what they share.

    `scan`: what all of them together need of the input, so that it is read once. `key_sets`: every query has one, and
    the events of a set are moved and sorted once. The binder leaves both empty; rules of the optimizer fill them in.
    """

    plans: tuple[Plan, ...]
    scan: Scan | None = None
    key_sets: tuple[KeySet, ...] = ()

    @property
    def shared_attributes(self) -> frozenset[Attributes]:
        """Attributes by which more than one plan keeps events apart: their events are sorted once."""
        counts = Counter(plan.keys for plan in self.plans)
        return frozenset(names for names, count in counts.items() if count > 1)
