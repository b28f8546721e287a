"""Which values of a feature are abnormal: a few ranges, with boundaries that are short numbers.

The segments of a feature that separates well are few, and the abnormal ones are the ranges. Those of a noisy feature
are many. A segment's worth is its share of the abnormal windows minus its share of the reference, so the best set of
at most k ranges is that of the greatest worth. It is found from all runs of worth above 0 by taking back, again and
again, the run (or the gap between two) that matters least: runs and gaps alternate, so what is taken back joins its
neighbours, and no other choice of as many ranges is worth more. Taking back goes on while a range is worth too little.

A boundary lies between the neighbouring values of both sides, with as few digits as will do: in the middle, or nearer
to the reference the more windows it has. What is normal is known then; the next anomaly may be weaker than this one.

Cost: O(segments²) at worst, for the features of the reason only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.diagnosis import Settings
from trendloom.diagnosis.features import Floats, Truths
from trendloom.diagnosis.formula import AbnormalRange
from trendloom.diagnosis.reward import ClassSegments, segments

MOST_DIGITS = 17


@dataclass(frozen=True, eq=False)
class AbnormalRuns:
    """Segments `first[i]` to `last[i]`, both included, that are all taken for abnormal, or all not.

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
