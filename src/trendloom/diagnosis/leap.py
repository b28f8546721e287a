"""The leap: where the ranking of features drops sharply, what lies below says little about the anomaly.

Of all drops between neighbours of the ranking the deepest is the leap, the last one where several are as deep. A drop
from below `least_reward` is no leap, for such features are noise already; and where no drop is as deep as `least_leap`
there is none, and all features with at least that reward stay.
"""

from __future__ import annotations

import numpy as np

from trendloom.diagnosis.features import Floats
from trendloom.diagnosis.settings import Settings


def keep_before_leap(ranked: Floats, settings: Settings = Settings()) -> int:  # noqa: B008 (frozen)
    """How many features of a ranking, best first, are before its leap."""
    good = int(np.count_nonzero(ranked >= settings.least_reward))
    if good == 0:
        return 0
    # rounded, so that equal drops are equal
    drops = np.round(ranked[:good] - np.r_[ranked[1:], 0.0][:good], 9)
    deepest = good - 1 - int(np.argmax(drops[::-1]))
    return deepest + 1 if drops[deepest] >= settings.least_leap else good
