"""Whether a series of measurements is flat: the second half does not lie above the first.

Upper quartiles, because a kill makes memory smaller for a while and never larger. The first part of a run is left out:
caches and windows fill, compilers compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles

WARM_UP = 0.2
ALLOWED = 1.10


@dataclass(frozen=True)
class Verdict:
    """The upper quartiles of both halves, and what comes and goes without being growth."""

    name: str
    first: float
    second: float
    noise: float

    @property
    def growth(self) -> float:
        return self.second / self.first if self.first else 1.0

    @property
    def flat(self) -> bool:
        return self.second <= max(self.first * ALLOWED, self.first + self.noise)


def judge(name: str, series: list[tuple[float, float]], begin: float, end: float, noise: float) -> Verdict:
    """Compare the halves of what was measured from `begin` to `end`, without the warm-up."""
    begin += (end - begin) * WARM_UP
    middle = (begin + end) / 2
    first = [value for at, value in series if begin <= at < middle]
    second = [value for at, value in series if middle <= at <= end]
    if len(first) < 2 or len(second) < 2:
        raise ValueError(f"{name}: next to nothing was measured in one half")
    return Verdict(name, quantiles(first, n=4)[-1], quantiles(second, n=4)[-1], noise)
