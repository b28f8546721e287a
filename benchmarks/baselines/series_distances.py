"""Distances of two time series, of many features at once, to rank features by: rivals of the entropy reward.

Manhattan and Euclidean compare the i-th values; dynamic time warping (DTW), edit distance on real sequences (EDR), edit
distance with real penalty (ERP) and the longest common subsequence (LCSS) may stretch or skip. All need a scale that
features share, so values are standardised over both series; those of `ANY_SCALE` are also taken of values as they are.
Two values match in EDR and LCSS if they are less than `MATCH` apart. Cost: one pass over the n · m pairs of places and
at each a few operations on a column of all features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
MATCH = 0.25
"""A quarter of the standard deviation, as usual."""


def both_series(values: Array, abnormal: Array, *, standardise: bool = True) -> tuple[Array, Array]:
    """The abnormal series and that of the reference, [features, points]: gaps are filled by their neighbours.

    A feature without values in one of the series has no distance: both are 0.
    """
    filled = np.concatenate([_filled(values[:, some]) for some in (abnormal, ~abnormal)], axis=1)
    mean, spread = filled.mean(axis=1, keepdims=True), filled.std(axis=1, keepdims=True)
    usable = np.isfinite(spread) & (spread > 0)
    scaled = (filled - mean) / np.where(usable, spread, 1.0) if standardise else filled
    scaled = np.where(usable, scaled, 0.0)
    count = int(abnormal.sum())
    return scaled[:, :count], scaled[:, count:]


def _filled(values: Array) -> Array:
    """The last value before a gap; before the first value, the first. NaN where there is none at all."""
    there = ~np.isnan(values)
    place = np.where(there, np.arange(values.shape[1]), -1)
    last = np.maximum.accumulate(place, axis=1)
    first = np.argmax(there, axis=1)[:, None]
    return np.take_along_axis(values, np.where(last < 0, first, last), axis=1)


def _stretched(series: Array, length: int) -> Array:
    """As many points, by linear interpolation."""
    at = np.linspace(0.0, series.shape[1] - 1, length)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, series.shape[1] - 1)
    return series[:, low] + (at - low) * (series[:, high] - series[:, low])


def lock_step(power: float) -> Callable[[Array, Array], Array]:
    """The Lp norm of the differences, the shorter series stretched to the longer."""

    def distance(one: Array, other: Array) -> Array:
        length = max(one.shape[1], other.shape[1])
        apart = np.abs(_stretched(one, length) - _stretched(other, length))
        return (apart**power).sum(axis=1) ** (1 / power)

    return distance


def dtw(one: Array, other: Array) -> Array:
    def step(cell: Array, skip: Array, skip_other: Array, both: Array, *_: Array) -> Array:
        return cell + np.minimum(both, np.minimum(skip, skip_other))

    infinite = np.full((one.shape[0], max(one.shape[1], other.shape[1]) + 1), np.inf)
    infinite[:, 0] = 0.0
    return _swept(one, other, step, infinite)


def edr(one: Array, other: Array) -> Array:
    """The edits that make one series of the other, as a share of the longer."""

    def step(cell: Array, skip: Array, skip_other: Array, both: Array, *_: Array) -> Array:
        return np.minimum(both + (cell > MATCH), np.minimum(skip, skip_other) + 1)

    length = max(one.shape[1], other.shape[1])
    border = np.broadcast_to(np.arange(length + 1.0), (one.shape[0], length + 1))
    return _swept(one, other, step, border) / length


def erp(one: Array, other: Array) -> Array:
    """As DTW, but what has no partner is compared with 0, the mean."""

    def step(cell: Array, skip: Array, skip_other: Array, both: Array, mine: Array, yours: Array) -> Array:
        return np.minimum(both + cell, np.minimum(skip + np.abs(mine), skip_other + np.abs(yours)))

    longest = max(one.shape[1], other.shape[1])
    borders = [np.zeros((one.shape[0], longest + 1)) for _ in range(2)]
    for border, series in zip(borders, (one, other), strict=True):
        border[:, 1 : series.shape[1] + 1] = np.cumsum(np.abs(series), axis=1)
    return _swept(one, other, step, borders[0], borders[1])


def lcss(one: Array, other: Array) -> Array:
    """One minus the share of the shorter series that the longest common subsequence has."""

    def step(cell: Array, skip: Array, skip_other: Array, both: Array, *_: Array) -> Array:
        return np.where(cell < MATCH, both + 1.0, np.maximum(skip, skip_other))

    none = np.zeros((one.shape[0], max(one.shape[1], other.shape[1]) + 1))
    return 1.0 - _swept(one, other, step, none) / min(one.shape[1], other.shape[1])


def _swept(
    one: Array, other: Array, step: Callable[..., Array], border: Array, other_border: Array | None = None
) -> Array:
    """The last cell of the table of all pairs of places, from its borders; `skip`: one's place has no partner."""
    before = np.array((border if other_border is None else other_border)[:, : other.shape[1] + 1])
    for i in range(1, one.shape[1] + 1):
        row = np.empty_like(before)
        row[:, 0] = border[:, i]
        for j in range(1, other.shape[1] + 1):
            mine, yours = one[:, i - 1], other[:, j - 1]
            row[:, j] = step(np.abs(mine - yours), before[:, j], row[:, j - 1], before[:, j - 1], mine, yours)
        before = row
    return before[:, -1]


DISTANCES: dict[str, Callable[[Array, Array], Array]] = {
    "Manhattan": lock_step(1.0),
    "Euclidean": lock_step(2.0),
    "DTW": dtw,
    "EDR": edr,
    "ERP": erp,
    "LCSS": lcss,
}

ANY_SCALE = ("Manhattan", "Euclidean", "DTW", "ERP")
"""Distances that need no threshold, and so can be taken of values as they are."""


def needed(ranks: Array, causes: list[Array]) -> float:
    """How many features, greatest distance first, until each cause has one; ties stand in random order (expected)."""
    return max(_first_place(ranks, cause) for cause in causes)


def _first_place(ranks: Array, cause: Array) -> float:
    if not cause.any():
        return float(len(ranks))
    best = ranks[cause].max()
    above = int((ranks > best).sum())
    tied, mine = int((ranks == best).sum()), int((ranks[cause] == best).sum())
    return above + (tied + 1) / (mine + 1)
