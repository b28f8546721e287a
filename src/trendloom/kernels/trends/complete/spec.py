"""What the kernel of complete trends receives: the conditions on events of `v+`, and the window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trendloom.expr.nodes import Expr
from trendloom.kernels.contract.aggregates import Test
from trendloom.kernels.contract.pattern_spec import Pair
from trendloom.model.time import Window


class WalkPlan(Enum):
    """How trends are taken from the graph. AUTO lets costs decide; the others are for comparison."""

    AUTO = "auto"
    ONE_BY_ONE = "M-CET"  # one trend at a time, nothing stored
    ALL_STORED = "T-CET"  # one graphlet: all trends are stored
    BEST_CUTS = "H-CET"  # the cuts of least cost that fit the memory
    GREEDY_CUTS = "H-CET, greedy"  # the first balanced cuts that fit


@dataclass(frozen=True)
class Complete:
    """A flat Kleene pattern: event f may follow event e if all `pairs` and `tests` are true of them.

    `whole`: conditions on a trend as a whole that hold for every trend around one for which they hold.
    """

    window: Window
    pairs: tuple[Pair, ...] = ()
    tests: tuple[Test, ...] = ()
    plan: WalkPlan = WalkPlan.AUTO
    whole: tuple[Expr, ...] = ()
