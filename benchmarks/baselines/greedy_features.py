"""A baseline: choose features one by one, each the one that adds most to what all say together about the class.

The mutual information of a set of features with the class is submodular, so greedy choice is near the best set of its
size. Features are cut into quarters by their quartiles (and "no value"). What it chooses is good at telling windows
apart and too long to be a reason (Zhang, "High-Performance Complex Event Processing for Decision Analytics", 5.2.4):
it is here to be compared with.

Cost: one pass over all values for each feature that is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.features import Floats, Truths

PARTS = 5
"""Quarters, and no value."""
CELLS = 1 << 22
"""Counts that are made together."""
LEAST_GAIN = 1e-9


@dataclass(frozen=True, eq=False)
class GreedyChoice:
    """Features in the order in which they were chosen, and what they say together, in bits, after each."""

    rows: npt.NDArray[np.intp]
    information: Floats


def greedy_choice(values: Floats, abnormal: Truths, most: int = 30) -> GreedyChoice:
    """At most so many features; it ends where no other adds anything."""
    parts = _parts(values)
    joint = np.zeros(values.shape[1], np.int64)
    rows: list[int] = []
    information: list[float] = []
    while len(rows) < min(most, len(values)):
        found = _information(joint, parts, abnormal)
        best = int(np.argmax(found))
        if found[best] <= (information[-1] if information else 0.0) + LEAST_GAIN:
            break
        rows.append(best)
        information.append(float(found[best]))
        joint = np.unique(joint * PARTS + parts[best], return_inverse=True)[1].astype(np.int64)
    return GreedyChoice(np.array(rows, np.intp), np.array(information))


def _parts(values: Floats) -> npt.NDArray[np.int64]:
    """In which quarter of its feature each value lies; 4: it has none."""
    known = ~np.isnan(values)
    quartiles = np.full((3, len(values)), np.nan)
    some = known.any(axis=1)
    quartiles[:, some] = np.nanquantile(values[some], [0.25, 0.5, 0.75], axis=1, method="inverted_cdf")
    found = (values[np.newaxis] > quartiles[:, :, np.newaxis]).sum(axis=0)
    return np.where(known, found, PARTS - 1)


def _information(joint: npt.NDArray[np.int64], parts: npt.NDArray[np.int64], abnormal: Truths) -> Floats:
    """The mutual information with the class of (joint, feature), for each feature."""
    cells = 2 * PARTS * (int(joint.max(initial=0)) + 1)
    rows = max(CELLS // cells, 1)
    found = []
    for low in range(0, len(parts), rows):
        some = parts[low : low + rows]
        key = (joint * PARTS + some) * 2 + abnormal + cells * np.arange(len(some))[:, np.newaxis]
        counts = np.bincount(key.ravel(), minlength=cells * len(some)).reshape(len(some), -1, 2).astype(np.float64)
        apart = _entropies(counts.reshape(len(some), -1))
        found.append(_entropies(counts.sum(axis=2)) + _entropies(counts.sum(axis=1)) - apart)
    return np.concatenate(found)


def _entropies(counts: Floats) -> Floats:
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(-(share * np.log2(share, out=np.zeros_like(share), where=share > 0)).sum(axis=1))
