"""Adding up: what an aggregation kernel receives and returns. Specifications are frozen and picklable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Expr
from trendloom.expr.vectors import Vector, joined
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


# ------------------------------------------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class Amounts:
    """One linear measure, per result: exact integers (int64 or objects), or with `exponent` values · 2^exponent."""

    values: Array
    exponent: Array | None = None

    def take(self, rows: Array) -> Amounts:
        return Amounts(self.values[rows], None if self.exponent is None else self.exponent[rows])


def join_amounts(parts: Sequence[Amounts]) -> Amounts:
    """Numbers of one measure, one part after the other."""
    exponents = [part.exponent for part in parts if part.exponent is not None]
    return Amounts(np.concatenate([part.values for part in parts]), np.concatenate(exponents) if exponents else None)


def doubles_as_amounts(numbers: Array) -> Amounts:
    """Doubles as mantissas from a half up to one, and exponents of two."""
    mantissa, exponent = np.frexp(numbers)
    return Amounts(mantissa, exponent.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Totals:
    """Results with at least one match: `values` by the name of the measure.

    `whole`: a key and window has one result; else several that add up. `query`: its number in the group.
    """

    key: Array
    start: Array
    values: dict[str, Amounts | Vector]
    whole: bool = True
    query: int = 0

    def __len__(self) -> int:
        return len(self.key)

    @property
    def size(self) -> int:
        """How many entries it holds."""
        return len(self.key)

    def take(self, rows: Array) -> Totals:
        values = {name: one.take(rows) for name, one in self.values.items()}
        return Totals(self.key[rows], self.start[rows], values, self.whole, self.query)


def join_totals(parts: Sequence[Totals]) -> Totals:
    """Results of different keys, or windows, as one."""
    if len(parts) == 1:
        return parts[0]
    values: dict[str, Amounts | Vector] = {}
    for name in parts[0].values:
        some = [part.values[name] for part in parts]
        amounts = [one for one in some if isinstance(one, Amounts)]
        values[name] = join_amounts(amounts) if amounts else joined([one for one in some if isinstance(one, Vector)])
    key, start = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "start"))
    return Totals(key, start, values, all(part.whole for part in parts), parts[0].query)


@dataclass(frozen=True)
class Widening:
    """Numbers beyond two words that are about to be computed: decimal digits of the longest, and the work for all.

    `work`: events of their spans times words. `matches`: bits of the largest number of matches, in the window of `key`
    that begins at `start`. `query`: the number in the group of the query whose numbers they are.
    """

    digits: int
    work: int
    matches: int
    key: int
    start: int
    query: int = 0


OnWidening = Callable[[Widening], None]


class TooManyDigits(RunError):
    """Exact numbers that are longer than any that is computed."""

    def __init__(self, words: int) -> None:
        super().__init__(f"exact numbers of more than {words * 64 * 3 // 10:,} digits are not computed")
