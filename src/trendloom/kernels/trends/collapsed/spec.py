"""What the kernel of collapsed trends gets: the spine of a pattern, and what may lie in its gaps. Frozen, picklable.

The *spine* of a match are its events outside Kleene variables. Matches with the same spine are one row. Between two
neighbours of a spine lies a *gap*: its Kleene events depend on these neighbours and on each other, not on other gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.expr.nodes import Expr
from trendloom.kernels.contract.measures import AggregationSpec
from trendloom.kernels.contract.pattern_spec import PatternSpec

MATCHES = "matches"
"""The column that says how many matches a row stands for."""


@dataclass(frozen=True)
class Settled:
    """A condition on each event of one Kleene variable that is about that event alone once the spine is known.

    `others`: the variables of the spine that it uses; where one of them is not bound the condition is true.
    """

    variable: str
    others: tuple[str, ...]
    expr: Expr


@dataclass(frozen=True)
class Gap:
    """The ways from one position of the spine (None: from the start) to another (None: to the end).

    `positions`: those of Kleene variables that may lie in between. `ways` counts the ways through the gap; for it the
    positions are numbered anew: `positions` in order, then the source, then the target. `free`: nothing lies in
    between and nothing is compared, so there is one way.
    """

    source: int | None
    target: int | None
    positions: tuple[int, ...]
    ways: AggregationSpec
    free: bool


@dataclass(frozen=True)
class Spine:
    """How rows are found without enumerating matches.

    `pattern_spec` finds the spines; None: no match has events outside Kleene variables. `anchored`: a bare WITHIN ties
    Kleene events before the spine to others after it, so a spine also holds the first event of the match.
    `empty`: a match may do without any event of the spine.
    """

    pattern_spec: PatternSpec | None
    gaps: tuple[Gap, ...]
    settled: tuple[Settled, ...]
    anchored: bool
    empty: bool
