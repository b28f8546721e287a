"""A pattern as flat tables for compiled code: moves between states, and what each move must satisfy.

`possible` is the whole meaning of a step from event e to event f: both fit, the pairs are true, no NOT lies between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Compared
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.gap_thresholds import comparable
from trendloom.kernels.matching.gaps import Gaps

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


class Moves(NamedTuple):
    """The steps that lead on from every state: those of state s are `begin[s]` to `begin[s + 1]`."""

    begin: Array
    step: Array
    position: Array
    target: Array
    free: Array  # whether a move has nothing to satisfy besides fitting


class Checks(NamedTuple):
    """What a move must satisfy: the pairs and NOTs of move m are slices of `pairs` and `nots`.

    A pair compares `left[pair, e]` with `right[pair, f]` where both are known; a NOT is a threshold (see `gaps`).
    """

    pairs_begin: Array
    pairs: Array
    nots_begin: Array
    nots: Array
    operators: Array
    left: Array
    right: Array
    known: Array
    thresholds: Array
    tie_start: Array
    tie_end: Array


def moves_of(automaton: Automaton, pairs: tuple[Compared, ...]) -> Moves:
    moves = automaton.transitions
    begin = np.searchsorted([state for state, _ in moves], np.arange(len(automaton.moves[0]) + 1))
    rows = np.array([(step.number, step.position, step.target) for _, step in moves], np.int64).reshape(-1, 3)
    bound = [any(step.ways) or any((state, step.number) in pair.steps for pair in pairs) for state, step in moves]
    step, position, target = (np.ascontiguousarray(column) for column in rows.T)
    return Moves(begin.astype(np.int64), step, position, target, ~np.array(bound, np.bool_))


def checks_of(automaton: Automaton, pairs: tuple[Compared, ...], block: Block) -> Checks:
    moves = automaton.transitions
    gaps = Gaps(automaton, block)
    nots = [[scope for way in step.ways for scope in automaton.thresholds_of(way)] for _, step in moves]
    crossed = sorted({scope for some in nots for scope in some})
    compared = [[i for i, pair in enumerate(pairs) if (state, step.number) in pair.steps] for state, step in moves]
    forbidden = [[crossed.index(scope) for scope in some] for some in nots]
    thresholds = [gaps.threshold(scope) for scope in crossed]
    return Checks(
        *flat_lists(compared),
        *flat_lists(forbidden),
        np.array([OPERATORS.index(pair.operator) for pair in pairs], np.int64),
        *comparable(pairs, block),
        np.stack(thresholds) if thresholds else np.zeros((0, len(block) + 1), np.int64),
        block.tie_start,
        block.tie_end,
    )


def flat_lists(lists: list[list[int]]) -> tuple[Array, Array]:
    """Lists one after the other: where each begins, and one more, and their elements."""
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([x for xs in lists for x in xs], np.int64)


def by_rank(left: Array, right: Array) -> tuple[Array, Array, int]:
    """Two columns with ranks in place of their values, and the number of distinct values."""
    values, ranks = np.unique(np.concatenate([left, right]), return_inverse=True)
    ranks = ranks.reshape(-1)
    return ranks[: len(left)], ranks[len(left) :], len(values)


def fitting_bits(block: Block) -> Array:
    """Per event a word with a bit for each position it fits (at most 64 positions)."""
    if block.bits == tuple(range(len(block.bits))):
        return block.fits[0].astype(np.uint64)
    words = np.zeros(len(block), np.uint64)
    for position, fitting in enumerate(block.members):
        _mark(words, fitting, position)
    return words


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _mark(words: Array, fitting: Array, bit: int) -> None:
    for event in fitting:
        words[event] |= np.uint64(1) << np.uint64(bit)


@njit(nogil=True, forceinline=True)
def fits_at(word: int, position: int) -> bool:
    return (word >> np.uint64(position)) & np.uint64(1) != np.uint64(0)


@njit(nogil=True, forceinline=True)
def compare(operator: int, left: int, right: int) -> bool:
    if operator == 0:
        return left == right
    if operator == 1:
        return left != right
    if operator == 2:
        return left < right
    if operator == 3:
        return left <= right
    if operator == 4:
        return left > right
    return left >= right


@njit(**INSIDE, forceinline=True)
def pairs_hold(e: int, f: int, move: int, checks: Checks) -> bool:
    """Whether every pair of a move is true of events e and f."""
    for at in range(checks.pairs_begin[move], checks.pairs_begin[move + 1]):
        pair = checks.pairs[at]
        if not (checks.known[0, pair, e] and checks.known[1, pair, f]):
            return False
        if not compare(checks.operators[pair], checks.left[pair, e], checks.right[pair, f]):
            return False
    return True


@njit(nogil=True, forceinline=True)
def possible(e: int, f: int, move: int, checks: Checks) -> bool:
    """Whether event f may follow event e by this move: every pair true, no NOT violated."""
    if not pairs_hold(e, f, move, checks):
        return False
    low, high = checks.tie_end[e], checks.tie_start[f]
    for at in range(checks.nots_begin[move], checks.nots_begin[move + 1]):
        if high > low and checks.thresholds[checks.nots[at], high] >= low:
            return False
    return True
