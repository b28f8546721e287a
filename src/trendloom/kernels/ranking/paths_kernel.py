"""The best matches as best paths: for patterns whose steps depend on two events, and preferences that are folds.

One sweep finds the best path to every event, then the next best paths are made one after the other, as many as are
wanted; no match is built that is not given out, and one more to see whether others have the score of the last. Where
that is so, the first of these by time are looked for on their own (`ties`), and so are matches without a score where
too few have one.
Cost: O(events · moves) and O(length · log(events)) for each match given out; see `sweeps` and `next_best`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Expr, Fold
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.contract.pattern_spec import Compared
from trendloom.kernels.ranking.graph import (
    GREATEST,
    LEAST,
    SUM,
    EventWeights,
    RankedGraph,
    Weighing,
    fold_vector,
    graph_of,
    strata_of,
    weighing_of,
)
from trendloom.kernels.ranking.kernel import ListingKernel, RankingKernel
from trendloom.kernels.ranking.scores import best_of, concatenate_scored
from trendloom.kernels.ranking.strata import best_paths, best_spans
from trendloom.kernels.ranking.ties import Standings
from trendloom.kernels.ranking.windows import (
    Openings,
    PathsOfBoards,
    Ranges,
    TiesOfBoards,
    events_of,
    first_of_boards,
    openings_of_spans,
    openings_of_windows,
    paths_of_boards,
    ranges_of,
    spans_of,
)


@dataclass(frozen=True)
class PathsKernel(RankingKernel):
    """`pairs`: the conditions on the two events of a step. The preference is an expression over `fold`, which grows
    with it, or falls (`falling`). `listing`: what ranks numbers that compiled code cannot hold. `straight`: a match is
    one event for each position, without any condition on two of them.
    """

    pairs: tuple[Compared, ...]
    fold: Fold
    falling: bool
    listing: ListingKernel
    straight: bool = False

    def within(self, memory: int) -> Self:
        return replace(self, listing=self.listing.within(memory))

    def best(self, block: Block) -> Matches:
        if not len(block):
            return join([])
        check_range(block.time, self.pattern_spec.window)
        descending = self.scoring.descending != self.falling
        weighing = weighing_of(self.fold, self.pattern_spec, block, self._longest(block), descending=descending)
        if weighing is None:
            return self.listing.best(block)
        found = _Boards(self, block, weighing).best()
        return self.listing.best(block) if found is None else found

    def _longest(self, block: Block) -> int:
        """The most events that a match can have."""
        if self.pattern_spec.plural:
            return int(np.diff(block.key_starts).max(initial=1))
        return len(self.pattern_spec.scopes[0].template.position_of)


class _Boards:
    """The best paths of all boards of a block. Folds are turned around where great ones are good."""

    def __init__(self, kernel: PathsKernel, block: Block, weighing: Weighing) -> None:
        self.kernel, self.block, self.weighing = kernel, block, weighing
        self.limit = kernel.scoring.limit
        self.spanning = kernel.pattern_spec.window.spanning
        self.start: Array | None = None
        self.ranges = Ranges(block.key_starts[:-1], block.key_starts[1:])
        if not self.spanning:
            self.ranges, self.start = ranges_of(block, kernel.pattern_spec.window)
        self.boards = len(self.ranges.low)

    def best(self) -> Matches | None:
        """The best matches; None: scores are not in the order of folds, because some are NULL."""
        paths = self._ranked()
        order = np.lexsort((paths.value, paths.board))
        board, value = paths.board[order], paths.value[order]
        scores = self._scores(value)
        if scores.valid is not None and not scores.valid.all():
            return None
        first = np.searchsorted(board, np.arange(self.boards + 1))
        size = np.diff(first)
        full = np.flatnonzero(size > self.limit)
        last = first[full] + self.limit - 1
        tied = full[scores.values[last] == scores.values[last + 1]]
        kept = np.arange(len(board)) - first[board] < self.limit
        found = []
        if len(tied):
            of_board = np.full(self.boards, -1)
            of_board[tied] = first[tied] + self.limit - 1
            in_class = of_board[board] >= 0
            in_class[in_class] = scores.values[in_class] == scores.values[of_board[board[in_class]]]
            kept &= ~in_class
            left = np.zeros(self.boards, np.int64)  # places for those that tie
            left[tied] = self.limit - np.bincount(board[kept], minlength=self.boards)[tied]
            best, worst = self._class_bounds(value, board, tied, in_class)
            ties = TiesOfBoards(best, worst, left, self.weighing.slack, np.zeros((0, len(self.block)), np.bool_))
            found.append(self._first(self.weighing, ties))
        missing = np.where(self.ranges.low < self.ranges.high, self.limit - np.minimum(size, self.limit), 0)
        if self.weighing.blanks and missing.any():
            found.append(self._without_scores(missing))
        found.append(self._matches(paths, order[kept]))
        scored = concatenate_scored([self.kernel.scored(self.block, matches) for matches in found])
        return best_of(scored, self.block, self.kernel.scoring).matches

    def _ranked(self) -> PathsOfBoards:
        """The best paths of every board, one more than wanted if there is one: whether its score ties is to be seen."""
        weighing = self.weighing
        if self.kernel.straight and weighing.operator in (SUM, GREATEST if weighing.sign > 0 else LEAST):
            return self._through_strata()
        graph = graph_of(self.kernel.pattern_spec, self.kernel.pairs, self.block)
        openings = self._openings(graph, weighing.weights, self.block, self.ranges)
        return paths_of_boards(graph, weighing.weights, openings, self.limit + 1, weighing.slack)

    def _openings(self, graph: RankedGraph, weights: EventWeights, block: Block, ranges: Ranges) -> Openings:
        """Where matches of a block's boards are looked for; boards are keys where spans are bounded."""
        if not self.spanning:
            return openings_of_windows(ranges, weights)
        spans = spans_of(block, self.kernel.pattern_spec.window)
        return openings_of_spans(graph, weights, spans._replace(key_starts=np.r_[ranges.low, len(block)]))

    def _through_strata(self) -> PathsOfBoards:
        """The same for sequences of single events, which has faster tables: events by position."""
        strata = strata_of(self.weighing, self.block, self.weighing.position_of)
        fold = SUM if self.weighing.operator == SUM else GREATEST
        if self.spanning:
            limit = spans_of(self.block, self.kernel.pattern_spec.window).limit
            found = best_spans(strata, self.block.key_starts, limit, self.limit + 1, fold)
        else:
            found = best_paths(strata, self.ranges.low, self.ranges.high, self.limit + 1, fold)
        rows, length = found.events.shape
        board = np.repeat(np.arange(self.boards), np.diff(found.offsets))
        states = np.tile(np.arange(length), rows)
        offsets = np.arange(rows + 1, dtype=np.int64) * length
        return PathsOfBoards(board, found.scores, offsets, found.events.reshape(-1), states)

    def _scores(self, value: Array) -> Vector:
        """The scores of folds."""
        folds = fold_vector(value * self.weighing.sign, self.kernel.fold, self.weighing.scale)

        def leaf(expr: Expr) -> Vector:
            assert isinstance(expr, Fold)
            return folds

        return evaluate(self.kernel.scoring.preferences[0], leaf).broadcast(len(value))

    def _class_bounds(self, value: Array, board: Array, tied: Array, in_class: Array) -> tuple[Array, Array]:
        """By board the best and worst fold of those that have the score of the last."""
        best, worst = (np.zeros(self.boards, value.dtype) for _ in range(2))
        rows = np.flatnonzero(in_class)
        first = rows[np.searchsorted(board[rows], tied)]
        last = rows[np.searchsorted(board[rows], tied, side="right") - 1]
        best[tied], worst[tied] = value[first], value[last]
        if not isinstance(self.kernel.scoring.preferences[0], Fold):
            worst[tied] = self._worst_alike(value[last])
        return best, worst

    def _worst_alike(self, value: Array) -> Array:
        """The worst numbers whose scores are those of the given ones: by bisection, as scores follow folds."""
        target = self._scores(value).values
        low = _as_integers(value)
        high = np.full(len(value), np.iinfo(np.int64).max // 2)
        if value.dtype == np.float64:
            high = _as_integers(np.full(len(value), np.finfo(np.float64).max))
        for _ in range(64):
            middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their difference may be beyond 64 bits
            scores = self._scores(_as_numbers(middle, value.dtype))
            alike = (scores.values == target) & (True if scores.valid is None else scores.valid)
            low, high = np.where(alike, middle, low), np.where(alike, high, middle)
        return _as_numbers(low, value.dtype)

    def _first(self, weighing: Weighing, ties: TiesOfBoards) -> Matches:
        """The first matches by time among those that tie; other boards are not looked at."""
        boards = np.flatnonzero(ties.wanted)
        events = events_of(self.ranges.low[boards], self.ranges.high[boards], len(self.block))
        kernel, block, weights = self.kernel, self.block.only(events), weighing.only(events).weights
        graph = graph_of(kernel.pattern_spec, kernel.pairs, block)
        rows = np.flatnonzero(events)
        openings = self._openings(
            graph, weights, block, Ranges(*(np.searchsorted(rows, bounds[boards]) for bounds in self.ranges))
        )
        some = TiesOfBoards(
            ties.best[boards], ties.worst[boards], ties.wanted[boards], ties.slack, ties.blank[:, events]
        )
        paths = first_of_boards(graph, weights, openings, some, self._standings(block))
        return self._matches(paths._replace(board=boards[paths.board], event=rows[paths.event]), slice(None))

    def _standings(self, block: Block) -> Standings:
        """What orders events of a key, and states, beyond scores."""
        names = self.kernel.scoring.names
        spelled = {name: number for number, name in enumerate(sorted(set(names)))}
        positions = self.kernel.pattern_spec.scopes[0].template.position_of
        tied = np.flatnonzero(block.tie_end - block.tie_start > 1)
        contents = np.zeros(len(block), np.int64)
        if len(tied):
            contents[tied] = block.contents(tied)
        states = np.array([spelled[names[at]] * len(names) + at for at in positions], np.int64)
        return Standings(block.instant, contents, states)

    def _without_scores(self, missing: Array) -> Matches:
        """The first matches that have no score, for the places that are left."""
        zero = np.zeros(self.boards, self.weighing.values[0].dtype)
        everywhere = np.zeros(len(self.block), np.bool_)
        blank = np.stack([everywhere if some is None else some for some in self.weighing.unknown])
        return self._first(self.weighing.without_weights(), TiesOfBoards(zero, zero, missing, 0.0, blank))

    def _matches(self, paths: PathsOfBoards, rows: Array | slice) -> Matches:
        """Paths as matches."""
        position_of = np.array(self.kernel.pattern_spec.scopes[0].template.position_of, np.int32)
        lengths = np.diff(paths.offsets)[rows]
        offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        entry = np.repeat(paths.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        start = None if self.start is None else self.start[paths.board[rows]]
        return Matches(offsets, paths.event[entry], position_of[paths.state[entry]], start)


def _as_integers(value: Array) -> Array:
    """Integers in the order of numbers: doubles by their bits."""
    if value.dtype == np.int64:
        return value
    bits = value.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _as_numbers(integers: Array, kind: Any) -> Array:
    if kind == np.int64:
        return integers
    bits = np.where(integers < 0, np.iinfo(np.int64).min - integers, integers)
    return np.ascontiguousarray(bits).view(np.float64)
