"""What an aggregation kernel gets: the pattern as tables, what to measure, and at which grain. Frozen, picklable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trendloom.expr.nodes import Expr
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.model.schema import Kind


class Grain(Enum):
    """What one running aggregate stands for. See Poppe, "Event Stream Analytics", ch. 14."""

    TYPE = "type-grained"  # all partial matches that end at a position
    PATTERN = "pattern-grained"  # all runs that wait at a position (next, contiguous)
    MIXED = "mixed-grained"  # by position where that is enough, by event in an ordered structure where it is not
    EVENT = "event-grained"  # some events are compared with every one before them


@dataclass(frozen=True)
class Measure:
    """One running number per group and window; `name` is its column in partial tables."""

    name: str
    function: str  # matches | count | sum | min | max
    positions: tuple[int, ...] | None
    column: str | None
    kind: Kind
    fractional: bool = False  # a sum of doubles


@dataclass(frozen=True)
class Test:
    """A condition on two adjacent events that does not compare one with the other (`abs(s.x - NEXT(s).x) < 2`).

    Attributes read with `Which.NEXT` or `Which.CURRENT` belong to the later event, all others to the earlier one.
    `steps` are (state before, step), as in `Pair`.
    """

    expr: Expr
    steps: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Pivot:
    """A variable that binds one event in every match, and the rules that are about one event alone once it is known.

    `rules`: (positions, condition that events there must pass, in which `name` stands for the pivot).
    """

    name: str
    positions: tuple[int, ...]
    rules: tuple[tuple[tuple[int, ...], Expr], ...]


@dataclass(frozen=True)
class AggregationSpec:
    """Aggregates over all matches of `pattern_spec`, whose rules are in `pairs`, `tests` and `pivot`.

    `algebra`: every kind of event is a matrix, see `program`.
    """

    pattern_spec: PatternSpec
    grain: Grain
    measures: tuple[Measure, ...]
    pairs: tuple[Compared, ...] = ()
    tests: tuple[Test, ...] = ()
    algebra: bool = False
    pivot: Pivot | None = None
