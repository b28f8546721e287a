"""How well a feature separates abnormal windows from others (its reward), and which of its values are abnormal.

The reward is class entropy over regularised segmentation entropy.

Sort the values of both classes. Values that one class alone has form pure segments, values of both form mixed ones;
neighbours of one kind are one segment. The more segments, the more entropy, so the less reward:

    reward = H(classes) / (H(segments) + Σ over mixed segments of H(worst order of the segment))

The worst order splits the majority of a mixed segment as evenly as it goes by its minority: 3 and 2 points are
N A N A N. Perfect separation has reward 1, and nothing has more: with mixed segments written out in their worst order
the segments refine the classes, and the denominator is at least the entropy of that refinement. A feature with values
in one class only has reward 0. Order of points, units and scale of values make no difference.

Cost: one sort per feature, then a few passes over all features at once, in blocks that fit the cache of the machine.
See Zhang, "High-Performance Complex Event Processing for Decision Analytics", 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.features import Floats, Truths
from trendloom.diagnosis.formula import AbnormalRange
from trendloom.diagnosis.request import Settings

Counts = npt.NDArray[np.int64]

ABNORMAL, REFERENCE, MIXED = 1, 2, 3
"""Kinds of segments."""

BLOCK = 1 << 20
"""Values that are processed together."""


class Rewards(NamedTuple):
    """Of each feature: its reward, how many points of each class it has a value for, and how many segments.

    One segment of both classes separates nothing, whatever its reward: of a point each, the worst order is perfect.
    """

    reward: Floats
    abnormal: Counts
    reference: Counts
    segments: Counts


@dataclass(frozen=True, eq=False)
class ClassSegments:
    """Segments by value, those of all features one after the other: of which feature (`row`), of what kind, from
    which value to which, and how many points of each class they hold."""

    row: Counts
    kind: npt.NDArray[np.int8]
    low: Floats
    high: Floats
    abnormal: Counts
    reference: Counts

    def __len__(self) -> int:
        return len(self.row)


def rewards(values: Floats, abnormal: Truths) -> Rewards:
    """The rewards of all features: `values[f, p]` of feature f at point p, NaN where it has none."""
    rows = max(BLOCK // max(values.shape[1], 1), 1)
    blocks = [_rewards(values[low : low + rows], abnormal) for low in range(0, max(len(values), 1), rows)]
    return Rewards(*map(np.concatenate, zip(*blocks, strict=True)))


def _rewards(values: Floats, abnormal: Truths) -> Rewards:
    found = segments_of_all(values, abnormal)
    of_abnormal = _sums(found.row, found.abnormal, len(values))
    of_reference = _sums(found.row, found.reference, len(values))
    points = (of_abnormal + of_reference).astype(np.float64)
    sizes = (found.abnormal + found.reference).astype(np.float64)
    segmentation = _sums(found.row, _entropy_part(sizes, points[found.row]), len(values))
    mixed = found.kind == MIXED
    worst = worst_order_entropy(found.abnormal[mixed], found.reference[mixed])
    regularised = segmentation + _sums(found.row[mixed], worst, len(values))
    classes = _entropy_part(of_abnormal, points) + _entropy_part(of_reference, points)
    both = (of_abnormal > 0) & (of_reference > 0)
    # a rounding error must not make more than perfect of it, nor less
    reward = np.minimum(np.round(np.divide(classes, regularised, out=np.zeros(len(values)), where=both), 12), 1.0)
    count = np.bincount(found.row, minlength=len(values)).astype(np.int64)
    return Rewards(reward, of_abnormal.astype(np.int64), of_reference.astype(np.int64), count)


def segments(values: Floats, abnormal: Truths) -> ClassSegments:
    """The segments of one feature, from the least value on."""
    return segments_of_all(values[np.newaxis, :], abnormal)


def segments_of_all(values: Floats, abnormal: Truths) -> ClassSegments:
    """The segments of features, by feature and value."""
    order = np.argsort(values, axis=1)
    row, column = np.nonzero(~np.isnan(np.take_along_axis(values, order, axis=1)))
    place = order[row, column]
    value, is_abnormal = values[row, place], abnormal[place]
    if not len(value):
        none = np.zeros(0, np.int64)
        return ClassSegments(none, none.astype(np.int8), np.zeros(0), np.zeros(0), none, none)
    begins = np.flatnonzero(_changes(row) | _changes(value))
    in_abnormal = np.add.reduceat(is_abnormal.astype(np.int64), begins)
    sizes = np.diff(np.r_[begins, len(value)])
    kind = np.where(in_abnormal == 0, REFERENCE, np.where(in_abnormal == sizes, ABNORMAL, MIXED)).astype(np.int8)
    first = np.flatnonzero(_changes(row[begins]) | _changes(kind))
    last = np.r_[first[1:], len(begins)] - 1
    of_abnormal = np.add.reduceat(in_abnormal, first)
    of_both = np.add.reduceat(sizes, first)
    low, high = value[begins[first]], value[begins[last]]
    return ClassSegments(row[begins[first]], kind[first], low, high, of_abnormal, of_both - of_abnormal)


def worst_order_entropy(abnormal: Counts, reference: Counts) -> Floats:
    """The segmentation entropy of mixed segments in their worst order.

    The minority lies in single points; they cut the majority into one piece more, as even as can be. Where both are
    as many, one piece is empty and adds nothing.
    """
    minority = np.minimum(abnormal, reference).astype(np.float64)
    majority = np.maximum(abnormal, reference).astype(np.float64)
    points = minority + majority
    pieces = minority + 1
    size, larger = np.divmod(majority, pieces)
    singles = minority * _entropy_part(np.ones(len(points)), points)
    even = (pieces - larger) * _entropy_part(size, points) + larger * _entropy_part(size + 1, points)
    return np.asarray(singles + even)


def _changes(column: npt.NDArray[np.generic]) -> Truths:
    """Where a column differs from the row before; the first row does."""
    return np.concatenate([[True], column[1:] != column[:-1]])


def _entropy_part(count: Floats, points: Floats) -> Floats:
    """p · log2(1 / p) with p = count / points; 0 for none."""
    share = np.divide(count, points, out=np.zeros(len(points)), where=points > 0)
    return np.asarray(-share * np.log2(share, out=np.zeros(len(points)), where=share > 0))


def _sums(row: Counts, numbers: npt.NDArray[np.generic], rows: int) -> Floats:
    return np.asarray(np.bincount(row, weights=numbers.astype(np.float64), minlength=rows), np.float64)


# ------------------------------------------------------------------------------------------- abnormal values
#
# They are a few ranges, with boundaries that are short numbers. The segments of a feature that separates well are few,
# and the abnormal ones are the ranges. Those of a noisy feature are many. A segment's worth is its share of the
# abnormal windows minus its share of the reference, so the best set of at most k ranges is that of the greatest worth.
# It is found from all runs of worth above 0 by taking back, again and again, the run (or the gap between two) that
# matters least: runs and gaps alternate, so what is taken back joins its neighbours, and no other choice of as many
# ranges is worth more. Taking back goes on while a range is worth too little.
#
# A boundary lies between the neighbouring values of both sides, with as few digits as will do: in the middle, or nearer
# to the reference the more windows it has. What is normal is known then; the next anomaly may be weaker than this one.
# Cost: O(segments²) at worst, for the features of the reason only.


MOST_DIGITS = 17


@dataclass(frozen=True, eq=False)
class AbnormalRuns:
    """Segments `first[i]` to `last[i]`, both included, that are all taken as abnormal, or all not.

    `worth`: above 0 for those taken; runs alternate.
    """

    worth: Floats
    first: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]


def abnormal_ranges(
    values: Floats, abnormal: Truths, settings: Settings, *, whole: bool = False
) -> tuple[AbnormalRange, ...]:
    """The ranges of abnormal values of one feature, ascending; `whole`: its values are whole numbers."""
    found = segments(values, abnormal)
    share = np.maximum([found.abnormal.sum(), found.reference.sum()], 1)
    runs = _alternating(found.abnormal / share[0] - found.reference / share[1])
    while (least := _least(runs, settings)) is not None:
        runs = _joined(runs, least)
    where = float(np.clip(share[0] / share.sum(), settings.nearest_boundary, 0.5))
    return tuple(
        _range(found, int(runs.first[run]), int(runs.last[run]), where, whole) for run in np.flatnonzero(runs.worth > 0)
    )


def _alternating(worth: Floats) -> AbnormalRuns:
    taken = worth > 0
    first = np.flatnonzero(np.r_[True, taken[1:] != taken[:-1]])
    return AbnormalRuns(np.add.reduceat(worth, first), first, np.r_[first[1:], len(worth)] - 1)


def _least(runs: AbnormalRuns, settings: Settings) -> int | None:
    """The run or gap that matters least, if there are too many ranges or it matters too little."""
    ranges = int(np.count_nonzero(runs.worth > 0))
    if ranges < 2:
        return None
    matters = np.abs(runs.worth)
    for end in (0, -1):
        if runs.worth[end] <= 0:
            matters[end] = np.inf  # beyond all ranges
    least = int(np.argmin(matters))
    return least if ranges > settings.most_ranges or matters[least] < settings.range_gain else None


def _joined(runs: AbnormalRuns, least: int) -> AbnormalRuns:
    """Taken back, a run is of the kind of its neighbours, and one with them."""
    low, high = max(least - 1, 0), min(least + 1, len(runs.worth) - 1)
    worth = runs.worth[low : high + 1].sum()
    return AbnormalRuns(
        np.r_[runs.worth[:low], worth, runs.worth[high + 1 :]],
        np.r_[runs.first[:low], runs.first[low], runs.first[high + 1 :]],
        np.r_[runs.last[:low], runs.last[high], runs.last[high + 1 :]],
    )


def _range(found: ClassSegments, first: int, last: int, where: float, whole: bool) -> AbnormalRange:
    low, high = -np.inf, np.inf
    if first > 0:
        low = boundary(float(found.low[first]), float(found.high[first - 1]), where)
    if last < len(found) - 1:
        high = boundary(float(found.high[last]), float(found.low[last + 1]), where)
    return AbnormalRange(float(np.ceil(low)), float(np.floor(high))) if whole else AbnormalRange(low, high)


def boundary(inside: float, outside: float, where: float = 0.5) -> float:
    """A short number between two values that differ; `inside` itself if the gap is too narrow.

    It lies at about the share `where` of the gap, from `outside` on: at 0.5, in the middle half.
    """
    low, high = min(inside, outside), max(inside, outside)
    if np.isinf(low) or np.isinf(high):
        least = low if np.isinf(low) else low + abs(low) + 1
        return float(np.clip(0.0, least, high if np.isinf(high) else high - abs(high) - 1))
    target = (1 - where) * outside + where * inside
    room = min(where, 1 - where) * (high / 2 - low / 2)
    for digits in range(MOST_DIGITS):
        short = float(f"{target:.{digits}e}")
        if target - room <= short <= target + room and low < short < high:
            return short
    return inside
