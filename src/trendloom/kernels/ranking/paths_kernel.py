"""The best matches as best paths: for patterns whose steps depend on two events, and preferences that are folds.

One sweep finds the best path to every event, then the next best paths are made one after the other, as many as are
wanted; no match is built that is not given out, and one more to see whether others have the score of the last. Where
that is so, the first of these by time are looked for on their own (`ties`), and so are matches without a score where
too few have one.
Cost: O(events · moves) and O(length · log(events)) for each match given out; see `sweeps` and `next_best`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Expr, Fold
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.contract.pattern_spec import Compared
from trendloom.kernels.ranking.graph import GREATEST, LEAST, SUM, EventWeights, RankedGraph, graph_of
from trendloom.kernels.ranking.kernel import ListingKernel, RankingKernel
from trendloom.kernels.ranking.select import best_of, together
from trendloom.kernels.ranking.strata import GREATEST as strata_greatest
from trendloom.kernels.ranking.strata import SUM as strata_sum
from trendloom.kernels.ranking.strata import best_paths, best_spans
from trendloom.kernels.ranking.sweeps import offers_for
from trendloom.kernels.ranking.ties import Standings
from trendloom.kernels.ranking.weights import Weighing, fold_vector, strata_of, weighing_of
from trendloom.kernels.ranking.windows import (
    PathsOfBoards,
    Ranges,
    SpanBoards,
    bound_starts,
    first_of_spans,
    first_of_windows,
    paths_of_spans,
    paths_of_windows,
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
    """The best paths of all boards of a block."""

    def __init__(self, kernel: PathsKernel, block: Block, weighing: Weighing) -> None:
        self.kernel, self.block, self.weighing = kernel, block, weighing
        window = kernel.pattern_spec.window
        self.limit = kernel.scoring.limit
        self.spans: SpanBoards | None = None
        self.start: Array | None = None
        if window.spanning:
            self.spans, self.longest = spans_of(block, window)
            self.ranges, self.boards = Ranges(block.key_starts[:-1], block.key_starts[1:]), block.keys
        else:
            self.ranges, self.start = ranges_of(block, window)
            self.boards = len(self.ranges.low)
            self.longest = int((self.ranges.high - self.ranges.low).max(initial=1))

    @cached_property
    def graph(self) -> RankedGraph:
        return graph_of(self.kernel.pattern_spec, self.kernel.pairs, self.block)

    def best(self) -> Matches | None:
        """The best matches; None: scores are not in the order of folds, because some are NULL."""
        paths, count = self._ranked()
        board, value = paths.board[:count], paths.value[:count]
        order = np.lexsort((value * self.weighing.sign, board))
        board, value = board[order], value[order]
        scores = self._scores(value)
        if scores.valid is not None and not scores.valid.all():
            return None
        first = np.searchsorted(board, np.arange(self.boards + 1))
        size = np.diff(first)
        full = np.flatnonzero(size > self.limit)
        last = first[full] + self.limit - 1
        tied = full[scores.values[last] == scores.values[last + 1]]
        place = np.arange(count) - first[board]
        kept = place < self.limit
        left = np.zeros(self.boards, np.int64)  # places for those that tie
        found = []
        if len(tied):
            in_class = np.zeros(count, np.bool_)
            bounds = first[tied] + self.limit - 1
            of_board = np.full(self.boards, -1)
            of_board[tied] = bounds
            there = of_board[board] >= 0
            in_class[there] = scores.values[there] == scores.values[of_board[board[there]]]
            kept &= ~in_class
            left[tied] = self.limit - np.bincount(board[kept], minlength=self.boards)[tied]
            best, worst = self._class_bounds(value, board, tied, in_class)
            found.append(self._first(self.weighing, best, worst, left, np.zeros((0, len(self.block)), np.bool_)))
        missing = np.where(self.ranges.low < self.ranges.high, self.limit - np.minimum(size, self.limit), 0)
        if self.weighing.blanks and missing.any():
            found.append(self._without_scores(missing))
        found.append(self._matches(paths, order[kept]))
        scored = together([self.kernel.scored(self.block, matches) for matches in found])
        return best_of(scored, self.block, self.kernel.scoring).matches

    def _ranked(self) -> tuple[PathsOfBoards, int]:
        weighing = self.weighing
        if self.kernel.straight and weighing.operator in (SUM, GREATEST if weighing.sign > 0 else LEAST):
            return self._through_strata()
        weights = weighing.weights
        if self.spans is None:
            found: tuple[PathsOfBoards, int] = paths_of_windows(
                self.graph, weights, self.ranges, self.limit, self.longest, offers_for(self.graph, self.longest)
            )
            return found
        possible, bound = _bounds_of_starts(self.graph, weights, self.spans)
        paths, count, _ = paths_of_spans(
            self.graph, weights, self.spans, possible, bound, self.weighing.slack, self.limit, self.longest,
            offers_for(self.graph, self.longest),
        )  # fmt: skip
        return paths, int(count)

    def _through_strata(self) -> tuple[PathsOfBoards, int]:
        """The same for sequences of single events, which has faster tables: events by position."""
        strata = strata_of(self.weighing, self.block, self.weighing.position_of)
        fold = strata_sum if self.weighing.operator == SUM else strata_greatest
        wanted = self.limit + 1
        if self.spans is None:
            found = best_paths(strata, self.ranges.low, self.ranges.high, wanted, fold)
        else:
            found = best_spans(strata, self.block.key_starts, self.spans.limit, wanted, fold)
        rows, length = found.events.shape
        board = np.repeat(np.arange(self.boards), np.diff(found.offsets))
        values = found.scores * self.weighing.sign
        states = np.tile(np.arange(length), rows)
        offsets = np.arange(rows + 1, dtype=np.int64) * length
        return PathsOfBoards(board, values, offsets, found.events.reshape(-1), states), rows

    def _scores(self, value: Array) -> Vector:
        """The scores of folds."""
        folds = fold_vector(value, self.kernel.fold, self.weighing.scale)

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
            worst[tied] = self._worst_alike(value[last], self.weighing.sign)
        return best, worst

    def _worst_alike(self, value: Array, sign: int) -> Array:
        """The worst numbers whose scores are those of the given ones: by bisection, as scores follow folds."""
        target = self._scores(value).values
        low = _as_integers(value)
        high = np.full(len(value), np.iinfo(np.int64).max // 2 if sign > 0 else np.iinfo(np.int64).min // 2)
        if value.dtype == np.float64:
            high = _as_integers(np.full(len(value), np.finfo(np.float64).max * sign))
        for _ in range(64):
            middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their difference may be beyond 64 bits
            scores = self._scores(_as_numbers(middle, value.dtype))
            alike = (scores.values == target) & (True if scores.valid is None else scores.valid)
            low, high = np.where(alike, middle, low), np.where(alike, high, middle)
        return _as_numbers(low, value.dtype)

    def _first(self, weighing: Weighing, best: Array, worst: Array, wanted: Array, blank: Array) -> Matches:
        """The first matches by time whose folds lie between two values, by board; other boards are not looked at."""
        boards = np.flatnonzero(wanted)
        events = _events_of(self.ranges, boards, len(self.block))
        kernel, block, weights = self.kernel, self.block.only(events), weighing.only(events).weights
        graph = graph_of(kernel.pattern_spec, kernel.pairs, block)
        limits, standings = (best[boards], worst[boards], wanted[boards]), self._standings(block)
        rows = np.flatnonzero(events)
        if self.spans is None:
            ranges = Ranges(*(np.searchsorted(rows, bounds[boards]) for bounds in self.ranges))
            longest = int((ranges.high - ranges.low).max(initial=1))
            offers = offers_for(graph, longest)
            paths, count = first_of_windows(
                graph, weights, ranges, limits, blank[:, events], weighing.slack, standings, longest, offers
            )
        else:
            spans, longest = spans_of(block, kernel.pattern_spec.window)
            spans = spans._replace(key_starts=np.r_[block.key_starts[boards], len(block)])  # other keys have no events
            bounds = _bounds_of_starts(graph, weights, spans)
            paths, count = first_of_spans(
                graph, weights, spans, *bounds, limits, blank[:, events], weighing.slack, standings, longest,
                offers_for(graph, longest),
            )  # fmt: skip
        found = paths._replace(board=boards[paths.board[:count]], event=rows[paths.event[: paths.offsets[count]]])
        return self._matches(found, np.arange(count))

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
        """The first matches that have no score, for the places that nobody with a score has."""
        zero = np.zeros(self.boards, self.weighing.values[0].dtype)
        everywhere = np.zeros(len(self.block), np.bool_)
        blank = np.stack([everywhere if some is None else some for some in self.weighing.unknown])
        return self._first(self.weighing.without_weights(), zero, zero, missing, blank)

    def _matches(self, paths: PathsOfBoards, rows: Array) -> Matches:
        """Paths as matches."""
        position_of = np.array(self.kernel.pattern_spec.scopes[0].template.position_of, np.int32)
        lengths = np.diff(paths.offsets)[rows]
        offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        entry = np.repeat(paths.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        start = None if self.start is None else self.start[paths.board[rows]]
        return Matches(offsets, paths.event[entry], position_of[paths.state[entry]], start)


def _events_of(ranges: Ranges, boards: Array, events: int) -> Array:
    """Which events lie in some windows."""
    change = np.zeros(events + 1, np.int64)
    np.add.at(change, ranges.low[boards], 1)
    np.add.at(change, ranges.high[boards], -1)
    return np.cumsum(change)[:-1] > 0


def _bounds_of_starts(graph: RankedGraph, weights: EventWeights, spans: SpanBoards) -> tuple[Array, Array]:
    """Where matches start, and what they can give."""
    longest = int((spans.pane_high - spans.pane_low).max(initial=1))
    found: tuple[Array, Array] = bound_starts(graph, weights, spans, longest, offers_for(graph, longest))
    return found


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
