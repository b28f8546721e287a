"""The best sequences of windows by a function of their parts that is monotone in each of them, but not a sum.

Whether a preference is monotone may depend on the events: a product is, where neither factor is negative. So that is
looked at for every block, and where it is not so, all matches are listed.

Every position of the sequence has a queue of its events, joined in order of time. Best paths cannot be added up here,
but bounds can be had: with an event e at its position, no match is better than the function of e's part and of the best
part that each other position has on its side of e. That is e's *potential*. (A corner bound, as of `rank_join`, would
take the best parts of all events; those on the wrong side of e make it worse than it has to be.) Queues are in order
of potential, and they are read as one: the events with the least potentials are joined with those read before, and when
the k-th match is at least as good as the next potential, nothing that is missing can be better.

Windows with few sequences are listed, many at a time; the others are ranked one after the other.

Cost: sequences of small windows, vectorised; potentials O(events · positions · log events) for each window; then
matches of the events read whose bounds do not exceed the k-th match so far, and nothing of those behind it.
See X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", figures 3.9, 3.17
and 3.18; there, events that were joined stay joined when the window moves on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Arithmetic, Attribute, Constant, Expr, Function, Negate
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.ranking.join_entries import ranges
from trendloom.kernels.ranking.kernel import ListingKernel, RankingKernel
from trendloom.kernels.ranking.rank_join import MOST, BestResults, RankedRows
from trendloom.kernels.ranking.scores import best_of
from trendloom.kernels.ranking.strata import BestPaths
from trendloom.kernels.ranking.windows import ranges_of

PART = " part"
"""The column that a part of a preference reads in `SequenceParts.whole`."""
FIRST_BATCH, SHARE = 32, 4
"""Events that are read first, and which share of those that were read are read next."""
PIECE = 1 << 17
"""Partial matches that are made at a time, unless a single event has more."""
LISTED = 1 << 12
"""Choices of events, in order or not, up to which a window is listed."""
BATCH = 1 << 19
"""Choices of all windows that are listed at a time."""


@dataclass(frozen=True)
class SequenceParts:
    """A preference over a sequence: the positions and their variables in order, and by variable its part.

    `whole` is the preference with an attribute `PART` of a variable in the place of its part.
    """

    positions: tuple[int, ...]
    variables: tuple[str, ...]
    parts: tuple[tuple[str, Expr], ...]
    whole: Expr


@dataclass(frozen=True)
class PartsKernel(RankingKernel):
    """`listing`: what ranks matches where the preference is not monotone, or a part is NULL."""

    sequence: SequenceParts
    listing: ListingKernel

    def within(self, memory: int) -> Self:
        return replace(self, listing=self.listing.within(memory))

    def best(self, block: Block) -> Matches:
        if not len(block):
            return join([])
        check_range(block.time, self.pattern_spec.window)
        parts = self._parts(block)
        if parts is None:
            return self.listing.best(block)
        ranges, start = ranges_of(block, self.pattern_spec.window)
        found = best_of_parts(parts, ranges.low, ranges.high, self.scoring.limit)
        if found.more.any() or np.isnan(found.scores).any():
            return self.listing.best(block)
        rows, length = found.events.shape
        starts = None if start is None else np.repeat(start, np.diff(found.offsets))
        positions = np.tile(np.array(self.sequence.positions, np.int32), rows)
        matches = Matches(np.arange(rows + 1, dtype=np.int64) * length, found.events.reshape(-1), positions, starts)
        return best_of(self.scored(block, matches), block, self.scoring).matches if rows else join([])

    def _parts(self, block: Block) -> Parts | None:
        """Events of each position with their parts, and how the score depends on them; None: it cannot be said."""
        given = dict(self.sequence.parts)
        events, vectors = [], {}
        for position, variable in zip(self.sequence.positions, self.sequence.variables, strict=True):
            members = block.members[position]
            events.append(members)
            vector = Vector(self.sequence.whole.kind, np.zeros(len(members), np.int64))
            if variable in given:
                vector = evaluate(given[variable], _columns_of(block, members)).broadcast(len(members))
            if vector.values.dtype == object or (vector.valid is not None and not vector.valid.all()):
                return None
            vectors[variable] = vector
        bounds = {name: _bounds(vector) for name, vector in vectors.items()}
        directions = directions_of(self.sequence.whole, bounds)
        if directions is None:
            return None
        sign = -1 if self.scoring.descending else 1
        rises = [directions.rises.get(name, True) == (sign > 0) for name in self.sequence.variables]
        values = [vectors[name].values for name in self.sequence.variables]
        return Parts(events, values, block.tie_end, self._score(vectors, sign), rises)

    def _score(self, vectors: dict[str, Vector], sign: int) -> Callable[[list[Array]], Array]:
        """Scores of parts, in which small is good; doubles, NaN where there is none."""
        column = {name: number for number, name in enumerate(self.sequence.variables)}

        def score(values: list[Array]) -> Array:
            def leaf(expr: Expr) -> Vector:
                assert isinstance(expr, Attribute)
                return replace(vectors[expr.variable], values=values[column[expr.variable]], valid=None)

            found = evaluate(self.sequence.whole, leaf).broadcast(len(values[0]))
            numbers = found.values.astype(np.float64) * sign
            return numbers if found.valid is None else np.where(found.valid, numbers, np.nan)

        return score


def _columns_of(block: Block, members: Array) -> Callable[[Expr], Vector]:
    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return block.columns[expr.column].take(members)

    return leaf


Bounds = tuple[float, float]


def _bounds(vector: Vector) -> Bounds:
    if not len(vector):
        return 0.0, 0.0
    unit = 10.0**vector.scale
    return float(vector.values.min()) / unit, float(vector.values.max()) / unit


# ------------------------------------------------------------------------------------------------- windows


@dataclass(frozen=True)
class Parts:
    """The events of each position, ascending, with their parts, and the score of parts: smaller is better.

    `score` takes a column for each position and gives one; it rises with the parts of positions that `rises` says, and
    falls with the others. `tie_end`: by event, the first one that is later.
    """

    events: Sequence[Array]
    values: Sequence[Array]
    tie_end: Array
    score: Callable[[list[Array]], Array]
    rises: Sequence[bool]

    @property
    def positions(self) -> int:
        return len(self.events)


class _Queue:
    """The events of one position in a window: their parts, potentials, and which were read."""

    def __init__(self, parts: Parts, position: int, low: int, high: int) -> None:
        begin, end = np.searchsorted(parts.events[position], [low, high])
        self.event = parts.events[position][begin:end]
        self.value = parts.values[position][begin:end]
        self.later = parts.tie_end[self.event]
        self.read = np.zeros(len(self.event), np.bool_)
        self.possible = np.ones(len(self.event), np.bool_)
        self.others: list[Array] = [self.value] * parts.positions
        """By position: the best part it can have beside each of these events."""

    def bests(self, *, rises: bool, forwards: bool) -> Array:
        """The best part of the first 1, 2, ... events, or of the last ones."""
        best = np.minimum if rises else np.maximum
        values = self.value if forwards else self.value[::-1]
        return best.accumulate(values) if len(values) else values


class PartsRanking:
    """The search for the best matches of a window."""

    def __init__(self, parts: Parts, low: int, high: int) -> None:
        self.parts, self.positions = parts, parts.positions
        self.tested = 0
        """Partial and whole matches that were made."""
        self._queues = [_Queue(parts, position, low, high) for position in range(self.positions)]
        for position in range(self.positions):
            self._look(position, range(position + 1, self.positions), forwards=False)
            self._look(position, range(position - 1, -1, -1), forwards=True)
        places = [np.flatnonzero(queue.possible) for queue in self._queues]
        some = zip(self._queues, places, strict=True)
        potential = np.concatenate([parts.score([values[at] for values in queue.others]) for queue, at in some])
        order = np.argsort(potential, kind="stable")
        self._potential, self._place = potential[order], np.concatenate(places)[order]
        self._position = np.repeat(np.arange(self.positions), [len(at) for at in places])[order]

    def best(self, k: int, most: int = MOST) -> RankedRows:
        """The k best matches, and others that equal the last, up to `most` in all."""
        type_ = self.parts.score([values[:0] for values in self.parts.values]).dtype
        self._results = BestResults(k, most, self.positions, type_)
        read = 0
        while read < len(self._place) and not self._results.are_certain(self._potential.item(read)):
            some = slice(read, read + max(FIRST_BATCH, read // SHARE))
            places, positions = self._place[some], self._position[some]
            self._join([places[positions == position] for position in range(self.positions)])
            read += len(places)
        return RankedRows(*self._results.ranked())

    def _look(self, position: int, others: range, *, forwards: bool) -> None:
        """The best parts on one side of each event of a position, neighbour after neighbour as far as they reach.

        `forwards`: on the side of earlier events, whose best parts are those of the first so many.
        """
        queue = self._queues[position]
        event, later = queue.event, queue.later
        for other in others:
            them = self._queues[other]
            bests = them.bests(rises=self.parts.rises[other], forwards=forwards)
            if forwards:
                count = np.searchsorted(them.later, event, side="right")
            else:
                count = len(them.event) - np.searchsorted(them.event, later)
            queue.possible &= count > 0
            if len(them.event) == 0:
                queue.others[other] = np.zeros(len(queue.event), them.value.dtype)
                continue
            queue.others[other] = bests[np.maximum(count, 1) - 1]
            nearest = np.maximum(count, 1) - 1 if forwards else len(them.event) - np.maximum(count, 1)
            event, later = them.event[nearest], them.later[nearest]

    def _join(self, new: list[Array]) -> None:
        """All matches with at least one new event, by the first position that has one: those before it are old."""
        old = [np.flatnonzero(queue.read) for queue in self._queues]
        for queue, places in zip(self._queues, new, strict=True):
            queue.read[places] = True
        every = [np.flatnonzero(queue.read) for queue in self._queues]
        for position, places in enumerate(new):
            if len(places):
                rows = np.sort(places).reshape(-1, 1)
                self._extend(rows, (position, position), [*old[:position], *every[position:]])

    def _extend(self, rows: Array, span: tuple[int, int], sets: list[Array]) -> None:
        """Extend rows of places in the queues of a span of positions, to the end and then to the front."""
        first, last = span
        rows = self._good_enough(rows, span)
        if len(rows) == 0:
            return
        if last - first + 1 == self.positions:
            self._take(rows)
            return
        if last < self.positions - 1:
            begin, end = self._followers(rows[:, -1], last, sets[last + 1])
            span, column = (first, last + 1), last + 1
        else:
            begin, end = self._predecessors(rows[:, 0], first, sets[first - 1])
            span, column = (first - 1, last), first - 1
        for some in _pieces(end - begin):
            taken = np.repeat(rows[some], end[some] - begin[some], axis=0)
            more = sets[column][ranges(begin[some], end[some])].reshape(-1, 1)
            extended = np.hstack([taken, more] if column > first else [more, taken])
            self.tested += len(extended)
            self._extend(extended, span, sets)

    def _followers(self, places: Array, position: int, others: Array) -> tuple[Array, Array]:
        begin = np.searchsorted(self._queues[position + 1].event[others], self._queues[position].later[places])
        return begin, np.full(len(begin), len(others))

    def _predecessors(self, places: Array, position: int, others: Array) -> tuple[Array, Array]:
        earlier = self._queues[position - 1].later[others]
        end = np.searchsorted(earlier, self._queues[position].event[places], side="right")
        return np.zeros(len(end), np.int64), end

    def _good_enough(self, rows: Array, span: tuple[int, int]) -> Array:
        """Rows that can become matches which are kept: what is missing is at best what the ends of a row allow."""
        limit = self._results.horizon
        return rows if limit is None else rows[self._bound(rows, span) <= limit]

    def _bound(self, rows: Array, span: tuple[int, int]) -> Array:
        first, last = span
        columns = []
        for position in range(self.positions):
            if position < first:
                columns.append(self._queues[first].others[position][rows[:, 0]])
            elif position > last:
                columns.append(self._queues[last].others[position][rows[:, -1]])
            else:
                columns.append(self._queues[position].value[rows[:, position - first]])
        return self.parts.score(columns)

    def _take(self, rows: Array) -> None:
        scores = self._bound(rows, (0, self.positions - 1))
        columns = zip(self._queues, rows.T, strict=True)
        events = np.column_stack([queue.event[places] for queue, places in columns]).astype(np.int64, copy=False)
        self._results.add(scores, events)


def _pieces(sizes: Array) -> list[slice]:
    """Consecutive rows that are extended at a time."""
    if len(sizes) == 0:
        return []
    number = np.cumsum(sizes) // PIECE
    cuts = np.flatnonzero(np.diff(number)) + 1
    return [slice(one, other) for one, other in pairwise([0, *cuts.tolist(), len(sizes)])]


def best_of_parts(
    parts: Parts, low: Array, high: Array, k: int, *, most: int = MOST, listed: int = LISTED
) -> BestPaths:
    """The k best of the events from `low` to `high` of each window, and all others that equal the last; see `most`.

    `most`: results of a window in all, if that is more than k. `listed`: as `LISTED`.
    """
    begin = np.stack([np.searchsorted(events, low) for events in parts.events])
    end = np.maximum(begin, np.stack([np.searchsorted(events, high) for events in parts.events]))
    choices = np.prod((end - begin).astype(np.float64), axis=0)
    small = np.flatnonzero(choices <= listed)
    number = np.cumsum(choices[small]) // BATCH
    found = []
    for piece in np.unique(number):
        some = small[number == piece]
        found.append((some, _listed(parts, begin[:, some], end[:, some], k, most)))
    for window in np.flatnonzero(choices > listed).tolist():
        rows = PartsRanking(parts, int(low[window]), int(high[window])).best(k, most)
        one = BestPaths(np.array([0, len(rows.scores)]), rows.scores, rows.events, np.array([rows.more]))
        found.append((np.array([window]), one))
    return _joined_batches(parts, len(low), found)


def _listed(parts: Parts, begin: Array, end: Array, k: int, most: int) -> BestPaths:
    """The best sequences of several windows, by listing all of theirs."""
    count = begin.shape[1]
    window = np.repeat(np.arange(count), end[0] - begin[0])
    places = [ranges(begin[0], end[0])]
    for position in range(1, parts.positions):
        later = parts.tie_end[parts.events[position - 1][places[-1]]]
        first = np.searchsorted(parts.events[position], later)
        first = np.minimum(np.maximum(first, begin[position][window]), end[position][window])
        sizes = end[position][window] - first
        added = ranges(first, end[position][window])
        places = [*(np.repeat(each, sizes) for each in places), added]
        window = np.repeat(window, sizes)
    scores = parts.score([values[each] for values, each in zip(parts.values, places, strict=True)])
    order = np.lexsort((scores, window))
    window, scores = window[order], scores[order]
    starts = np.searchsorted(window, np.arange(count + 1))
    sizes = np.diff(starts)
    rank = np.arange(len(window)) - starts[:-1][window]
    last = starts[:-1] + np.minimum(k, sizes) - 1
    good = (rank < k) | (scores <= scores[last[window]])
    kept = good & (rank < max(k, most))
    more = np.bincount(window[good], minlength=count) > np.bincount(window[kept], minlength=count)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(window[kept], minlength=count))])
    chosen = order[kept]
    events = [each[place[chosen]] for each, place in zip(parts.events, places, strict=True)]
    return BestPaths(offsets, scores[kept], np.column_stack(events).astype(np.int64, copy=False), more)


def _joined_batches(parts: Parts, windows: int, found: list[tuple[Array, BestPaths]]) -> BestPaths:
    """The rows of some windows each, as those of all windows in their order."""
    more = np.zeros(windows, np.bool_)
    owners = [np.zeros(0, np.int64)]
    scores = [parts.score([values[:0] for values in parts.values])]
    events = [np.zeros((0, parts.positions), np.int64)]
    for some, ranked in found:
        more[some] = ranked.more
        owners.append(np.repeat(some, np.diff(ranked.offsets)))
        scores.append(ranked.scores)
        events.append(ranked.events)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    offsets = np.r_[0, np.cumsum(np.bincount(owner, minlength=windows))]
    return BestPaths(offsets, np.concatenate(scores)[order], np.concatenate(events)[order], more)


# --------------------------------------------------------------------------------------------------- monotone

HUGE, TINY = 1e150, 1e-150
"""Numbers stay between these, so that no step is beyond the doubles."""
RISING: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "exp": math.exp, "floor": math.floor, "ceil": math.ceil, "round": lambda x: x + 1,
}  # fmt: skip
"""Functions that rise, and what bounds become."""
LARGE = dict.fromkeys(RISING, HUGE) | {"exp": 300.0}


@dataclass(frozen=True)
class Directions:
    """By variable whether an expression rises with its part, else falls; and the least and greatest value it has."""

    rises: dict[str, bool]
    low: float
    high: float


def directions_of(expr: Expr, bounds: dict[str, Bounds]) -> Directions | None:
    """How an expression depends on parts that lie between bounds; None: it is not monotone in one, or has no value."""
    match expr:
        case Constant(int() | float() as value):
            return Directions({}, float(value), float(value))
        case Attribute(variable):
            return _limited({variable: True}, *bounds[variable])
        case Negate(operand):
            return _turned(directions_of(operand, bounds))
        case Arithmetic("+", left, right):
            return _added(directions_of(left, bounds), directions_of(right, bounds))
        case Arithmetic("-", left, right):
            return _added(directions_of(left, bounds), _turned(directions_of(right, bounds)))
        case Arithmetic("*", left, right):
            return _multiplied(directions_of(left, bounds), directions_of(right, bounds))
        case Arithmetic("/", left, Constant(int() | float() as value)) if abs(value) > TINY:
            return _multiplied(directions_of(left, bounds), Directions({}, 1 / value, 1 / value))
        case Function(name, (operand,)):
            found = directions_of(operand, bounds)
            if name not in RISING or found is None or (name == "sqrt" and found.low < 0) or found.high > LARGE[name]:
                return None
            return _limited(found.rises, *(RISING[name](one) for one in (found.low, found.high)))
        case Function("least" | "greatest", arguments):
            return _joined([directions_of(one, bounds) for one in arguments])
    return None


def _limited(rises: dict[str, bool], low: float, high: float) -> Directions | None:
    """Directions of what stays far from the ends of the doubles."""
    return Directions(rises, low, high) if low > -HUGE and high < HUGE else None


def _turned(one: Directions | None) -> Directions | None:
    return (
        None if one is None else Directions({name: not rise for name, rise in one.rises.items()}, -one.high, -one.low)
    )


def _merged(one: Directions, other: Directions) -> dict[str, bool] | None:
    """The directions of both; None: they differ."""
    if any(one.rises[name] != other.rises[name] for name in one.rises.keys() & other.rises.keys()):
        return None
    return one.rises | other.rises


def _added(one: Directions | None, other: Directions | None) -> Directions | None:
    if one is None or other is None:
        return None
    rises = _merged(one, other)
    return None if rises is None else _limited(rises, one.low + other.low, one.high + other.high)


def _multiplied(one: Directions | None, other: Directions | None) -> Directions | None:
    """A product rises with factors as long as neither is negative; a negative constant turns it around."""
    if one is None or other is None:
        return None
    for constant, factor in ((one, other), (other, one)):
        if not constant.rises and constant.high < 0:
            return _multiplied(_turned(constant), _turned(factor))
    if not one.rises or not other.rises:  # a constant that is not negative
        rises = one.rises | other.rises
        products = [x * y for x in (one.low, one.high) for y in (other.low, other.high)]
        return _limited(rises, min(products), max(products))
    if one.low < 0 or other.low < 0:
        return None
    shared = _merged(one, other)
    return None if shared is None else _limited(shared, one.low * other.low, one.high * other.high)


def _joined(several: list[Directions | None]) -> Directions | None:
    known = [one for one in several if one is not None]
    if len(known) < len(several):
        return None
    found = known[0]
    for one in known[1:]:
        rises = _merged(found, one)
        if rises is None:
            return None
        found = Directions(rises, min(found.low, one.low), max(found.high, one.high))
    return found
