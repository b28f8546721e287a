"""Which conditions speak of two neighbours of a match, by the positions that these fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from trendloom.expr.nodes import Comparison, Expr
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Detection, Pair
from trendloom.planner.adjacency import adjacent

Positions = tuple[int, int]


@dataclass(frozen=True)
class Neighbours:
    """`conditions` on each pair of positions; `whole`: no other condition and no NOT decides about a match."""

    conditions: dict[Positions, tuple[Expr, ...]]
    whole: bool


def neighbours_of(detection: Detection) -> Neighbours:
    """The conditions of a pattern on neighbours; attributes of the later one are read with NEXT or CURRENT."""
    machine = Machine(detection)
    position_of = detection.scopes[0].template.position_of
    found: dict[Positions, tuple[Expr, ...]] = {}
    whole = len(detection.scopes) == 1
    for rule in detection.scopes[0].rules:
        condition, _ = adjacent(rule, detection, machine)
        if condition is None:
            whole = False
            continue
        expr = _comparison(condition) if isinstance(condition, Pair) else condition.expr
        for state, step in condition.steps:
            key = position_of[state], machine.steps[step].position
            found[key] = (*(one for one in found.get(key, ()) if one != expr), expr)
    return Neighbours(found, whole)


def _comparison(pair: Pair) -> Expr:
    return Comparison(cast("Any", pair.operator), pair.left, pair.right)
