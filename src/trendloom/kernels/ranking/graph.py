"""The graph of a ranked pattern over a block, as compiled code reads it: cells are pairs of state and event.

A match is a path from a state that starts to one that accepts; every cell whose position has a part of the preference
has a weight, and the value of a path is the fold of its weights. What a move may lead to depends on the two events it
joins alone, and there are several ways to find the best of what came before:

- FREE: no predicate and no NOT: the best cell so far of a state;
- EQUAL: one equality: the best of each value; ORDER: one order predicate: a Fenwick tree over ranks of values;
- RECENT: NOTs alone: what they let through are the latest cells, so a stack whose values worsen towards the latest;
- TESTED: everything else: cells are tested one by one, from the latest back to the first that a NOT cuts off;
- STEP: under skip-till-next-match and contiguous: the successors of a cell are known (`successors`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.reachability import accepting, cuts_of, places_of_pair
from trendloom.kernels.matching.successors import successors_of
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves, checks_of, fitting_bits, moves_of

FREE, EQUAL, ORDER, RECENT, TESTED, STEP = range(6)
SUM, PRODUCT, LEAST, GREATEST = range(4)
"""How weights are folded."""


@njit(**INSIDE, forceinline=True)
def folded(operator: int, before: Any, weight: Any) -> Any:
    """A fold with one more weight."""
    if operator == SUM:
        return before + weight
    if operator == GREATEST:
        return max(before, weight)
    return before * weight if operator == PRODUCT else min(before, weight)


class EventWeights(NamedTuple):
    """By state which row of `value` its events read (−1: none), and where that is `unknown`; smaller folds are better.

    `unit` holds what an empty fold is, in the type of the weights: of products −1 where the greatest are best.
    """

    row: Array
    value: Array
    unknown: Array
    unit: Array
    operator: int


class RankedGraph(NamedTuple):
    """Moves of state s lead on as `moves.begin[s]` says; those into it are `into_begin[s]` to `into_begin[s + 1]`.

    A question is what EQUAL and ORDER moves ask: `question[m]` is its number (−1: none), and its cells are `size` many
    from `base` on.
    """

    fits: Array
    position: Array
    starts: Array
    accepts: Array
    moves: Moves
    source: Array
    into_begin: Array
    into: Array
    way: Array
    question: Array
    ask: Array
    offer: Array
    base: Array
    size: Array
    cuts: Array
    checks: Checks
    successor: Array  # by state and event: the first event of the next time at which a run goes on, or −1


def graph_of(pattern_spec: PatternSpec, pairs: tuple[Compared, ...], block: Block) -> RankedGraph:
    """The graph of a pattern whose steps depend on the two events they join alone."""
    automaton = Automaton(pattern_spec)
    moves, checks, fits = moves_of(automaton, pairs), checks_of(automaton, pairs, block), fitting_bits(block)
    position = np.array(pattern_spec.scopes[0].template.position_of, np.int64)
    starts = np.zeros(len(position), np.bool_)
    starts[[step.target for step in automaton.starts[0]]] = True
    source = np.repeat(np.arange(len(position)), np.diff(moves.begin))
    into = np.argsort(moves.target, kind="stable")
    into_begin = np.searchsorted(moves.target[into], np.arange(len(position) + 1))
    runs = pattern_spec.earliest or pattern_spec.adjacent
    way = (
        np.full(len(source), STEP) if runs else np.array([_way(move, checks) for move in range(len(source))], np.int64)
    )
    question, ask, offer, size = _questions(way, checks, len(block))
    successor = np.full((1, 1), -1, np.int32)
    if runs:
        key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
        successor = successors_of(automaton, block, fits, key_end, moves, checks).event
    return RankedGraph(
        fits, position, starts, accepting(automaton), moves, source, into_begin.astype(np.int64), into.astype(np.int64),
        way.astype(np.int64), question, ask, offer, np.cumsum(size) - size, size, cuts_of(checks), checks, successor,
    )  # fmt: skip


def _way(move: int, checks: Checks) -> int:
    pairs = checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]
    nots = checks.nots_begin[move + 1] - checks.nots_begin[move]
    if not len(pairs):
        return RECENT if nots else FREE
    operator = OPERATORS[checks.operators[pairs[0]]]
    if nots or len(pairs) > 1 or operator == "!=":
        return TESTED
    return EQUAL if operator == "=" else ORDER


def _questions(way: Array, checks: Checks, events: int) -> tuple[Array, Array, Array, Array]:
    """The question of every move, and where events ask and are found (see `viability`)."""
    question = np.full(len(way), -1, np.int64)
    numbers: dict[int, int] = {}
    for move in np.flatnonzero((way == EQUAL) | (way == ORDER)):
        question[move] = len(numbers)
        numbers[int(move)] = int(checks.pairs[checks.pairs_begin[move]])
    ask, offer = np.full((2, len(numbers), events), -1, np.int32)
    size = np.zeros(len(numbers), np.int64)
    for number, pair in enumerate(numbers.values()):
        _, ask[number], offer[number], size[number] = places_of_pair(checks, pair)
    return question, ask, offer, size
