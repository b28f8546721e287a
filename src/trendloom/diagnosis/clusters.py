"""Features that say the same: clusters by correlation, each with one feature that speaks for it.

Two features are linked if they correlate as strongly as the threshold, of either sign, over the windows where both
have values. Clusters are the connected components. The representative has the highest reward (over related partitions
where there are some); many are equal, at 1. Of equals the simplest speaks, then the one whose classes lie farthest
apart, for its boundary is the safest in other runs, then the first by name.

Cost: one product of matrices, features² · windows, for the features that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.diagnosis import Settings
from trendloom.diagnosis.features import Feature, Floats, Truths


@dataclass(frozen=True, eq=False)
class FeatureClusters:
    """`number[f]`: the cluster of feature f, from 0, those with the best representatives first; `representative[c]`:
    the feature that speaks for cluster c; `correlation`: of each feature with its representative."""

    number: npt.NDArray[np.intp]
    representative: npt.NDArray[np.intp]
    correlation: Floats


def correlation_clusters(
    values: Floats, features: Sequence[Feature], rewards: Floats, threshold: float, apart: Floats | None = None
) -> FeatureClusters:
    """The clusters of features with these values at common points of time; `apart`: as of `distances_of_classes`."""
    correlation = correlations(values)
    found = components(np.abs(correlation) >= threshold)
    apart = np.zeros(len(features)) if apart is None else apart
    ranked = sorted(
        range(len(features)),
        key=lambda row: (-rewards[row], features[row].place[:3], -apart[row], features[row].place),
    )
    best: dict[int, int] = {}
    for row in ranked:
        best.setdefault(int(found[row]), row)
    order = {cluster: number for number, cluster in enumerate(best)}
    number = np.array([order[int(cluster)] for cluster in found], np.intp)
    representative = np.array(list(best.values()), np.intp)
    return FeatureClusters(number, representative, correlation[np.arange(len(number)), representative[number]])


def components(linked: Truths) -> npt.NDArray[np.intp]:
    """The number of the connected component of each node, of a symmetric matrix of links; one look at each row."""
    number = np.full(len(linked), -1, np.intp)
    for start in range(len(linked)):
        if number[start] < 0:
            number[start], waiting = start, [start]
            while waiting:
                near = np.flatnonzero(linked[waiting.pop()] & (number < 0))
                number[near] = start
                waiting += near.tolist()
    return number


def distances_of_classes(values: Floats, abnormal: Truths) -> Floats:
    """How far apart the classes of each row lie: the difference of their means in units of their deviations, times the
    share of columns that have a value. Infinite where neither class varies; 0 where one has no value."""
    there = np.isfinite(values)
    filled = np.where(there, values, 0.0)
    scale = np.maximum(np.abs(filled).max(axis=1, keepdims=True, initial=0.0), np.finfo(float).tiny)
    filled = filled / scale
    means, spreads = [], []
    for some in (abnormal, ~abnormal):
        count = np.maximum(there[:, some].sum(axis=1), 1)
        mean = filled[:, some].sum(axis=1) / count
        off = np.where(there[:, some], filled[:, some] - mean[:, np.newaxis], 0.0)
        means.append(mean)
        spreads.append(np.sqrt((off * off).sum(axis=1) / count))
    both = there[:, abnormal].any(axis=1) & there[:, ~abnormal].any(axis=1)
    gap, spread = np.where(both, np.abs(means[0] - means[1]), 0.0), spreads[0] + spreads[1]
    found = np.divide(gap, spread, out=np.where(gap > 0, np.inf, 0.0), where=spread > 1e-12)
    return np.asarray(np.round(found * there.mean(axis=1), 6))


def correlations(values: Floats) -> Floats:
    """Pearson's correlation of all pairs of rows, each over the columns where both have finite values.

    A row that does not vary there correlates with nothing but itself.
    """
    there = np.isfinite(values)
    filled = np.where(there, values, 0.0)
    # any shift and scale will do: these keep sums of squares from losing their digits
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    filled = np.where(there, filled - filled.sum(axis=1, keepdims=True) / count, 0.0)
    scale = np.abs(filled).max(axis=1, keepdims=True, initial=0.0)
    filled = np.divide(filled, scale, out=np.zeros_like(filled), where=scale > 0)
    both = there.astype(np.float64)
    points = both @ both.T
    sums, squares, products = filled @ both.T, (filled * filled) @ both.T, filled @ filled.T
    points = np.maximum(points, 1.0)
    variance = squares / points - (sums / points) ** 2
    spread = np.sqrt(np.maximum(variance, 0.0) * np.maximum(variance.T, 0.0))
    found = np.divide(
        products / points - sums * sums.T / points**2, spread, out=np.zeros_like(spread), where=spread > 1e-12
    )
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


# The leap: where the ranking of features drops sharply, what lies below says little about the anomaly.
#
# Of all drops between neighbours of the ranking the deepest is the leap, the last one where several are as deep. A
# drop from below `least_reward` is no leap, for such features are noise already; and where no drop is as deep as
# `least_leap` there is none, and all features with at least that reward stay.


def keep_before_leap(ranked: Floats, settings: Settings = Settings()) -> int:  # noqa: B008 (frozen)
    """How many features of a ranking, best first, are before its leap."""
    good = int(np.count_nonzero(ranked >= settings.least_reward))
    if good == 0:
        return 0
    # rounded, so that equal drops are equal
    drops = np.round(ranked[:good] - np.r_[ranked[1:], 0.0][:good], 9)
    deepest = good - 1 - int(np.argmax(drops[::-1]))
    return deepest + 1 if drops[deepest] >= settings.least_leap else good
