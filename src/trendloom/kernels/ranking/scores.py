"""How matches are scored, and which of them are the best: preferences for a whole chunk at once, then ranks by group.

Ranks go by score first, then by the moments, contents and variables of events. Matches with a score that others share
are put in order column by column, from the first event on, and only as long as some of them are still equal.
Cost: O(m log m) for m matches, and as much for every event that tied matches share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.functions import apply
from trendloom.expr.nodes import Expr
from trendloom.expr.operators import average, calculate
from trendloom.expr.vectors import Vector, constant
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.segments import first_where
from trendloom.kernels.contract.matches import Matches, MatchValues, join
from trendloom.model.schema import Kind
from trendloom.model.time import Window

RANK, SCORE = "rank", "score"
"""Columns of ranked rows."""


@dataclass(frozen=True)
class OperandSpan:
    """Events bound at these positions lie in the last `within` ticks of a window; without SLIDE, so close together."""

    positions: tuple[int, ...]
    within: int


@dataclass(frozen=True)
class Scoring:
    """The `limit` best matches of each window and key, or of each window (`overall`); NULL scores are the worst.

    A score is the one preference, or `merge` (sum, avg, min, max) of those of which a variable is bound. `variables`
    are those of each preference. `names` are the variables of all positions, by which ties are broken at last.
    `kind` and `scale`: of scores, and the digits after their point.
    """

    preferences: tuple[Expr, ...]
    merge: str | None
    descending: bool
    limit: int
    overall: bool
    variables: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    spans: tuple[OperandSpan, ...] = ()
    scale: int = 0
    kind: Kind = Kind.FLOAT


def scores_of(scoring: Scoring, values: MatchValues) -> Vector:
    """The scores of matches. A preference none of whose variables is bound is left out of a merge; NULL: no score."""
    length = len(values.matches)
    found = [evaluate(expr, values.leaf).broadcast(length) for expr in scoring.preferences]
    if scoring.merge is None:
        return found[0]
    bound = [_any_bound(values, names) for names in scoring.variables]
    kind = _common_kind(found)
    known = np.logical_and.reduce([_known(one) | ~there for one, there in zip(found, bound, strict=True)])
    found = [replace(one, valid=_known(one) & there) for one, there in zip(found, bound, strict=True)]
    merged = _sum(found, kind) if scoring.merge in ("sum", "avg") else _extreme(scoring.merge, found, kind)
    if scoring.merge == "avg":
        merged = average(merged, np.sum(bound, axis=0))
    return replace(merged, valid=known & np.logical_or.reduce(bound) & _known(merged))


def _known(vector: Vector) -> Array:
    return np.ones(len(vector), np.bool_) if vector.valid is None else vector.valid


def _common_kind(found: list[Vector]) -> Kind:
    kinds = {one.kind for one in found}
    return next((kind for kind in (Kind.FLOAT, Kind.DECIMAL) if kind in kinds), Kind.INT)


def _sum(found: list[Vector], kind: Kind) -> Vector:
    """The sum of what is known, from left to right."""
    nothing = constant(0, Kind.INT)
    total, *others = (apply("coalesce", [one, nothing], one.kind) for one in found)
    for more in others:
        total = calculate("+", total, more, kind)
    return total


def _extreme(function: str, found: list[Vector], kind: Kind) -> Vector:
    """The least or greatest of what is known."""
    best, *others = found
    for more in others:
        both = apply("least" if function == "min" else "greatest", [best, more], kind)
        best = apply("coalesce", [both, best, more], kind)
    return best


def _any_bound(values: MatchValues, names: tuple[str, ...]) -> Array:
    """Per match whether one of these variables is bound."""
    flags = np.zeros(len(values.matches.events), np.bool_)
    if not names:  # a constant is never left out
        return np.ones(len(values.matches), np.bool_)
    for name in names:
        flags |= values.flags(name)
    found: Array = first_where(values.matches.offsets, flags) >= 0
    return found


def inside_operand_spans(matches: Matches, block: Block, scoring: Scoring, window: Window) -> Matches:
    """The matches whose operands lie in the last part of the window, or close together. O(entries) each."""
    if not scoring.spans or not len(matches):
        return matches
    kept = np.ones(len(matches), np.bool_)
    time = block.time[matches.events]
    for span in scoring.spans:
        flags = np.isin(matches.positions, span.positions)
        first, last = (find(matches.offsets, flags) for find in (segments.first_where, segments.last_where))
        if matches.window_start is None:
            inside = time[last] - time[first] < span.within
        else:
            assert window.within is not None
            inside = time[first] >= matches.window_start + window.within - span.within
        kept &= inside | (first < 0)
    return matches if kept.all() else matches.take(np.flatnonzero(kept))


# ------------------------------------------------------------------------------------------------ the best


@dataclass(frozen=True, eq=False)
class Scored:
    """Matches, and numbers by which they are ranked: the smaller, the better; the worst are those without a score."""

    matches: Matches
    merit: Array
    unknown: Array

    def __len__(self) -> int:
        return len(self.matches)

    def take(self, rows: Array) -> Scored:
        return Scored(self.matches.take(rows), self.merit[rows], self.unknown[rows])


def scored(matches: Matches, scores: Vector, *, descending: bool) -> Scored:
    """Matches with their scores as merits, in which smaller is better."""
    unknown = np.zeros(len(matches), np.bool_) if scores.valid is None else ~scores.valid
    merit = scores.values
    if descending:
        merit = -merit if merit.dtype == np.float64 else ~merit  # of integers of any size, so that all compare
    return Scored(matches, np.where(unknown, merit.dtype.type(0) if merit.dtype != object else 0, merit), unknown)


def concatenate_scored(some: list[Scored]) -> Scored:
    """One list out of several, to be ranked anew."""
    merit, unknown = (np.concatenate([getattr(one, name) for one in some]) for name in ("merit", "unknown"))
    return Scored(join([_unranked(one.matches) for one in some]), merit, unknown)


def best_of(found: Scored, block: Block, scoring: Scoring) -> Scored:
    """The best of every group, in the order of their ranks, with these."""
    if not len(found):
        return found
    group = groups_of(found.matches, block, overall=scoring.overall)
    merit = found.merit
    if merit.dtype == object:
        merit = np.unique(merit, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((merit, found.unknown, group))
    group, merit, unknown = group[order], merit[order], found.unknown[order]
    first = np.r_[True, group[1:] != group[:-1]]
    equal = ~first & np.r_[False, (merit[1:] == merit[:-1]) & (unknown[1:] == unknown[:-1])]
    place = np.arange(len(order)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    tie_class = np.cumsum(~equal)
    wanted = place[np.flatnonzero(~equal)][tie_class - 1] < scoring.limit  # the first of its class is among the best
    order, tie_class, group = order[wanted], tie_class[wanted], group[wanted]
    order = order[_ties_in_order(found.matches, order, tie_class, block, scoring.names)]
    first = np.r_[True, group[1:] != group[:-1]]
    place = np.arange(len(order)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    kept = place < scoring.limit
    best = found.take(order[kept])
    more = {RANK: place[kept] + 1, SCORE: _scores(best, scoring)}
    return replace(best, matches=replace(best.matches, columns={**best.matches.columns, **more}))


def _scores(found: Scored, scoring: Scoring) -> Vector:
    """The scores that merits were made of."""
    values = found.merit
    if scoring.descending:
        values = -values if values.dtype == np.float64 else ~values
    return Vector(scoring.kind, values, ~found.unknown if found.unknown.any() else None, scale=scoring.scale)


def _unranked(matches: Matches) -> Matches:
    return replace(matches, columns={name: one for name, one in matches.columns.items() if name not in (RANK, SCORE)})


def groups_of(matches: Matches, block: Block, *, overall: bool) -> Array:
    """Numbers of the groups in which matches are ranked, in the order of their windows, then keys."""
    key = np.zeros(len(matches), np.int64) if overall else block.key[matches.first]
    if matches.window_start is None:
        return key
    number = np.unique(matches.window_start, return_inverse=True)[1].reshape(-1)
    found: Array = number * (int(key.max(initial=0)) + 1) + key
    return found


def _ties_in_order(matches: Matches, rows: Array, tie_class: Array, block: Block, names: tuple[str, ...]) -> Array:
    """An order of rows that are sorted by class, in which the members of each class stand by their events."""
    order = np.arange(len(rows))
    tied = np.flatnonzero(_shared(tie_class))
    if not len(tied):
        return order
    some = matches.take(rows[tied])  # the tied ones alone are looked at
    places, classes = np.arange(len(tied)), tie_class[tied]
    within = np.arange(len(tied))
    spelled = {name: number for number, name in enumerate(sorted(set(names)))}
    variable = np.array([spelled[name] * len(names) for name in names], np.int64)
    keys: tuple[Callable[[], Array], ...] = (
        lambda: block.moments(some.events),
        lambda: block.contents(some.events),
        lambda: variable[some.positions] + some.positions,
        lambda: block.row[some.events],
    )
    for key in keys:
        places, classes = _refined(some.offsets, key(), places, classes, within)
        if not len(places):
            break
    order[tied] = tied[within]
    return order


def _refined(offsets: Array, values: Array, tied: Array, classes: Array, order: Array) -> tuple[Array, Array]:
    """Put members of each class in order by the values of their entries, and say which are equal still.

    `ties` are places of `order` that hold members of classes, class by class.
    """
    lengths = np.diff(offsets)
    begin = offsets[:-1]
    done: list[tuple[Array, Array]] = []
    column = 0
    while len(tied):
        row = order[tied]
        there = column < lengths[row]
        value = np.where(there, values[np.where(there, begin[row] + column, 0)], 0)
        by = np.lexsort((value, there, classes))
        order[tied] = order[tied][by]
        classes, value, there = classes[by], value[by], there[by]
        steps = np.r_[False, (classes[1:] != classes[:-1]) | (value[1:] != value[:-1]) | (there[1:] != there[:-1])]
        classes = np.cumsum(steps)
        shared = _shared(classes)
        over = shared & ~there  # equal to the end
        if over.any():
            done.append((tied[over], classes[over] + column * (len(order) + 1)))
        going_on = shared & there
        tied, classes = tied[going_on], classes[going_on]
        column += 1
    if not done:
        return tied, classes
    places, again = np.concatenate([one for one, _ in done]), np.concatenate([one for _, one in done])
    by = np.argsort(places)
    return places[by], np.cumsum(np.r_[False, again[by][1:] != again[by][:-1]])


def _shared(classes: Array) -> Array:
    """Which entries of sorted classes are not alone in theirs."""
    same = classes[1:] == classes[:-1]
    found: Array = np.r_[False, same] | np.r_[same, False]
    return found
