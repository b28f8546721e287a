"""Whole numbers as times: what they look like where nobody has said what they count.

A number means what its unit says, and without one it counts seconds; that is never changed here, only doubted aloud.
Times that most likely are milliseconds since 1970 would shrink `WITHIN 10 minutes` to 0.6 seconds. Looked at are the
shares of numbers that would be moments between 1980 and 2100 in each unit, so that small integers are never
suspected. Cost: a few vectorised passes over the time column; on Spark, sums in a job that runs anyway.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trendloom.errors import QueryWarning, option

EPOCHS = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""What whole numbers may count instead of seconds, and how many of them a second has."""

SHORT = {"milliseconds": "ms", "microseconds": "us"}

FIRST, LAST = 315_532_800, 4_102_444_800  # 1980 and 2100 in seconds
FIRST_DATE, LAST_DATE = 1900_01_01, 2100_12_31
CLOCK = 10**6
"""20240131120000: the digits of a time of day behind those of a date."""


@dataclass(frozen=True)
class Sizes:
    """What a time column was seen to hold: how many numbers, the greatest, and how many are of each kind."""

    rows: int
    most: int
    epochs: dict[str, int]
    dates: int


def sizes_of(times: npt.NDArray[np.int64]) -> Sizes:
    """The sizes of a column of whole numbers."""
    if not len(times) or times.max() < FIRST_DATE:
        return Sizes(len(times), 0, {}, 0)
    epochs = {
        name: int(np.count_nonzero((times >= FIRST * scale) & (times < LAST * scale))) for name, scale in EPOCHS.items()
    }
    date = np.where(times > LAST_DATE, times // CLOCK, times)
    month, day = date // 100 % 100, date % 100
    written = (date >= FIRST_DATE) & (date <= LAST_DATE) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return Sizes(len(times), int(times.max()), epochs, int(np.count_nonzero(written)))


def doubt_of_unit(column: str, sizes: Sizes) -> QueryWarning | None:
    """A warning where the numbers hardly count seconds."""
    but = "but whole numbers count seconds unless a unit is given"
    meant = f"{option('time_unit', 's')} says that they are seconds"
    if 0 < sizes.rows == sizes.dates:
        return QueryWarning(
            f"the times in column '{column}' look like dates written as numbers ({sizes.most}), {but}",
            hint=f"write them as 2024-01-31, or make timestamps of them; {meant}",
        )
    for name, count in sizes.epochs.items():
        if 2 * count > sizes.rows:
            seconds = min(sizes.most // EPOCHS[name], LAST)
            day = datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()
            return QueryWarning(
                f"the times in column '{column}' look like {name} since 1970 ({sizes.most} would be {day}), {but}",
                hint=f"{_way_out(name)}; {meant}",
            )
    return None


def _way_out(name: str) -> str:
    if name != "nanoseconds":
        return f"write {option('time_unit', SHORT[name])}"
    return f"times are kept in microseconds: divide them by 1000 and write {option('time_unit', 'us')}"
